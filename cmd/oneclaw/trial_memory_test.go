package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
)

// maxMapping bounds what is read of one mapping: what is larger is reserved by the race
// detector and has nothing of ours.
const maxMapping = 4 << 30

// memory gives all that a process can read of itself to look, piece by piece; the pieces
// overlap.
func (p *process) memory(look func([]byte)) {
	p.t.Helper()
	pid := p.cmd.Process.Pid
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		p.t.Skipf("the mappings of a process cannot be read here: %v", err)
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		p.t.Skipf("the memory of a process cannot be read here: %v", err)
	}
	defer func() { _ = mem.Close() }()
	const overlap = 4096
	piece := make([]byte, 8<<20)
	total := 0
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		var mode string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); err != nil || mode[0] != 'r' || to-from > maxMapping || strings.Contains(line, "[v") {
			continue
		}
		for at := from; at < to; {
			n, err := mem.ReadAt(piece[:min(uint64(len(piece)), to-at)], int64(at))
			if err != nil {
				break // it was given back meanwhile
			}
			total += n
			look(piece[:n])
			if at += uint64(n); at < to && n > overlap {
				at -= overlap
			}
		}
	}
	if total < 1<<20 {
		p.t.Skipf("only %d bytes of the memory of a process can be read here", total)
	}
	p.t.Logf("%d MiB of memory", total>>20)
}

// TestTrialMemoryHoldsNoTokensOfThoseWhoAreAway reads the memory of the running program as
// a dump would have it. The tokens of the settings are there: they are in use. Those of a
// Google account that nobody has used since the start are sealed.
func TestTrialMemoryHoldsNoTokensOfThoseWhoAreAway(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	server := w.withGoogle(t)
	ann, bob := w.person("Ann"), w.person("Bob")
	bot := w.run()
	connectGoogle(t, w, bot, server, fmt.Sprint("telegram:", ann))
	if server.IssuedTokens() == 0 {
		t.Fatal("nobody has signed in")
	}
	bot.kill(syscall.SIGTERM)
	bot = w.run()
	w.ask(bot, bob, "hello", nil)
	w.ask(bot, ann, "hello", nil)

	token := []byte(w.env["TELEGRAM_BOT_TOKEN"])
	google := regexp.MustCompile(`^(1//|ya29\.)[A-Z2-7]{26}`)
	settings, found := 0, 0
	bot.memory(func(piece []byte) {
		settings += bytes.Count(piece, token)
		for _, prefix := range []string{"1//", "ya29."} {
			for rest := piece; ; rest = rest[len(prefix):] {
				at := bytes.Index(rest, []byte(prefix))
				if at < 0 {
					break
				}
				if rest = rest[at:]; google.Match(rest) {
					found++
				}
			}
		}
	})
	if settings == 0 {
		t.Error("the bot's own token is not found: this test would find nothing")
	}
	if found > 0 {
		t.Errorf("%d tokens of an account that nobody has used since the start", found)
	}
}
