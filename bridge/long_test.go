package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/internal/workspace"
)

// TestALongAnswerGoesAsAFile: beyond the bound, once, behind its first messages,
// and masked like them.
func TestALongAnswerGoesAsAFile(t *testing.T) {
	t.Parallel()
	cut := make(chan struct{})
	r := newHarness(t, echo, func(c *bridge.Config) {
		c.Limits.MaxParts = 2
		c.Redact = func(text string) string { return strings.ReplaceAll(text, "SECRET", "••••") }
	})
	r.accept(direct("1", "a\fb"), direct("2", "a\fb\fSECRET"))
	got := r.platform.wait(t, 5)
	if want := []string{"re: a", "b", "re: a", "b"}; fmt.Sprint(texts(got[:4])) != fmt.Sprint(want) {
		t.Errorf("messages %q, want %q", texts(got), want)
	}
	if file := got[4].text; !strings.HasPrefix(file, "<answer-") || !strings.HasSuffix(file, ".md|My answer is too long for this chat. This file holds all of it.|re: a\fb\f••••>") {
		t.Errorf("the file is %q", file)
	}
	// One that is cut off by the end of the program in front of its file comes whole.
	r.platform.mu.Lock()
	from := r.platform.ids
	r.platform.fail = func(n int, arrived bool) error {
		if n == from+4 && !arrived {
			close(cut) // the first try is on record
		}
		if n >= from+3 && arrived {
			return &chats.SendError{Outcome: chats.Later, Err: errors.New("out of order")}
		}
		return nil
	}
	r.platform.mu.Unlock()
	r.accept(direct("3", "x\fy\fz"))
	<-cut
	r.stop()
	r.platform.mu.Lock()
	r.platform.fail = nil
	r.platform.mu.Unlock()
	r.start()
	got = r.platform.wait(t, 8)
	if want := "re: x y |re: x\fy\fz>"; len(got) != 8 || got[5].text+" "+got[6].text+" "+got[7].text[strings.LastIndex(got[7].text, "|"):] != want {
		t.Errorf("messages %q", texts(got[5:]))
	}
	files, err := filepath.Glob(filepath.Join(workspace.OwnerDir(r.cfg.DataDir, "fake:1"), "answers", "*"))
	if err != nil || len(files) != 2 {
		t.Errorf("files of answers: %q (%v)", files, err)
	}
}

// TestWithoutAFileAllOfItIsSent: where no file can be made, the bound gives way.
func TestWithoutAFileAllOfItIsSent(t *testing.T) {
	for name, prepare := range map[string]func(*harness) string{
		"taken": func(r *harness) string {
			dir := workspace.OwnerDir(r.cfg.DataDir, "fake:1")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				r.t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "answers"), nil, 0o600); err != nil {
				r.t.Fatal(err)
			}
			return "a\fb\fc"
		},
		"too large": func(*harness) string { return "a\fb\f" + strings.Repeat("c", 1000) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t, echo, func(c *bridge.Config) { c.Limits.MaxParts = 2 })
			text := prepare(r)
			r.accept(direct("1", text))
			if got := texts(r.platform.wait(t, 3)); strings.Join(got, "\f") != "re: "+text {
				t.Errorf("messages %.200q", got)
			}
		})
	}
}

// TestOnlyWhatIsShownIsRendered: of an enormous answer no more than what its
// messages can take.
func TestOnlyWhatIsShownIsRendered(t *testing.T) {
	large := strings.Repeat("é", 1<<20)
	r := newHarness(t, echo, func(c *bridge.Config) {
		c.Limits.MaxParts = 1
		c.Platforms = []chats.Platform{roomy{c.Platforms[0].(*platform)}}
		c.Commands = []bridge.Command{{
			CommandInfo: chats.CommandInfo{Name: "much"},
			Run:         func(context.Context, bridge.CommandCall) (string, error) { return large, nil },
		}}
	})
	r.accept(direct("1", "/much"))
	got := r.platform.wait(t, 2)
	if n := len(got[0].text); n == 0 || n > 16<<10 || strings.Trim(got[0].text, "é") != "" {
		t.Errorf("the message has %d bytes", n)
	}
	if !strings.HasSuffix(got[1].text, "|"+large+">") {
		t.Errorf("the file has %d bytes", len(got[1].text))
	}
}

// A secret at the end of what is shown is masked as a whole.
func TestNoHalfSecretEndsTheShownPart(t *testing.T) {
	r := newHarness(t, echo, func(c *bridge.Config) {
		c.Limits.MaxParts = 1
		c.Redact = func(text string) string { return strings.ReplaceAll(text, "SECRET", "••••") }
		c.Platforms = []chats.Platform{roomy{c.Platforms[0].(*platform)}}
		c.Commands = []bridge.Command{{
			CommandInfo: chats.CommandInfo{Name: "much"},
			Run: func(context.Context, bridge.CommandCall) (string, error) {
				return strings.Repeat("x", 16<<10-3) + "SECRET" + strings.Repeat("y", 100), nil
			},
		}}
	})
	r.accept(direct("1", "/much"))
	if got := r.platform.wait(t, 2)[0].text; strings.Contains(got, "SEC") {
		t.Errorf("the message ends with %q", got[len(got)-10:])
	}
}

// roomy takes large files.
type roomy struct{ *platform }

func (roomy) MaxFile() int64 { return 10 << 20 }
