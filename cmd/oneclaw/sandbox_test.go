package main

import (
	"os"
	"regexp"
	"testing"

	"oneclaw/internal/doctor"
	"oneclaw/internal/emulator/openai"
)

// A user who approves their own command finds no mount of the host that can be written,
// whoever the bot runs as.
func TestAnApprovedCommandCannotChangeTheHost(t *testing.T) {
	looking := func(openai.Request) map[string]any {
		return map[string]any{"command": "cut -d' ' -f5,6 /proc/self/mountinfo | grep -E '^(/|/proc.*|/sys.*|/dev) rw'; " +
			"find /proc/sys -type f -writable 2>/dev/null | wc -l"}
	}
	onBothPlatforms(t, false, doing("exec", looking), func(s *botChat) {
		s.start()
		s.say(0, "do it")
		card := s.card("May I run")
		s.press(0, card, card.buttons["Allow once"], false)()
		got := s.one("Then: ").text
		if !regexp.MustCompile(`Exit Code: 0\]\s+0$`).MatchString(got) {
			t.Errorf("the command sees %q", got)
		}
	})
}

func TestDoctorWarnsOfRoot(t *testing.T) {
	w := newHarness(t, openai.Offline{})
	all, ok := examined(t, w.env)
	f := all["user"]
	if !ok {
		t.Errorf("a warning fails: %+v", all)
	}
	if os.Geteuid() == 0 {
		if f.Status != doctor.VerdictWarn {
			t.Errorf("as root: %+v", f)
		}
		wantIn(t, f.Text, "root")
	} else if f.Status != doctor.VerdictOK {
		t.Errorf("as a user: %+v", f)
	}
}
