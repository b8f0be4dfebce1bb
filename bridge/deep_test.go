package bridge_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/toolgroups"
)

// purposes answers a question with the purpose of its turn in front of it, and waits where a message
// says so.
type purposes struct {
	asked, free chan struct{}
}

func newPurposes() *purposes {
	return &purposes{asked: make(chan struct{}, 10), free: make(chan struct{})}
}

func (p *purposes) think(ctx context.Context, t agent.Turn) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		if last := t.History[len(t.History)-1]; last.Text == "wait" {
			p.asked <- struct{}{}
			<-p.free
		}
		if t.Steer != nil {
			more, _, err := t.Steer(ctx)
			if err != nil {
				yield(agent.Message{}, err)
				return
			}
			t.History = append(t.History, more...)
		}
		last := t.History[len(t.History)-1]
		yield(agent.Message{Role: agent.RoleAssistant, Text: t.Prompt + ": " + last.Text, Final: true}, nil)
	}
}

// withDeep has a strong model, and a profile that names the purpose.
func withDeep(c *bridge.Config) {
	c.Turns.SeparateTurns = false
	c.Turns.Profile = func(_ context.Context, _ toolgroups.Scope, purpose turn.Purpose) (turn.Profile, error) {
		return turn.Profile{Prompt: "for " + string(purpose)}, nil
	}
	c.Commands = append(c.Commands, bridge.Command{
		CommandInfo: chats.CommandInfo{Name: turn.DeepCommand, Description: "Ask"}, TakesMessage: true,
		Run: func(context.Context, bridge.CommandCall) (string, error) { return "write a question", nil },
	})
}

// What begins with /deep or !deep is a message for the strong model, for that turn alone.
func TestADeepQuestionIsForTheStrongModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPurposes()
		r := newHarness(t, p.think, withDeep)
		for i, c := range []struct{ text, want string }{
			{"/deep why?", "for deep: why?"},
			{" !deep \n why\nso? ", "for deep: why\nso?"},
			{"why?", "for : why?"},
			{"/deep", "write a question"},
			{"!deep", "write a question"},
			{"!deeper", "for : !deeper"},
			{"so /deep it is", "for : so /deep it is"},
		} {
			id := string(rune('a' + i))
			r.accept(direct(id, c.text))
			if got := r.platform.wait(t, i+1)[i].text; got != c.want {
				t.Errorf("%q is answered with %q, want %q", c.text, got, c.want)
			}
		}
		r.accept(direct("p", "/deep"), func() chats.Message {
			m := direct("q", "/deep")
			m.Quoted = []chats.Quoted{{Text: "the sky is green"}}
			return m
		}())
		if got := r.platform.wait(t, 9)[8].text; !slices.Contains([]string{"for deep: "}, got[:10]) {
			t.Errorf("a reply with /deep alone is answered with %q", got)
		}
		r.stop()
	})
}

// The question may come in further pieces: behind an album's first picture, or as what is forwarded.
func TestADeepQuestionComesInPieces(t *testing.T) {
	forward := func(id, text string) chats.Message {
		m := direct(id, "")
		m.Quoted = []chats.Quoted{{Kind: chats.RefForward, Text: text}}
		return m
	}
	picture := func(id, text string) chats.Message {
		m := piece(direct(id, text), "album")
		m.Files = []chats.Attachment{{Ref: id, Name: id + ".png", Type: "image/png"}}
		return m
	}
	for name, c := range map[string]struct {
		messages []chats.Message
		behind   bool // another turn runs meanwhile
		want     []string
	}{
		"a caption on a later picture":                  {[]chats.Message{picture("1", ""), picture("2", "/deep which?")}, false, []string{"for deep: which?"}},
		"a caption on a later picture, behind a turn":   {[]chats.Message{picture("1", ""), picture("2", "!deep which?")}, true, []string{"for : wait", "for deep: which?"}},
		"forwarded messages":                            {[]chats.Message{direct("1", "/deep"), forward("2", "the sky is green"), forward("3", "so is the sea")}, false, []string{"for deep: "}},
		"forwarded messages with words":                 {[]chats.Message{direct("1", "!deep is that so?"), forward("2", "the sky is green")}, false, []string{"for deep:"}},
		"forwarded messages, behind a turn":             {[]chats.Message{direct("1", "/deep"), forward("2", "the sky is green")}, true, []string{"for : wait", "for deep: "}},
		"nothing, and then another message":             {[]chats.Message{direct("1", "!deep"), direct("2", "hello")}, false, []string{"write a question", "for : hello"}},
		"nothing, behind a turn, and no question after": {[]chats.Message{direct("1", "/deep")}, true, []string{"for : wait", "write a question"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPurposes()
				r := newHarness(t, p.think, withDeep)
				if c.behind {
					r.accept(direct("0", "wait"))
					soon(t, p.asked)
				}
				r.accept(c.messages...)
				synctest.Wait()
				close(p.free)
				r.platform.wait(t, len(c.want))
				r.stop()
				for i, got := range r.platform.texts() {
					// What is forwarded stands before the words, or is told to the turn that they have begun.
					if !strings.HasPrefix(got, strings.TrimSpace(c.want[min(i, len(c.want)-1)])) || len(r.platform.texts()) != len(c.want) {
						t.Errorf("answered with %q, want %q", r.platform.texts(), c.want)
					}
				}
			})
		})
	}
}

// Where there is no strong model, /deep is a command that says so, and !deep a text like any other.
func TestWithoutAStrongModelDeepIsACommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, newPurposes().think, withDeep, func(c *bridge.Config) { c.Commands[len(c.Commands)-1].TakesMessage = false })
		r.accept(direct("1", "/deep why?"), direct("2", "!deep why?"))
		got := r.platform.wait(t, 2)
		if got[0].text != "write a question" || got[1].text != "for : !deep why?" {
			t.Errorf("answered with %q", r.platform.texts())
		}
		r.stop()
	})
}

// A message for the strong model waits for a turn of its own while another runs, is edited as it
// waits, and stays what it is through a restart.
func TestADeepQuestionHasATurnOfItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		waiting []chats.Message
		restart bool
		want    []string
	}{
		"behind a turn":            {waiting: []chats.Message{direct("2", "/deep why?")}, want: []string{"for : wait", "for deep: why?"}},
		"beside a message":         {waiting: []chats.Message{direct("2", "/deep why?"), direct("3", "and so")}, want: []string{"for : wait", "for deep: and so"}},
		"edited":                   {waiting: []chats.Message{direct("2", "/deep why?"), edited("2", "!deep how?")}, want: []string{"for : wait", "for deep: how?"}},
		"edited to a usual one":    {waiting: []chats.Message{direct("2", "/deep why?"), edited("2", "how?")}, want: []string{"for : how?"}},
		"edited from a usual one":  {waiting: []chats.Message{direct("2", "why?"), edited("2", "/deep how?")}, want: []string{"for : wait", "for deep: how?"}},
		"through a restart":        {waiting: []chats.Message{direct("2", "/deep why?")}, restart: true, want: []string{"for : wait", "for deep: why?"}},
		"a turn that runs, edited": {waiting: []chats.Message{edited("1", "/deep how?")}, want: []string{"for : [I have edited my message from before. It now reads:]\nhow?"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPurposes()
				r := newHarness(t, p.think, withDeep)
				r.accept(direct("1", "wait"))
				soon(t, p.asked)
				r.accept(c.waiting...)
				synctest.Wait()
				if c.restart {
					go close(p.free)
					r.restart()
				} else {
					close(p.free)
				}
				r.platform.wait(t, len(c.want))
				r.stop()
				if got := r.platform.texts(); !slices.Equal(got, c.want) {
					t.Errorf("answered with %q, want %q", got, c.want)
				}
			})
		})
	}
}

// A question that the strong model cannot answer says that the usual one can, and is asked again of the
// strong one.
func TestAFailedDeepQuestionIsTriedAgainWithTheStrongModel(t *testing.T) {
	for name, c := range map[string]struct {
		failure agent.ModelError
		says    string
		again   string // what the button asks; empty for no button
	}{
		"no answer":    {agent.ModelError{Kind: agent.KindUnavailable, Err: agent.ErrNoAnswer}, "The model gave no answer.", "for deep: Please try again."},
		"not there":    {agent.ModelError{Kind: agent.KindRejected, Status: 404, Err: errors.New("no such model")}, "Without /deep, the usual model answers.", ""},
		"key rejected": {agent.ModelError{Kind: agent.KindAuth, Err: errors.New("no key")}, "Without /deep, the usual model answers.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failing, answers := true, newPurposes()
				r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
					if !failing {
						return answers.think(ctx, turn)
					}
					return func(yield func(agent.Message, error) bool) { yield(agent.Message{}, &c.failure) }
				}, withDeep)
				r.accept(direct("1", "/deep why?"))
				failed := r.platform.wait(t, 1)[0]
				if !strings.Contains(failed.text, c.says) {
					t.Errorf("the user is told %q", failed.text)
				}
				failing = false
				if c.again != "" {
					r.accept(pressOn(failed, "p", "1", failed.button(t, "Try again")))
					if got := r.platform.wait(t, 2)[1].text; got != c.again {
						t.Errorf("answered with %q", got)
					}
				}
				r.stop()
			})
		})
	}
}

// Tasks say what has begun them, so that each kind can have a model of its own.
func TestTasksHaveAPurpose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, newPurposes().think, withDeep)
		hook := task("a.2", "two", "/deep hook")
		hook.Trigger = receipts.Trigger{Hook: "github"}
		r.submit(task("a.1", "one", "run"))
		r.platform.wait(t, 1)
		r.submit(hook)
		r.platform.wait(t, 2)
		r.stop()
		for i, want := range []string{"for schedules: run", "for webhooks: /deep hook"} {
			if got := r.platform.texts()[i]; got[len(got)-len(want):] != want {
				t.Errorf("the task is answered with %q, want %q", got, want)
			}
		}
	})
}

// edited is an edit of a message.
func edited(id, text string) chats.Message {
	m := direct(id, text)
	m.Kind = chats.KindEdit
	return m
}
