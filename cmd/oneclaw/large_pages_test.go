package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"

	"oneclaw/bridge/platformtest"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/internal/sandbox"
)

// pagesMemory is how much memory the bot and all its children may take beyond what it takes
// when it is idle, however many pages its users have it read.
const pagesMemory = 256 << 20

// underRace reports whether this program looks for races.
func underRace() bool {
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}

// fetching fetches as many pages as the user says, in one reply.
func fetching(site string) openai.ResponderFunc {
	return func(_ context.Context, req openai.Request) (openai.Reply, error) {
		last := req.Messages[len(req.Messages)-1]
		if last.Role == "tool" {
			return openai.Reply{Text: fmt.Sprintf("read %d", strings.Count(last.Content, "the rain"))}, nil
		}
		var n int
		if _, err := fmt.Sscanf(last.Content[strings.LastIndex(last.Content, "fetch"):], "fetch %d", &n); err != nil {
			return openai.Reply{}, err
		}
		var calls []openai.ToolCall
		for i := range n {
			calls = append(calls, openai.ToolCall{ID: fmt.Sprint("call_", i), Name: "webfetch", Arguments: fmt.Sprintf(`{"url":%q}`, site)})
		}
		return openai.Reply{Calls: calls}, nil
	}
}

// Sixteen chats have the largest pages read at the same time, one of them with 24 calls in one
// message: all processes of the bot together stay within their bound.
func TestLargePagesOfManyChatsFitIntoTheMemory(t *testing.T) {
	platformtest.OnlyNightly(t)
	t.Parallel()
	if underRace() {
		t.Skip("the race detector takes several times the memory and the time")
	}
	const chats = 16
	paragraph := "<p>" + strings.Repeat("It was a long evening, and the rain, which had begun at noon, went on. ", 60)
	page := "<article>" + strings.Repeat(paragraph, 5<<20/len(paragraph))
	var came atomic.Int32
	all := make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if came.Add(1) == chats {
			close(all)
		}
		select {
		case <-all: // The pages arrive at the same time.
		case <-r.Context().Done():
			return
		}
		out.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(out, page)
	}))
	defer site.Close()
	w := newHarness(t, fetching(site.URL))
	w.env["ONECLAW_TOOLS_ALLOW_PRIVATE"] = "127.0.0.1/32"
	var people []int64
	for n := range chats {
		people = append(people, w.person(fmt.Sprint("P", n)))
	}
	bot := w.run()
	idle, err := sandbox.TreeMemory(bot.cmd.Process.Pid)
	if err != nil {
		t.Skip("memory is read from /proc")
	}
	looking, stop := context.WithCancel(t.Context())
	most := make(chan error, 1)
	go func() { most <- sandbox.WatchMemory(looking, bot.cmd.Process.Pid, idle+pagesMemory) }()
	for n, who := range people {
		text := "fetch 1"
		if n == 0 {
			text = "fetch 24"
		}
		w.say(who, text, nil)
	}
	for _, who := range people {
		w.until(bot, "answer", func(s telegram.State) bool { return s.CountAnswers(who) > 0 })
		var answer string
		w.telegram.View(func(s telegram.State) { answer = s.Answers(who)[0].Text })
		if answer == "read 0" {
			t.Errorf("the page was not read: %q", answer)
		}
	}
	stop()
	if err := <-most; err != nil {
		t.Errorf("beyond %d MiB when idle: %v", idle>>20, err)
	}
}
