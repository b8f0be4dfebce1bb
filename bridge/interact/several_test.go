package interact

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a platform with buttons.
type service struct {
	chats.Platform
	chats.Editor
}

func (service) AnswerPress(context.Context, chats.Message, string) error { return nil }

// post is the jobs and the sender of a desk: it carries nothing anywhere.
type post struct{ store storage.Store }

func (post) New(m chats.Message) *queue.Run { return &queue.Run{Job: queue.Job{Message: m}} }

func (p post) Find(ctx context.Context, key string) (*receipts.Receipt, error) {
	types := func(chats.Kind) (args, work any) { return nil, new(outbox.Delivery) }
	return queue.Store{Store: p.store, NewData: types}.Find(ctx, key)
}

func (p post) InsertWith(ctx context.Context, j *queue.Run, more ...storage.Op) (storage.Revision, error) {
	added, err := queue.Store{Store: p.store, Base: new(atomic.Int64)}.Add(ctx, j, more...)
	if err == nil && !added {
		err = storage.ErrConflict
	}
	return j.Rev, err
}

func (post) Adopt(context.Context, string) error       { return nil }
func (post) Go(func(context.Context))                  {}
func (post) Render(*queue.Run, string) []receipts.Part { return nil }
func (post) Edit(context.Context, *queue.Run, chats.Chat, []string, []receipts.Part) error {
	return nil
}

// replica is the desk of one of several processes.
type replica struct {
	*Cards
	owns atomic.Bool // all chats, or none
	// handled counts the calls of the handler.
	handled atomic.Int32
	mu      sync.Mutex
	over    []string // the tokens of the cards that it was told are over
}

func (*replica) Check(chats.Message) error            { return nil }
func (*replica) RoleOf(chats.Message) toolgroups.Role { return toolgroups.RoleUser }
func (*replica) ScopeOf(context.Context, *queue.Run) (toolgroups.Scope, error) {
	return toolgroups.Scope{}, nil
}

func (r *replica) OnCardLost(string) {}

func (r *replica) IsNeeded(*StoredCard) bool { return false }

func (r *replica) OnCardClosed(kept *StoredCard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = append(r.over, kept.Token)
}

// replicas are desks on one store that run and learn from each other.
func replicas(t *testing.T, n int) []*replica {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	var all []*replica
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	for range n {
		r := &replica{}
		r.Cards = NewCards(CardsConfig{
			Platforms: map[string]chats.Platform{"fake": service{}}, Owns: func(chats.Chat) bool { return r.owns.Load() },
			Log: slog.New(slog.DiscardHandler), Now: time.Now, Redact: func(text string) string { return text },
			Store: store, Jobs: post{store}, Sender: post{}, Host: r,
			Handlers: map[string]Handler{"ask": func(_ context.Context, p Press) (Result, error) {
				r.handled.Add(1)
				return Result{Text: "Over.", Close: true}, nil
			}},
		})
		running.Go(func() { r.Run(ctx) })
		running.Go(func() {
			if err := r.Watch(ctx); err != nil {
				t.Error(err)
			}
		})
		all = append(all, r)
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return all
}

func (r *replica) ask(t *testing.T) *StoredCard {
	t.Helper()
	token, err := r.Post(t.Context(), "a", chats.Chat{Platform: "fake", ID: "1"}, Card{
		Kind: "ask", Text: "?", Choices: [][]Choice{{{Label: "Yes", Value: "yes"}}}, Expires: time.Now().Add(time.Minute),
	})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := r.Get(t.Context(), token)
	if err != nil || kept == nil {
		t.Fatal(err)
	}
	return kept
}

func (r *replica) told(token string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.over, token)
}

// after lets time pass, and what is due happen.
func after(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// A card is shown in a chat of one replica, and the turn that waits for it is another's.
func TestADecisionOnOneReplicaIsToldToAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := replicas(t, 3)
		kept := all[0].ask(t)
		if _, err := all[1].change(t.Context(), kept.Token, func(kept *StoredCard) chats.Kind {
			kept.IDs = []string{"7"} // it was shown
			return showNone
		}); err != nil {
			t.Fatal(err)
		}
		j := &queue.Run{Job: queue.Job{Message: chats.Message{Chat: kept.Chat, ID: "p", Kind: chats.KindPress, User: "1", TargetID: "7", Text: kept.buttonDataAt(0)}}}
		if err := all[1].HandlePress(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for n, r := range all {
			if !r.told(kept.Token) {
				t.Errorf("replica %d was not told that the card is over", n)
			}
			r.mu.Lock()
			if len(r.due) != 0 {
				t.Errorf("replica %d looks after %d cards", n, len(r.due))
			}
			r.mu.Unlock()
		}
		if n := all[1].handled.Load(); n != 1 {
			t.Errorf("handled %d times", n)
		}
	})
}

// Whoever answers in the chat of a card ends it; after a takeover that is another, who learns
// of cards that are posted while it runs and of those from before.
func TestACardIsEndedByWhoAnswersInItsChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := replicas(t, 2)
		kept := all[0].ask(t)
		synctest.Wait()
		after(time.Hour)
		if now, err := all[0].Get(t.Context(), kept.Token); err != nil || !now.IsOpen() || all[0].handled.Load()+all[1].handled.Load() != 0 {
			t.Fatalf("it is ended where nobody answers: %v", err)
		}
		all[1].owns.Store(true)
		after(2 * time.Second)
		if now, err := all[0].Get(t.Context(), kept.Token); err != nil || now.Reason != expired || all[0].handled.Load() != 0 || all[1].handled.Load() != 1 {
			t.Errorf("it ends as %q (%v)", now.Reason, err)
		}
		if !all[0].told(kept.Token) || !all[1].told(kept.Token) {
			t.Error("not all were told")
		}
	})
}

// Where two replicas believe that they answer in a chat, a card ends once.
func TestACardThatTwoReplicasEndIsWrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := replicas(t, 2)
		for _, r := range all {
			r.owns.Store(true)
		}
		kept := all[0].ask(t)
		after(2 * time.Minute)
		now, err := all[0].Get(t.Context(), kept.Token)
		if err != nil || now.Reason != expired || now.Version != kept.Version+1 {
			t.Errorf("it ends as %q in version %d after %d (%v)", now.Reason, now.Version, kept.Version, err)
		}
	})
}

// Of two changes of a card that meet, the later one is made again on what the earlier one has left.
func TestChangesOfACardThatMeetAreBothKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := replicas(t, 2)
		kept := all[0].ask(t)
		meet := sync.OnceFunc(func() {
			if err := all[1].Update(t.Context(), kept.Token, Result{Text: "One."}); err != nil {
				t.Error(err)
			}
		})
		if _, err := all[0].Revise(t.Context(), kept.Token, func(c Card) (Result, bool) {
			meet()
			return Result{Text: c.Text + " Two."}, true
		}); err != nil {
			t.Fatal(err)
		}
		if now, err := all[0].Get(t.Context(), kept.Token); err != nil || now.Text != "One. Two." {
			t.Errorf("it says %q (%v)", now.Text, err)
		}
	})
}
