package bridge_test

import (
	"context"
	"io"
	"iter"
	"path"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
)

// picturePlatform is a platform whose edits carry files.
type picturePlatform struct{ *platform }

func (picturePlatform) EditsFiles() {}

func (picturePlatform) FetchFile(_ context.Context, a chats.Attachment, w io.Writer) error {
	_, err := io.WriteString(w, a.Ref)
	return err
}

// namesFiles answers with the text of the question and the names of its files.
func namesFiles(s *slow) thinker {
	return func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		last := turn.History[len(turn.History)-1]
		if strings.HasPrefix(last.Text, "slow") {
			return s.think(ctx, turn)
		}
		answer := strings.TrimSpace(last.Text)
		for _, f := range last.Files {
			answer += " <" + path.Base(f.Path) + ">"
		}
		return answering(answer)(ctx, turn)
	}
}

func withFile(m chats.Message, ref string) chats.Message {
	m.Files = []chats.Attachment{{Ref: ref, Name: ref + ".txt", Size: int64(len(ref))}}
	return m
}

func asEdit(m chats.Message) chats.Message {
	m.Kind = chats.KindEdit
	return m
}

// An edit replaces the files of a message that waits, and takes them away.
func TestAnEditBringsItsFiles(t *testing.T) {
	for name, tt := range map[string]struct {
		before, edit chats.Message
		want         []string
	}{
		"another file, same caption": {withFile(direct("2", "read it"), "old"), withFile(direct("2", "read it"), "new"), []string{"read it", "new.txt", "!old.txt"}},
		"another file, none before":  {direct("2", "read it"), withFile(direct("2", "read this"), "new"), []string{"read this", "new.txt"}},
		"a text instead":             {withFile(direct("2", "read it"), "old"), direct("2", "what is the time?"), []string{"what is the time?", "!old.txt"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSlow()
			r := newHarness(t, namesFiles(s), func(cfg *bridge.Config) {
				p, _ := cfg.Platforms[0].(*platform)
				cfg.Platforms[0] = picturePlatform{p}
			})
			r.accept(direct("1", "slow"), tt.before)
			<-s.asked
			r.accept(asEdit(tt.edit))
			close(s.free)
			got := r.platform.wait(t, 2)[1].text
			for _, want := range tt.want {
				without, absent := strings.CutPrefix(want, "!")
				if strings.Contains(got, without) == absent {
					t.Errorf("the model was shown %q, want %q", got, want)
				}
			}
		})
	}
}

// A file takes no other's place: its name has a number then. One that came before is the same file.
func TestFilesOfOneNameStandSideBySide(t *testing.T) {
	r := newHarness(t, namesFiles(newSlow()), func(cfg *bridge.Config) {
		p, _ := cfg.Platforms[0].(*platform)
		cfg.Platforms[0] = picturePlatform{p}
	})
	for i, tt := range []struct{ name, content, want string }{
		{"report.pdf", "one", "report.pdf"}, {"report.pdf", "two", "report-2.pdf"}, {"report.pdf", "one", "report.pdf"}, {"report.pdf", "three", "report-3.pdf"},
	} {
		m := direct(strconv.Itoa(i), "read it")
		m.Files = []chats.Attachment{{Ref: tt.content, Name: tt.name, Size: int64(len(tt.content))}}
		r.accept(m)
		if got := r.platform.wait(t, i+1)[i].text; !strings.HasSuffix(got, " <"+tt.want+">") {
			t.Errorf("%q as %s is shown to the model as %q", tt.content, tt.name, got)
		}
	}
}

// A file that is replaced after the answer, under the same words or none, is no reason for silence.
func TestAReplacedFileOfAnAnsweredMessageIsNoticed(t *testing.T) {
	for _, caption := range []string{"read it", ""} {
		synctest.Test(t, func(t *testing.T) {
			r := newHarness(t, namesFiles(newSlow()), func(cfg *bridge.Config) {
				p, _ := cfg.Platforms[0].(*platform)
				cfg.Platforms[0] = picturePlatform{p}
			})
			r.accept(withFile(direct("1", caption), "old"))
			r.platform.wait(t, 1)
			pass(t, 5)
			r.accept(asEdit(withFile(direct("1", caption), "old")))
			pass(t, 5)
			r.accept(asEdit(withFile(direct("1", caption), "new")))
			if got := texts(r.platform.wait(t, 2)); len(got) != 2 || !strings.HasPrefix(got[1], "You changed a message") {
				t.Errorf("shown are %q", got)
			}
			r.stop()
		})
	}
}
