package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
)

// service is a platform with buttons.
type service struct {
	chats.Platform
	chats.Editor
}

// post is the jobs and the sender of a desk of cards: it carries nothing anywhere.
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

func (post) Check(chats.Message) error            { return nil }
func (post) RoleOf(chats.Message) toolgroups.Role { return toolgroups.RoleUser }
func (post) OnCardClosed(*interact.StoredCard)    {}
func (post) OnCardLost(string)                    {}
func (post) IsNeeded(*interact.StoredCard) bool   { return false }
func (post) ScopeOf(context.Context, *queue.Run) (toolgroups.Scope, error) {
	return toolgroups.Scope{}, nil
}

// jobs tell who was expelled, and carry nothing out.
type jobs struct{ expelled chan string }

func (jobs) Put(context.Context, chats.Message) error          { return nil }
func (jobs) Tell(context.Context, chats.Message, string) error { return nil }
func (j jobs) CancelUser(user string)                          { j.expelled <- user }

// replica is the desk of one of several processes.
type replica struct {
	*Registry
	expelled chan string
}

func openStore(t testing.TB) storage.Store {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func newReplica(t testing.TB, store storage.Store) replica {
	t.Helper()
	platforms, log := map[string]chats.Platform{"fake": service{}}, slog.New(slog.DiscardHandler)
	handlers := map[string]interact.Handler{}
	desk := interact.NewCards(interact.CardsConfig{
		Platforms: platforms, Owns: func(chats.Chat) bool { return true }, Log: log, Now: time.Now, Store: store, Handlers: handlers, Jobs: post{store}, Sender: post{}, Host: post{},
	})
	r := replica{expelled: make(chan string, 10)}
	r.Registry = New(Config{
		Platforms: platforms, Log: log, Now: time.Now, Store: store, Cards: desk, Jobs: jobs{r.expelled},
	})
	maps.Copy(handlers, r.Handlers())
	if err := r.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// watch has a replica learn of the others.
func (r replica) watch(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Watch(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func from(user string) *queue.Run {
	return &queue.Run{Job: queue.Job{Message: chats.Message{Chat: chats.Chat{Platform: "fake", ID: user}, ID: "1", User: user, Direct: true, Kind: chats.KindText, Text: "hello"}}}
}

func (r replica) claims(t testing.TB, user, code string) string {
	t.Helper()
	text, err := r.claimBot(t.Context(), from(user), code)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// owned makes somebody the owner.
func owned(t testing.TB, r replica) {
	t.Helper()
	claim, err := NewClaim(t.Context(), r.cfg.Store, time.Now(), true)
	if err != nil {
		t.Fatal(err)
	}
	if text := r.claims(t, "1", claim.Code); !strings.HasPrefix(text, "Welcome") {
		t.Fatal(text)
	}
}

// tried does what is tried again after an error, as jobs are.
func tried(t testing.TB, do func() error) {
	t.Helper()
	for range 100 {
		err := do()
		if err == nil {
			return
		}
		if !errors.Is(err, storage.ErrConflict) {
			t.Error(err)
			return
		}
	}
	t.Error("a conflict again and again")
}

func TestWhoIsLetInOrRemovedOnOneReplicaIsSoOnAll(t *testing.T) {
	synctest.Test(t, letInAndRemoved)
}

func letInAndRemoved(t *testing.T) {
	store := openStore(t)
	here, other := newReplica(t, store), newReplica(t, store)
	owned(t, here)
	other.watch(t)
	synctest.Wait()
	add := func(r replica, verb string) {
		t.Helper()
		tried(t, func() error {
			_, err := r.handlePeople(t.Context(), from("1"), verb)
			return err
		})
	}
	add(here, "add fake:2")
	synctest.Wait()
	if other.Role("fake:1") != toolgroups.RoleOwner || other.Role("fake:2") != toolgroups.RoleUser {
		t.Error("the other replica has not learned who was let in")
	}
	add(here, "remove fake:2")
	if user := <-other.expelled; user != "fake:2" || other.Role("fake:2") != toolgroups.RoleStranger {
		t.Errorf("%s is expelled", user)
	}
	add(here, "add fake:3")
	synctest.Wait()
	if other.Role("fake:3") != toolgroups.RoleUser {
		t.Error("the other replica has not learned who was let in")
	}
	if err := store.Delete(t.Context(), accessPrefix+"fake:3", storage.Any); err != nil {
		t.Fatal(err)
	}
	if user := <-other.expelled; user != "fake:3" {
		t.Errorf("%s is expelled", user)
	}
}

// What a watch has missed is found when it begins anew.
func TestWhoIsRemovedWhileNobodyWatchesIsExpelledThen(t *testing.T) {
	store := openStore(t)
	here, other := newReplica(t, store), newReplica(t, store)
	owned(t, here)
	if _, err := here.handlePeople(t.Context(), from("1"), "add fake:2"); err != nil {
		t.Fatal(err)
	}
	if err := other.Load(t.Context()); err != nil || other.Role("fake:2") != toolgroups.RoleUser {
		t.Fatal(err)
	}
	if _, err := here.handlePeople(t.Context(), from("1"), "remove fake:2"); err != nil {
		t.Fatal(err)
	}
	other.watch(t)
	if user := <-other.expelled; user != "fake:2" {
		t.Errorf("%s is expelled", user)
	}
}

func TestOfTwoReplicasOneGivesTheBotAway(t *testing.T) {
	for range 20 {
		store := openStore(t)
		claim, err := NewClaim(t.Context(), store, time.Now(), true)
		if err != nil {
			t.Fatal(err)
		}
		replicas := []replica{newReplica(t, store), newReplica(t, store), newReplica(t, store)}
		var wait sync.WaitGroup
		welcome := make(chan string, len(replicas))
		for i, r := range replicas {
			wait.Go(func() {
				tried(t, func() error {
					text, err := r.claimBot(t.Context(), from(fmt.Sprint(i)), claim.Code)
					if strings.HasPrefix(text, "Welcome") {
						welcome <- text
					}
					return err
				})
			})
		}
		wait.Wait()
		last := newReplica(t, store)
		if n := len(last.register.withRole(toolgroups.RoleOwner)); n != 1 || len(welcome) != 1 {
			t.Fatalf("%d owners, %d were welcomed", n, len(welcome))
		}
	}
}

func TestReplicasShowOneCodeThatAllKnow(t *testing.T) {
	store := openStore(t)
	secret, now := []byte("0123456789abcdef"), time.Now()
	codes := make(chan Claim, 3)
	var wait sync.WaitGroup
	for range 3 {
		wait.Go(func() {
			claim, err := SharedClaim(t.Context(), store, now, secret)
			if err != nil {
				t.Error(err)
			}
			codes <- claim
		})
	}
	wait.Wait()
	first := <-codes
	for range 2 {
		if next := <-codes; next.Code != first.Code || !next.Until.Equal(first.Until) || !ClaimPattern.MatchString("claim "+next.Code) {
			t.Errorf("codes %v and %v", first, next)
		}
	}
	if entry, err := store.Get(t.Context(), claimKey); err != nil || strings.Contains(string(entry.Value), first.Code) {
		t.Errorf("the store has %s (%v)", entry.Value, err)
	}
	later, err := SharedClaim(t.Context(), store, now.Add(ClaimAge), secret)
	if err != nil || later.Code == first.Code {
		t.Errorf("the code is the same after its time: %v", err)
	}
	if _, err := NewClaim(t.Context(), store, now, true); err != nil {
		t.Fatal(err)
	}
	if _, err := SharedClaim(t.Context(), store, now, secret); !errors.Is(err, ErrClaimOpen) {
		t.Errorf("in place of the operator's: %v", err)
	}
}

// However strangers knock at several replicas, the owner is asked once about each.
func TestTheOwnerIsAskedOnceAboutAStrangerWhoKnocksEverywhere(t *testing.T) {
	store := openStore(t)
	replicas := []replica{newReplica(t, store), newReplica(t, store), newReplica(t, store)}
	owned(t, replicas[0])
	for _, r := range replicas[1:] {
		if err := r.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var wait sync.WaitGroup
	for _, r := range replicas {
		for n := range 3 {
			wait.Go(func() {
				tried(t, func() error {
					_, err := r.AskOwner(t.Context(), from(fmt.Sprint("s", n)))
					return err
				})
			})
		}
	}
	wait.Wait()
	n := 0
	for _, err := range store.List(t.Context(), storage.Range{Prefix: queue.OpenPrefix}) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != 3 {
		t.Errorf("%d cards about 3 strangers", n)
	}
}

// A stranger is told once a day in each place, and all together so many times an hour,
// whichever replica hears them and whatever its clock says within the hour.
func TestStrangersAreToldOnceHoweverManyReplicasHearThem(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := strangerNotices{openStore(t)}
		now := time.Now()
		told := map[notice]int{}
		replicas := rapid.IntRange(1, 3).Draw(rt, "replicas")
		users := rapid.IntRange(1, 4).Draw(rt, "users")
		skew := time.Duration(rapid.IntRange(-50, 50).Draw(rt, "skew")) * time.Minute
		var mu sync.Mutex
		var wait sync.WaitGroup
		for r := range replicas {
			wait.Go(func() {
				for u := range users {
					for _, direct := range []bool{true, false} {
						n := notice{user: fmt.Sprint("fake:", u), direct: direct}
						ok, err := b.recordNotice(t.Context(), n, now.Add(time.Duration(r)*skew))
						if err != nil {
							t.Error(err)
						}
						if ok {
							mu.Lock()
							told[n]++
							mu.Unlock()
						}
					}
				}
			})
		}
		wait.Wait()
		for n, times := range told {
			if times > 1 {
				rt.Fatalf("%v was told %d times", n, times)
			}
		}
		for u := range users {
			if told[notice{user: fmt.Sprint("fake:", u), direct: true}] != 1 {
				rt.Fatalf("%d was not told", u)
			}
		}
	})
	b := strangerNotices{openStore(t)}
	answers := 0
	for n := range maxStrangersAnHour + 10 {
		if ok, err := b.recordNotice(t.Context(), notice{user: fmt.Sprint("fake:", n)}, time.Now()); err != nil {
			t.Fatal(err)
		} else if ok {
			answers++
		}
	}
	if answers != maxStrangersAnHour {
		t.Errorf("%d answers in an hour", answers)
	}
	if ok, err := b.recordNotice(t.Context(), notice{user: "fake:0"}, time.Now().Add(-30*24*time.Hour)); err != nil || !ok {
		t.Errorf("a clock that was ahead is right again: told %v, %v", ok, err)
	}
	if err := b.prune(t.Context(), time.Now().Add(strangerInterval)); err != nil {
		t.Fatal(err)
	}
	for entry, err := range b.store.List(t.Context(), storage.Range{Prefix: notifiedPrefix}) {
		t.Fatalf("%s is kept, %v", entry.Key, err)
	}
}

// A removal that was decided on an older record of somebody is decided again.
func TestARemovalSeesWhatAnotherReplicaHasMadeOfSomebody(t *testing.T) {
	store := openStore(t)
	here, other := newReplica(t, store), newReplica(t, store)
	owned(t, here)
	for _, verb := range []string{"add fake:2", "admin fake:3"} {
		if _, err := here.handlePeople(t.Context(), from("1"), verb); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := here.handlePeople(t.Context(), from("1"), "admin fake:2"); err != nil {
		t.Fatal(err)
	}
	text, err := other.handlePeople(t.Context(), from("3"), "remove fake:2")
	if err != nil || !strings.Contains(text, "Only my owner") || here.Role("fake:2") != toolgroups.RoleAdmin {
		t.Errorf("an administrator removed another: %q, %v", text, err)
	}
}

// lateStore is a store whose first answer about a person arrives late at one replica.
type lateStore struct {
	storage.Store
	key      string
	put, get func() // run once, before the answer
}

func (s *lateStore) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	rev, err := s.Store.Put(ctx, key, value, rev)
	s.delay(key, &s.put)
	return rev, err
}

func (s *lateStore) Get(ctx context.Context, key string) (storage.Entry, error) {
	entry, err := s.Store.Get(ctx, key)
	s.delay(key, &s.get)
	return entry, err
}

func (s *lateStore) delay(key string, by *func()) {
	if before := *by; before != nil && key == s.key {
		*by = nil
		before()
	}
}

// Who was removed stays removed, although the store's answer from before that arrives only then.
func TestALateAnswerOfTheStoreUndoesNoRemoval(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T, other replica) {
		tried(t, func() error {
			_, err := other.handlePeople(t.Context(), from("1"), "remove fake:2")
			return err
		})
	}
	deleted := func(t *testing.T, other replica) {
		if err := other.cfg.Store.Delete(t.Context(), accessPrefix+"fake:2", storage.Any); err != nil {
			t.Error(err)
		}
	}
	write := func(t *testing.T, here replica) error {
		_, err := here.handlePeople(t.Context(), from("1"), "admin fake:2")
		return err
	}
	read := func(t *testing.T, here replica) error {
		_, err := here.IsAdmitted(t.Context(), "fake:2")
		return err
	}
	for name, c := range map[string]struct {
		removed func(t *testing.T, other replica)
		asked   func(t *testing.T, here replica) error
		known   bool // other has let them in before, which a read finds
	}{
		"refused while this replica writes": {removed: refused, asked: write},
		"deleted while this replica writes": {removed: deleted, asked: write},
		"deleted while this replica reads":  {removed: deleted, asked: read, known: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				late := &lateStore{Store: store, key: accessPrefix + "fake:2"}
				here, other := newReplica(t, late), newReplica(t, store)
				owned(t, here)
				if err := other.Load(t.Context()); err != nil {
					t.Fatal(err)
				}
				if c.known {
					if _, err := other.handlePeople(t.Context(), from("1"), "add fake:2"); err != nil {
						t.Fatal(err)
					}
				}
				delay := func() {
					here.watch(t)
					synctest.Wait()
					c.removed(t, other)
					<-here.expelled // this replica knows of the removal by now
				}
				if c.known {
					late.get = delay
				} else {
					late.put = delay
				}
				if err := c.asked(t, here); err != nil {
					t.Fatal(err)
				}
				if got := here.Role("fake:2"); got != toolgroups.RoleStranger {
					t.Errorf("removed at another replica, and %v here", got)
				}
			})
		})
	}
}
