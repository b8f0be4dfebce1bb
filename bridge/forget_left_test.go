package bridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// forget has Ann forget herself, by the first card that asks her.
func (r *harness) forget(t *testing.T) {
	t.Helper()
	r.accept(direct("forget", "/forget"))
	var card sent
	r.platform.until(t, "the question", func(all []sent) bool {
		for _, one := range all {
			if len(one.buttons) > 0 && one.buttons[0][0].Label == "Forget me" {
				card = one
			}
		}
		return card.id != ""
	})
	r.accept(pressOn(card, "forgets", "1", card.button(t, "Forget me")))
}

// What a person had to decide about is gone with what they asked, in all chats.
func TestForgetTakesQuestionsForApprovalAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &execTools{}
		r := w.guarded(t)
		for i, m := range []struct{ id, chat string }{{"1", "1"}, {"2", "g"}} {
			ask := direct(m.id, "run secret")
			if m.chat == "g" {
				ask = group(m.id, "1", "run secret")
			}
			r.accept(ask)
			card := r.platform.wait(t, 2*i+1)[2*i]
			r.accept(pressOn(card, "p"+m.id, "1", card.button(t, "Allow once")))
			r.platform.wait(t, 2*i+2)
		}
		pass(t, 1)
		r.forget(t)
		pass(t, 60)
		if found := placesOf(t, r.cfg.Store, "secret"); len(found) > 0 {
			t.Errorf("there are still secrets in %q", found)
		}
	})
}

// Nobody has to decide about what they want to be forgotten: an open question ends, wherever it was asked.
func TestForgetEndsOpenQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &execTools{}
		r := w.guarded(t)
		task := bridge.Submission{Key: "task", Chat: group("", "1", "").Chat, User: "1", Title: "Secret title", Text: "run secret"}
		if err := r.bridge.Submit(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		r.accept(direct("1", "run secret"), group("1", "1", "run secret"))
		r.platform.wait(t, 3)
		r.accept(group("2", "6", "Bob asks"))
		pass(t, 1)
		r.forget(t)
		pass(t, 10)
		if got := r.platform.texts(); !slices.Contains(got, gone) || !slices.Contains(got, "re: Bob asks") {
			t.Errorf("there stands %q", got)
		}
		r.wantNoSecrets()
		r.nothingOpen()
	})
}

// What is still being answered is not answered any more, and gone, also where the bot has not noted yet who
// asks. It is not said to be gone before.
func TestForgetTakesAwayWhatIsStillAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
			return func(yield func(agent.Message, error) bool) {
				if !turn.Scope.Direct {
					<-release
				}
				echo(ctx, turn)(yield)
			}
		}, func(cfg *bridge.Config) { cfg.Access.Admins = []string{"fake:1"} })
		thread := group("2", "1", "secret in a thread")
		thread.Chat.Thread = "t"
		r.accept(group("1", "1", "secret in the group"), thread)
		task := bridge.Submission{Key: "task", Chat: group("", "1", "").Chat, User: "1", Title: "Secret title", Text: "secret task"}
		if err := r.bridge.Submit(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		pass(t, 1)
		r.forget(t)
		pass(t, 10)
		if got := r.platform.texts(); slices.Contains(got, gone) {
			t.Errorf("there stands %q", got)
		}
		close(release)
		pass(t, 120)
		if got := r.platform.texts(); len(got) != 2 || got[1] != gone {
			t.Errorf("there stands %q", got)
		}
		if found := placesOf(t, r.cfg.Store, "secret"); len(found) > 0 {
			t.Errorf("there are still secrets in %q: %s", found, fmt.Sprint(r.platform.texts()))
		}
	})
}

// A schedule or a webhook begins a task while all of its user is being deleted, and is gone after that, or
// cannot be deleted at the first attempt.
func TestForgetTakesAwayATaskThatBeginsMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails   int
		earlier bool // a task has ended there before, so the first attempt begins an erasure, which ends
	}{"once": {0, false}, "after a failure": {1, false}, "after a failure and an erasure": {1, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var r *harness
				submit := func(ctx context.Context, key string) error {
					return r.bridge.Submit(ctx, bridge.Submission{Key: key, Chat: oldChat, User: "1", Title: "Secret title", Text: "secret task"})
				}
				calls := 0
				r = newHarness(t, echo, func(cfg *bridge.Config) {
					cfg.Hooks.Forget = func(ctx context.Context, _ string, _ chats.Chat) error {
						if calls++; calls <= c.fails {
							return errors.New("not now")
						}
						return submit(ctx, "task")
					}
				})
				if c.earlier {
					if err := submit(t.Context(), "earlier"); err != nil {
						t.Fatal(err)
					}
				}
				pass(t, 1)
				r.forget(t)
				pass(t, 120)
				if got := r.platform.texts(); !slices.Contains(got, gone) {
					t.Errorf("there stands %q", got)
				}
				if found := placesOf(t, r.cfg.Store, "secret"); len(found) > 0 {
					t.Errorf("there are still secrets in %q", found)
				}
			})
		})
	}
}

// The erasures in groups do not wait for something else that cannot be deleted.
func TestForgetErasesGroupsAlthoughTheRestFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, echo, func(cfg *bridge.Config) {
			cfg.Hooks.Forget = func(context.Context, string, chats.Chat) error { return errors.New("never") }
		})
		r.accept(group("1", "1", "secret"))
		r.platform.wait(t, 1)
		pass(t, 1)
		r.forget(t)
		pass(t, 20*60)
		if found := placesOf(t, r.cfg.Store, "secret"); len(found) > 0 {
			t.Errorf("there are still secrets in %q", found)
		}
	})
}

// A group gets another id while something of the person is still open there.
func TestForgetFollowsAGroupThatMoves(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]struct {
		open   func(t *testing.T, r *harness, f *taskModel)
		before bool // the group moves before the request
	}{
		"a question behind that of another user": {func(t *testing.T, r *harness, f *taskModel) {
			r.accept(group("1", "6", "hold Bob's"))
			<-f.held
			r.accept(group("2", "1", "secret"))
		}, false},
		"a background task": {func(t *testing.T, r *harness, f *taskModel) {
			r.accept(group("1", "1", "start hold secret"))
			<-f.held
			r.platform.one(t, "done: Started")
		}, true},
		"a question that was asked under the old id": {func(t *testing.T, r *harness, f *taskModel) {
			r.accept(group("1", "6", "hold Bob's"))
			<-f.held
			r.accept(group("2", "1", "secret"))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newTaskModel()
				r, _ := backgroundHarness(t, f)
				with.open(t, r, f)
				pass(t, 1)
				move := func() {
					r.move()
					pass(t, 10)
				}
				if with.before {
					move()
				}
				r.forget(t)
				pass(t, 10)
				if !with.before {
					move()
				}
				f.free <- struct{}{}
				pass(t, 120)
				r.nothingOpen()
				if found := placesOf(t, r.cfg.Store, "secret"); len(found) > 0 {
					t.Errorf("there are still secrets in %q", found)
				}
			})
		})
	}
}

// Each thread is a conversation of its own.
func TestForgetGoesThroughAllThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, echo)
		for n := range 3 {
			for i, m := range []chats.Message{direct(fmt.Sprint(2*n+1), "secret"), group(fmt.Sprint(2*n+2), "1", "secret")} {
				m.Chat.Thread = fmt.Sprint("t", n)
				r.accept(m)
				r.platform.wait(t, 2*n+i+1)
			}
		}
		pass(t, 1)
		r.forget(t)
		pass(t, 60)
		if found := placesOf(t, r.cfg.Store, "secret"); len(found) > 0 {
			t.Errorf("there are still secrets in %q", found)
		}
	})
}

// hearing is a platform whose messages can carry sounds.
type hearing struct{ *platform }

func (hearing) FetchFile(_ context.Context, _ chats.Attachment, w io.Writer) error {
	_, err := io.WriteString(w, "sound")
	return err
}

// What somebody said in a recording is shown in the chat, so it is more than once on record.
func TestForgetTakesTheWordsOfRecordingsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, echo, func(cfg *bridge.Config) {
			p, _ := cfg.Platforms[0].(*platform)
			cfg.Platforms[0] = hearing{p}
			cfg.Turns.Transcribe = func(context.Context, toolgroups.Scope, turn.Recording) (string, error) { return "secret words", nil }
		})
		for i, m := range []chats.Message{direct("1", ""), group("2", "1", "")} {
			m.Files = []chats.Attachment{{Ref: "f" + m.ID, Name: "a.ogg", Size: 5, Sound: chats.Sound{Kind: chats.SoundSpoken}}}
			r.accept(m)
			r.platform.wait(t, 2*i+2)
		}
		pass(t, 1)
		if n := len(placesOf(t, r.cfg.Store, "secret words")); n < 6 {
			t.Fatalf("only %d places have the words", n)
		}
		r.forget(t)
		pass(t, 60)
		if found := placesOf(t, r.cfg.Store, "secret words"); len(found) > 0 {
			t.Errorf("there are still secrets in %q", found)
		}
	})
}

// An answer that could not be sent for a day is set aside, whatever chat it is for.
func TestForgetTakesAwayWhatWasSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, o := newOutage(t, chats.Unknown, false)
		o.begin(30 * time.Hour)
		bob := group("2", "6", "of Bob")
		bob.Chat.ID = "h"
		r.accept(group("1", "1", "secret"), bob)
		for user, text := range map[string]string{"fake:1": "secret", "fake:6": "of Bob"} {
			if err := r.bridge.Post(t.Context(), "of "+user, chats.Chat{Platform: "fake", ID: "of-" + user[5:]}, interact.Card{QuotedUser: user, Text: text}); err != nil {
				t.Fatal(err)
			}
		}
		pass(t, 31*3600)
		if all := deadLetters(t, r); len(all) != 4 {
			t.Fatalf("%d are set aside", len(all))
		}
		r.forget(t)
		pass(t, 60)
		for _, a := range deadLetters(t, r) {
			if !strings.Contains(string(a.Data), "of Bob") {
				t.Errorf("still set aside: %s", a.Data)
			}
		}
		if n := len(deadLetters(t, r)); n != 2 {
			t.Errorf("%d are set aside", n)
		}
		r.stop()
	})
}

// A message of a group that could not be accepted is set aside as it came.
func TestForgetTakesAwayWhatWasNotAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, echo, func(cfg *bridge.Config) {
			cfg.Store = gatedStore{Store: cfg.Store, write: func(key string) {
				if strings.HasPrefix(key, queue.OpenPrefix+"fake:g/bad") {
					panic("no")
				}
			}}
		})
		for _, m := range []chats.Message{group("bad1", "1", "secret"), group("bad2", "6", "of Bob")} {
			for r.bridge.Accept(t.Context(), m) != nil {
			}
		}
		if all := deadLetters(t, r); len(all) != 2 {
			t.Fatalf("%d are set aside", len(all))
		}
		r.forget(t)
		pass(t, 60)
		if all := deadLetters(t, r); len(all) != 1 || !strings.Contains(string(all[0].Data), "of Bob") {
			t.Errorf("still set aside: %+v", all)
		}
	})
}

// A message that the user sends after the request is not one that has to be answered before.
func TestForgetWaitsForNoLaterMessage(t *testing.T) {
	for _, chat := range []string{"1", "g"} {
		t.Run(chat, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlow()
				r := newHarness(t, s.think)
				say := func(id, text string) {
					m := direct(id, text)
					m.Chat.ID, m.Direct = chat, chat == "1"
					r.accept(m)
				}
				say("1", "slow secret")
				<-s.asked
				r.forget(t)
				pass(t, 10)
				say("2", "later")
				pass(t, 10)
				close(s.free)
				pass(t, 5*60)
				if got := r.platform.texts(); !slices.Contains(got, gone) || !slices.Contains(got, "re: later") {
					t.Errorf("there stands %q", got)
				}
				if found := placesOf(t, r.cfg.Store, "secret"); len(found) > 0 {
					t.Errorf("there are still secrets in %q", found)
				}
			})
		})
	}
}

// What a person asks while the bot forgets them is answered, perhaps with what is not erased yet, and goes, too.
func TestForgetTakesAwayWhatIsAskedMeanwhile(t *testing.T) {
	for _, chat := range []string{"1", "g"} {
		t.Run(chat, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r *harness
				said := func(id, text string) chats.Message {
					m := direct(id, text)
					m.Chat.ID, m.Direct = chat, chat == "1"
					return m
				}
				asked := false
				r = newHarness(t, func(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
					return func(yield func(agent.Message, error) bool) {
						if len(turn.History) > 1 {
							linger(20 * time.Second)
						}
						yield(agent.Message{Role: agent.RoleAssistant, Text: "You said: " + turn.History[0].Text, Final: true}, nil)
					}
				}, func(cfg *bridge.Config) {
					cfg.Hooks.Forget = func(context.Context, string, chats.Chat) error {
						if !asked {
							asked = true
							r.accept(said("2", "What did I say?"))
							linger(time.Second)
						}
						return nil
					}
				})
				r.accept(said("1", "secret"))
				r.platform.wait(t, 1)
				r.forget(t)
				pass(t, 120)
				if got := r.platform.texts(); len(got) != 4 || got[3] != gone {
					t.Errorf("there stands %q", got)
				}
				r.wantNoSecrets()
			})
		})
	}
}

// lateStore tells only after a while that it has stored a certain message.
type lateStore struct{ storage.Store }

func (s lateStore) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	rev, err := s.Store.Write(ctx, ops...)
	if slices.ContainsFunc(ops, func(op storage.Op) bool { return strings.Contains(op.Key, "/late/") }) {
		linger(3 * time.Second)
	}
	return rev, err
}

// A message that is just being accepted was written before.
func TestForgetTakesAMessageAwayThatIsBeingAccepted(t *testing.T) {
	for name, say := range map[string]func(r *harness, id, text string){
		"message": func(r *harness, id, text string) { r.accept(group(id, "1", text)) },
		"task": func(r *harness, id, text string) {
			s := bridge.Submission{Key: id, Chat: chats.Chat{Platform: "fake", ID: "g"}, User: "1", Title: "Secret", Text: text}
			if err := r.bridge.Submit(r.t.Context(), s); err != nil {
				r.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t, echo, func(c *bridge.Config) { c.Store = lateStore{c.Store} })
				say(r, "1", "secret one")
				r.platform.wait(t, 1)
				pass(t, 5)
				var accepted sync.WaitGroup
				accepted.Go(func() { say(r, "late", "secret two") })
				pass(t, 1)
				r.forget(t)
				accepted.Wait()
				pass(t, 30)
				answered := func(text string) bool { return strings.HasSuffix(text, "re: secret two") }
				if got := r.platform.texts(); !slices.Contains(got, gone) || slices.ContainsFunc(got, answered) {
					t.Errorf("there stands %q", got)
				}
				if found := placesOf(t, r.cfg.Store, "secret"); len(found) > 0 {
					t.Errorf("there are still secrets in %q", found)
				}
			})
		})
	}
}

// A damaged record is set aside like everywhere; it is no reason to forget nobody and to answer
// nothing more.
func TestForgetIsNotHeldUpByADamagedRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, echo)
		thread := direct("t1", "secret thread")
		thread.Chat.Thread = "t"
		r.accept(direct("1", "secret"), thread)
		r.platform.wait(t, 2)
		for _, log := range []string{"fake:1/1", "fake:1:t/1"} {
			if _, err := r.cfg.Store.Put(t.Context(), "conversation/fake:1/"+log, []byte(`{"title":"secret`), storage.Any); err != nil {
				t.Fatal(err)
			}
		}
		r.forget(t)
		pass(t, 600)
		r.accept(direct("2", "hello"))
		pass(t, 60)
		if got := r.platform.texts(); !slices.Contains(got, gone) || !slices.Contains(got, "re: hello") {
			t.Errorf("there stands %q", got)
		}
		if found := placesOf(t, r.cfg.Store, "secret"); len(found) > 0 {
			t.Errorf("there are still secrets in %q", found)
		}
	})
}

// recalling notes behind which message it is asked what was said in a thread.
type recalling struct {
	*platform
	mu     sync.Mutex
	behind []string
}

func (r *recalling) ReadThread(_ context.Context, _ chats.Message, after string, _ int) ([]chats.Quoted, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.behind = append(r.behind, after)
	return nil, nil
}

// What was said before in a thread does not come back with the next message there, and no
// platform is asked for it by the name of something that is no message.
func TestForgetLeavesNothingToRecall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &recalling{}
		r := newHarness(t, echo, func(cfg *bridge.Config) {
			p.platform, _ = cfg.Platforms[0].(*platform)
			cfg.Platforms[0] = p
		})
		say := func(id string, answers int) {
			m := direct(id, "hello")
			m.Chat.Thread, m.InThread = "t", true
			r.accept(m)
			r.platform.wait(t, answers)
		}
		say("1", 1)
		pass(t, 1)
		r.forget(t)
		pass(t, 60)
		say("2", 4)
		if !slices.Equal(p.behind, []string{""}) {
			t.Errorf("asked for what was said behind %q", p.behind)
		}
	})
}

// An erasure is given up if a job does not end in the time that a turn with its decision may take.
func TestForgetDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, echo)
		pass(t, 1)
		lost := direct("1", "hello")
		lost.Chat.Thread = "t"
		data, err := json.Marshal(queue.Job{Message: lost, State: receipts.Open})
		if err != nil {
			t.Fatal(err)
		}
		r.put(queue.OpenPrefix+queue.KeyOf(lost), string(data)) // no replica works on it
		r.forget(t)
		pass(t, 29*60)
		if got := r.platform.texts(); len(got) != 1 {
			t.Errorf("there stands %q", got)
		}
		pass(t, 10*60)
		if got := r.platform.texts(); len(got) != 2 || !strings.Contains(got[1], "_Incident ") {
			t.Errorf("there stands %q", got)
		}
	})
}

// What a tool makes that does not end at once goes, too.
func TestForgetWaitsForWhatDoesNotEndAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var memory atomic.Bool
		r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
			return func(yield func(agent.Message, error) bool) {
				<-release
				memory.Store(true) // as a tool does
				echo(ctx, turn)(yield)
			}
		}, func(cfg *bridge.Config) {
			cfg.Hooks.Forget = func(context.Context, string, chats.Chat) error {
				memory.Store(false)
				return nil
			}
		})
		m := direct("1", "remember")
		m.Chat.Thread = "t"
		r.accept(m)
		pass(t, 1)
		r.forget(t)
		pass(t, 10*60)
		close(release)
		pass(t, 120)
		if got := r.platform.texts(); memory.Load() || !slices.Contains(got, gone) || slices.Contains(got, "re: remember") {
			t.Errorf("something is remembered: %t, there stands %q", memory.Load(), got)
		}
	})
}

// An answer to another user that is being made with what a person wrote is begun anew without it.
func TestForgetReachesAnAnswerToAnotherUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow()
		var shown []string
		r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
			shown = append(shown, fmt.Sprint(turn.History))
			return s.think(ctx, turn)
		})
		r.accept(group("1", "1", "secret"))
		r.platform.wait(t, 1)
		r.accept(group("2", "6", "slow of Bob"))
		<-s.asked
		r.forget(t)
		pass(t, 10)
		r.platform.one(t, gone)
		close(s.free)
		pass(t, 10)
		r.platform.one(t, "re: slow of Bob")
		if last := shown[len(shown)-1]; len(shown) != 3 || strings.Contains(last, "secret") || !strings.Contains(last, "slow of Bob") {
			t.Errorf("the model is shown %q", shown)
		}
		r.wantNoSecrets()
	})
}

// What a person writes later stays; a day later goes what a paused replica has stored since.
func TestForgetLooksOnceMoreADayLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, echo)
		r.accept(group("1", "1", "hello"))
		r.platform.wait(t, 1)
		r.forget(t)
		pass(t, 10)
		r.platform.one(t, gone)
		r.accept(group("2", "1", "later in the group"), direct("3", "later here"))
		pass(t, 10)
		late := &receipts.Receipt{Message: group("9", "1", "secret"), Seq: 1, State: receipts.Done, Closed: time.Now()}
		if err := receipts.Put(t.Context(), r.cfg.Store, late, storage.Absent); err != nil {
			t.Fatal(err)
		}
		pass(t, 26*3600)
		r.wantNoSecrets()
		for _, text := range []string{"later in the group", "later here"} {
			if found := placesOf(t, r.cfg.Store, text); len(found) < 3 {
				t.Errorf("%q is only in %q", text, found)
			}
		}
		if n := keys(t, r.cfg.Store, conversation.ForgottenPrefix); n != 0 {
			t.Errorf("%d are still being forgotten", n)
		}
	})
}
