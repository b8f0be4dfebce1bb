package bridge_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
)

// minded is an agent that keeps what it was asked, and what stood before that: it answers slowly
// what begins so, in parts what is long, and else as echo.
type minded struct {
	slow *slow
	mu   sync.Mutex
	// asked are the questions, seen is all that stood before the last one.
	asked, seen []string
}

func (m *minded) think(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	text := turn.History[len(turn.History)-1].Text
	m.mu.Lock()
	m.asked, m.seen = append(m.asked, text), nil
	for _, one := range turn.History {
		m.seen = append(m.seen, one.Text)
	}
	m.mu.Unlock()
	if strings.HasPrefix(text, "long") {
		return answering("re: "+text+"\fmore of it\fthe rest of it")(ctx, turn)
	}
	return m.slow.think(ctx, turn)
}

// since returns what was asked since it was called last, and what stood before the last question.
func (m *minded) since() (asked, seen []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked, m.asked = m.asked, nil
	return asked, m.seen
}

// A process dies after a /stop or /clear was accepted, while any one step of what that does
// hangs. Its next life asks the model nothing of what was stopped and sends nothing of it; after
// the answer to a /clear nothing that is older is shown, and an /undo brings back what there was.
func TestACommandHoldsWhereverTheProcessDies(t *testing.T) {
	old := []string{"slow one", "two", "long one"}
	for name, begin := range map[string]func(t *testing.T, r *rig, m *minded){
		"a turn runs and a message waits": func(t *testing.T, r *rig, m *minded) {
			r.accept(direct("1", "slow one"))
			soon(t, m.slow.asked)
			pass(t, 5)
			r.accept(direct("2", "two"))
		},
		"an answer is half delivered": func(t *testing.T, r *rig, _ *minded) {
			refused := false
			r.platform.fail = func(_ int, arrived bool) error {
				if arrived || refused || len(r.platform.shown()) < 2 {
					return nil
				}
				refused = true
				return &chats.SendError{Outcome: chats.Later, RetryAfter: time.Hour, Err: errDead}
			}
			r.accept(direct("1", "long one"))
			pass(t, 5)
		},
		"a message waits for its turn": func(t *testing.T, r *rig, m *minded) {
			r.accept(in("busy", "1", "slow there"))
			soon(t, m.slow.asked)
			r.accept(direct("2", "two"))
		},
	} {
		for _, command := range []string{"/stop", "/clear"} {
			t.Run(command+" while "+name, func(t *testing.T) {
				hangsAtEachStep(t, 6, func(t *testing.T, life *mortal) {
					m := &minded{slow: newSlow()}
					r := newRig(t, m.think, func(cfg *bridge.Config) { cfg.Limits.MaxTurns = 1 })
					r.accept(direct("0", "before"))
					r.platform.wait(t, 1)
					r.stop()
					store, shown, hangs := r.cfg.Store, r.platform, life.hangs
					life.hangs = 0
					r.cfg.Store, r.cfg.Platforms = mortalStore{store, life}, []chats.Platform{mortalPlatform{shown, life}}
					r.start()
					begin(t, r, m)
					pass(t, 1)
					life.mu.Lock()
					life.steps, life.hangs = 0, hangs
					life.mu.Unlock()
					accepted := make(chan error, 1)
					go func() { accepted <- r.bridge.Accept(t.Context(), direct("9", command)) }()
					pass(t, 3)
					life.end()
					taken := <-accepted == nil
					r.stop()
					m.since()
					before := shown.texts()
					shown.fail = nil
					r.cfg.Store, r.cfg.Platforms = store, []chats.Platform{shown}
					r.start()
					r.accept(direct("9", command)) // the platform says it again
					pass(t, 5)
					close(m.slow.free)
					pass(t, 30)
					asked, _ := m.since()
					texts := shown.texts()
					if command == "/stop" {
						for _, text := range asked {
							if taken && slices.Contains(old, text) {
								t.Errorf("%q was asked after the /stop", text)
							}
						}
						for _, text := range texts[len(before):] {
							if taken && strings.Contains(text, " it") {
								t.Errorf("%q was sent after the /stop", text)
							}
						}
						checkNext(t, r, m, "before")
						return
					}
					cleared := slices.IndexFunc(texts, func(text string) bool { return strings.Contains(text, "Conversation cleared") })
					if cleared < 0 {
						t.Fatalf("nothing is cleared: %q", texts)
					}
					for _, text := range texts[cleared+1:] {
						if text != "re: slow there" && !strings.Contains(text, "Conversation cleared") {
							t.Errorf("%q was sent after the /clear", text)
						}
					}
					r.accept(direct("10", "/undo"))
					pass(t, 5)
					if got := shown.texts(); got[len(got)-1] != back {
						t.Errorf("undone: %q", got)
					}
					checkNext(t, r, m, "before")
				})
			})
		}
	}
}

// checkNext checks that the next message is answered, in a conversation in which that was said.
func checkNext(t *testing.T, r *rig, m *minded, said string) {
	t.Helper()
	r.accept(direct("next", "next"))
	pass(t, 5)
	if got := r.platform.texts(); got[len(got)-1] != "re: next" {
		t.Errorf("the next answer is %q", got)
	}
	if _, seen := m.since(); len(seen) == 0 || seen[0] != said {
		t.Errorf("the conversation is %q, want %q in it", seen, said)
	}
	r.stop()
	if open := r.bridge.Load().Open; open != 0 {
		t.Errorf("%d jobs are open", open)
	}
}
