package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
)

// faltering is a platform that breaks off the next files that are fetched.
type faltering struct {
	*platform
	breaks *int
}

func (f faltering) FetchFile(_ context.Context, _ chats.Attachment, w io.Writer) error {
	if *f.breaks--; *f.breaks >= 0 {
		_, err := io.WriteString(w, "hal")
		return errors.Join(err, errors.New("connection reset"))
	}
	_, err := io.WriteString(w, "half and half")
	return err
}

// A fault that passes takes no file from a message; one that stays is said.
func TestAFileIsFetchedAgain(t *testing.T) {
	for breaks, lost := range map[int]bool{0: false, 2: false, 1000: true} {
		synctest.Test(t, func(t *testing.T) {
			r := newHarness(t, echo, func(cfg *bridge.Config) {
				p, _ := cfg.Platforms[0].(*platform)
				cfg.Platforms[0] = faltering{p, &breaks}
			})
			m := direct("1", "look")
			m.Files = []chats.Attachment{{Ref: "f", Name: "a.txt", Size: 13}}
			r.accept(m)
			if got := r.platform.wait(t, 1)[0].text; strings.Contains(got, "could not be fetched") != lost {
				t.Errorf("with %d faults: %q", breaks, got)
			}
		})
	}
}

// A file that the bot made is not one that somebody sent, also if a person shares it: the model may have written it.
func TestAFileOfTheBotThatIsSharedIsNotAsSomebodySentIt(t *testing.T) {
	fine := 0
	for _, own := range []bool{false, true} {
		r := newHarness(t, func(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
			return func(yield func(agent.Message, error) bool) {
				last := turn.History[len(turn.History)-1]
				yield(agent.Message{Role: agent.RoleAssistant, Text: fmt.Sprint("received: ", len(last.Files) == 1 && last.Files[0].Sum != ""), Final: true}, nil)
			}
		}, func(cfg *bridge.Config) {
			p, _ := cfg.Platforms[0].(*platform)
			cfg.Platforms[0] = faltering{p, &fine}
		})
		m := direct("1", "look")
		m.Files = []chats.Attachment{{Ref: "f", Name: "a.txt", Size: 13, FromBot: own}}
		r.accept(m)
		if got, want := r.platform.wait(t, 1)[0].text, fmt.Sprint("received: ", !own); got != want {
			t.Errorf("a file of the bot %t: %q, want %q", own, got, want)
		}
	}
}

// meddled is a platform whose files are appended to by a command while they are fetched.
type meddled struct {
	*platform
	dir string
}

func (m meddled) FetchFile(_ context.Context, _ chats.Attachment, w io.Writer) error {
	_, err := io.WriteString(w, "as it was sent")
	found, none := filepath.Glob(filepath.Join(m.dir, "inbox", "*"))
	if err := errors.Join(err, none); err != nil || len(found) != 1 {
		return fmt.Errorf("%w: %q are in the inbox", err, found)
	}
	return errors.Join(err, os.WriteFile(found[0], []byte("as it was sent, and more"), 0o600))
}

// A file that is changed while it is fetched counts as received only as the platform sent it.
func TestAFileCountsAsReceivedAsThePlatformSentIt(t *testing.T) {
	r := newHarness(t, func(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		return func(yield func(agent.Message, error) bool) {
			last := turn.History[len(turn.History)-1]
			yield(agent.Message{Role: agent.RoleAssistant, Text: fmt.Sprint(last.Files), Final: true}, nil)
		}
	}, func(cfg *bridge.Config) {
		p, _ := cfg.Platforms[0].(*platform)
		cfg.Platforms[0] = meddled{p, workspace.OwnerDir(cfg.DataDir, "fake:1")}
	})
	m := direct("1", "look")
	m.Files = []chats.Attachment{{Ref: "f", Name: "a.txt", Size: 13}}
	r.accept(m)
	if got, want := r.platform.wait(t, 1)[0].text, toolgroups.SumOf([]byte("as it was sent")); !strings.Contains(got, want) {
		t.Errorf("received %s, want the sum %s", got, want)
	}
}

// A voice note that cannot be heard here is answered with who can switch that on.
func TestAVoiceNoteThatIsNotHeardSaysWhoCanSwitchThatOn(t *testing.T) {
	fine := 0
	r := newHarness(t, echo, func(cfg *bridge.Config) {
		p, _ := cfg.Platforms[0].(*platform)
		cfg.Platforms[0], cfg.Access.Admins = faltering{p, &fine}, []string{"fake:9"}
	})
	for n, one := range []struct{ user, want string }{
		{"1", "I can't hear voice notes yet; an administrator can switch that on (`voice.model`)."},
		{"9", "I can't hear voice notes yet. Set `voice.model`, and I can."},
	} {
		m := group(one.user, one.user, "")
		m.Files = []chats.Attachment{{Ref: "f", Name: "a.ogg", Size: 13, Sound: chats.Sound{Kind: chats.SoundSpoken}}}
		r.accept(m)
		if got := r.platform.wait(t, n+1)[n].text; got != one.want {
			t.Errorf("user %s is told %q", one.user, got)
		}
	}
}
