package bridge_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// several is some bridges that share a store.
type several []*harness

func newSeveral(t *testing.T, n int, think thinker, change ...func(*bridge.Config)) several {
	t.Helper()
	var all several
	for i := range n {
		all = append(all, newHarness(t, think, append([]func(*bridge.Config){func(cfg *bridge.Config) {
			cfg.Sharing = queue.Sharing{Enabled: true}
			if i > 0 {
				cfg.Store = all[0].cfg.Store
			}
		}}, change...)...))
	}
	pass(t, 60) // they have shared the chats out
	return all
}

// in is a message in a chat.
func in(chat, id, text string) chats.Message {
	m := direct(id, text)
	m.Chat.ID = chat
	return m
}

// sides returns who answers in a chat, and somebody who does not.
func (s several) sides(t *testing.T, chat string) (owner, other *harness) {
	t.Helper()
	s[0].accept(in(chat, "side", "whose is "+chat))
	pass(t, 10)
	for _, r := range s {
		if slices.Contains(r.platform.texts(), "re: whose is "+chat) {
			owner = r
		} else {
			other = r
		}
	}
	if owner == nil || other == nil {
		t.Fatalf("nobody answers in %s", chat)
	}
	return owner, other
}

func (s several) texts() (all []string) {
	for _, r := range s {
		all = append(all, r.platform.texts()...)
	}
	return all
}

// stop ends all and checks that each job was closed.
func (s several) stop(t *testing.T) {
	t.Helper()
	for _, r := range s {
		r.stop()
	}
	for e, err := range s[0].cfg.Store.List(t.Context(), storage.Range{Prefix: queue.OpenPrefix}) {
		t.Errorf("still open: %s (%v)", e.Value, err)
	}
}

// once checks that texts were sent once each, whoever sent them.
func (s several) once(t *testing.T, want ...string) {
	t.Helper()
	all := s.texts()
	for _, text := range want {
		n := 0
		for _, one := range all {
			if one == text {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%q was sent %d times: %q", text, n, all)
		}
	}
}

func TestWhatComesToAnyReplicaIsAnsweredByTheOwnerInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newSeveral(t, 3, echo)
		var want []string
		for n := range 30 {
			all[n%3].accept(in("7", fmt.Sprint(n), fmt.Sprint(n)))
			all[n%2].accept(in("7", fmt.Sprint(n), fmt.Sprint(n))) // the platform says it again
			want = append(want, fmt.Sprint("re: ", n))
		}
		pass(t, 10)
		if got := all.texts(); !slices.Equal(got, want) {
			t.Errorf("answers: %q", got)
		}
		all.stop(t)
	})
}

func TestEditsAndCommandsAtAnotherReplicaTakeEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow()
		all := newSeveral(t, 2, s.think)
		owner, other := all.sides(t, "7")
		other.accept(in("7", "1", "slow one"))
		<-s.asked
		owner.accept(in("7", "2", "two"))
		edit := in("7", "2", "two changed")
		edit.Kind = chats.KindEdit
		other.accept(edit)
		pass(t, 1)
		s.free <- struct{}{}
		pass(t, 1)
		all.once(t, "re: slow one", "re: two changed")
		other.accept(in("7", "3", "slow three"), in("7", "4", "four"))
		<-s.asked
		other.accept(in("7", "5", "/stop"))
		pass(t, 1)
		all.once(t, "Stopped. One waiting message was dropped.")
		owner.accept(in("7", "6", "slow six"))
		<-s.asked
		other.accept(in("7", "7", "/clear"))
		owner.accept(in("7", "8", "eight"))
		pass(t, 1)
		all.once(t, "re: eight")
		if got := strings.Join(all.texts(), "\n"); !strings.Contains(got, "cleared") || strings.Contains(got, "six") || strings.Contains(got, "four") {
			t.Errorf("answers: %s", got)
		}
		if len(other.platform.texts()) > 0 {
			t.Errorf("another replica answered: %q", other.platform.texts())
		}
		all.stop(t)
	})
}

func TestTheLimitsAreThoseOfTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow()
		all := newSeveral(t, 2, s.think, func(cfg *bridge.Config) { cfg.Limits.MaxWaiting = 2 })
		owner, other := all.sides(t, "7")
		other.accept(in("7", "1", "slow one"))
		<-s.asked
		for n := 2; n < 10; n++ {
			[]*harness{owner, other}[n%2].accept(in("7", fmt.Sprint(n), fmt.Sprint("number ", n)))
		}
		pass(t, 1)
		close(s.free)
		pass(t, 10)
		all.once(t, "re: slow one", "re: number 2", "re: number 3")
		if got := all.texts(); len(got) != 5 || strings.Count(strings.Join(got, "\n"), "2 messages are waiting here already") != 1 {
			t.Errorf("answers: %q", got)
		}
		all.stop(t)
	})
}

// A replica leaves whose chats have turns that run and messages that wait.
func TestAReplicaThatLeavesGivesItsChatsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, told := newSlow(), newFollowers()
		all := newSeveral(t, 3, s.think, told.join)
		var want []string
		for n := range 12 {
			for i, text := range []string{"slow a", "b", "c"} {
				text = fmt.Sprint(text, n)
				all[(n+i)%3].accept(in(fmt.Sprint(100+n), fmt.Sprint(i), text))
				want = append(want, "re: "+text)
			}
		}
		pass(t, 10)
		all[0].stop()
		pass(t, 30)
		close(s.free)
		pass(t, 60)
		all.once(t, want...)
		all.stop(t)
		told.whole(t, true)
	})
}

// faulty is a store in which a write, a list or a put goes wrong.
type faulty struct {
	storage.Store
	write func(ops []storage.Op, do func() (storage.Revision, error)) (storage.Revision, error)
	list  func(prefix string) error
	put   func(key string) error
	got   func(key string)
}

func (f *faulty) Get(ctx context.Context, key string) (storage.Entry, error) {
	if f.got != nil {
		defer f.got(key)
	}
	return f.Store.Get(ctx, key)
}

func (f *faulty) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	do := func() (storage.Revision, error) { return f.Store.Write(ctx, ops...) }
	if f.write == nil {
		return do()
	}
	return f.write(ops, do)
}

func (f *faulty) List(ctx context.Context, r storage.Range) iter.Seq2[storage.Entry, error] {
	if f.list != nil {
		if err := f.list(r.Prefix); err != nil {
			return func(yield func(storage.Entry, error) bool) { yield(storage.Entry{}, err) }
		}
	}
	return f.Store.List(ctx, r)
}

func (f *faulty) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	if f.put != nil {
		if err := f.put(key); err != nil {
			return 0, err
		}
	}
	return f.Store.Put(ctx, key, value, rev)
}

var errFaulty = errors.New("the store does not answer")

// The write of a message reports an error, and has happened all the same.
func TestAMessageWhoseWriteReportedAnErrorIsAnsweredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{}
		var failed atomic.Bool
		store.write = func(ops []storage.Op, do func() (storage.Revision, error)) (storage.Revision, error) {
			rev, err := do()
			if strings.HasSuffix(ops[0].Key, "/lost/text") && !failed.Swap(true) {
				return 0, errFaulty
			}
			return rev, err
		}
		all := newSeveral(t, 2, echo, func(cfg *bridge.Config) {
			if store.Store == nil {
				store.Store = cfg.Store
			}
			cfg.Store = store
		})
		owner, _ := all.sides(t, "7")
		if err := owner.bridge.Accept(t.Context(), in("7", "lost", "hello")); !errors.Is(err, errFaulty) {
			t.Errorf("accepted: %v", err)
		}
		pass(t, 10)
		all.once(t, "re: hello")
		all.stop(t)
	})
}

// The same message comes to two replicas at one moment, as it does when a poller goes on that
// was paused: it goes before what comes next.
func TestAMessageThatComesToTwoReplicasKeepsItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{}
		var other *harness
		var offered atomic.Bool
		store.write = func(ops []storage.Op, do func() (storage.Revision, error)) (storage.Revision, error) {
			if strings.HasSuffix(ops[0].Key, "/twice/text") && !offered.Swap(true) {
				other.accept(in("7", "twice", "one"))
			}
			return do()
		}
		all := newSeveral(t, 2, echo, func(cfg *bridge.Config) {
			if store.Store == nil {
				store.Store = cfg.Store
			}
			cfg.Store = store
		})
		var owner *harness
		owner, other = all.sides(t, "7")
		owner.accept(in("7", "twice", "one"), in("7", "next", "two"))
		pass(t, 10)
		if got := owner.platform.texts(); !slices.Equal(got[len(got)-2:], []string{"re: one", "re: two"}) {
			t.Errorf("answers: %q", got)
		}
		all.stop(t)
	})
}

// A replica that works alone does not reach the store for longer than its time to live. What
// comes before its next beat is answered.
func TestWhatComesWhileAReplicaIsNotProvedAliveIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		r := newSeveral(t, 1, echo, func(cfg *bridge.Config) {
			cfg.Store = &faulty{Store: cfg.Store, put: func(key string) error {
				if down.Load() && strings.HasPrefix(key, "replicas/") {
					return errFaulty
				}
				return nil
			}}
		})
		down.Store(true)
		pass(t, 60)
		r[0].accept(in("7", "1", "hello"))
		pass(t, 60)
		down.Store(false)
		pass(t, 20)
		r.once(t, "re: hello")
		r.stop(t)
	})
}

// What waits to be claimed in one chat cannot be: the others do not wait for it.
func TestAChatInTroubleHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		store := &faulty{list: func(prefix string) error {
			if broken.Load() && prefix == queue.OpenPrefix+"fake:100/" {
				return errFaulty
			}
			return nil
		}}
		all := newSeveral(t, 2, echo, func(cfg *bridge.Config) {
			if store.Store == nil {
				store.Store = cfg.Store
			}
			cfg.Store = store
		})
		_, other := all.sides(t, "100")
		broken.Store(true)
		other.accept(in("100", "1", "in trouble"))
		pass(t, 5)
		var want []string
		for n := range 20 {
			all[n%2].accept(in(fmt.Sprint(101+n), "1", fmt.Sprint("well ", n)))
			want = append(want, fmt.Sprint("re: well ", n))
		}
		pass(t, 5)
		// With its trouble a chat of their own is not accepted by their owner; all others are.
		all.once(t, want...)
		broken.Store(false)
		pass(t, 10)
		all.once(t, "re: in trouble")
		all.stop(t)
	})
}

// dead has others take all replicas for dead.
func (s several) dead(t *testing.T) {
	t.Helper()
	for e, err := range s[0].cfg.Store.List(t.Context(), storage.Range{Prefix: "replicas/member/"}) {
		if err == nil {
			err = s[0].cfg.Store.Delete(t.Context(), e.Key, storage.Any)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A replica loses its chats and gets them back while it is about to close a job.
func TestAJobIsClosedAcrossLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		r := newSeveral(t, 1, echo, func(cfg *bridge.Config) {
			cfg.Store = &faulty{Store: cfg.Store, write: func(ops []storage.Op, do func() (storage.Revision, error)) (storage.Revision, error) {
				if ops[0].Key == receipts.Prefix+"fake:7/1/text" {
					<-hold
				}
				return do()
			}}
		})
		r[0].accept(in("7", "1", "hello"))
		pass(t, 1)
		r.dead(t)
		pass(t, 30)
		r[0].accept(in("7", "2", "again"))
		pass(t, 10)
		close(hold)
		pass(t, 10)
		r.once(t, "re: hello", "re: again")
		r.stop(t)
	})
}

// A tool ignores that its turn has ended when its replica was taken for dead: nobody in
// another chat waits for it.
func TestAToolThatHangsHoldsUpNoTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		var once sync.Once
		r := newSeveral(t, 1, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
			if turn.History[len(turn.History)-1].Text == "hang" {
				once.Do(func() { <-free })
			}
			return echo(ctx, turn)
		})
		r[0].accept(in("7", "1", "hang"))
		pass(t, 1)
		r.dead(t)
		pass(t, 30)
		r[0].accept(in("8", "1", "hello"), in("9", "1", "you"))
		pass(t, 10)
		r.once(t, "re: hello", "re: you")
		close(free)
		pass(t, 30)
		r.once(t, "re: hang")
		r.stop(t)
	})
}

// A bridge whose time ends while it begins has left the others when Run returns.
func TestABridgeThatEndsWhileItBeginsLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, echo)
		r.stop()
		ctx, cancel := context.WithCancel(t.Context())
		store := r.cfg.Store
		r.cfg.Sharing = queue.Sharing{Enabled: true}
		r.cfg.Store = &faulty{Store: store, got: func(key string) {
			if key == "numbers" { // what is read last
				cancel()
			}
		}}
		b, err := bridge.New(r.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Run(ctx); err != nil {
			t.Logf("run: %v", err)
		}
		pass(t, 60)
		for e, err := range store.List(t.Context(), storage.Range{Prefix: "replicas/member/"}) {
			t.Errorf("still there: %s, %v", e.Value, err)
		}
	})
}

// Unclaimed jobs that others have left are answered by a process that works alone, too.
func TestOffersAreAnsweredByAProcessThatWorksAlone(t *testing.T) {
	r := newHarness(t, echo)
	r.stop()
	unclaimed := queue.Store{Store: r.cfg.Store, LeaseToken: func(chats.Chat) string { return "" }, Base: new(atomic.Int64)}
	if added, err := unclaimed.Add(t.Context(), &queue.Run{Job: queue.Job{Message: direct("1", "hello"), State: receipts.Open, Unclaimed: true, Unstarted: true}}); !added || err != nil {
		t.Fatal(added, err)
	}
	r.start()
	waitAnswered(t, r.platform, "re: hello")
	r.stop()
	several{r}.stop(t)
}

// A refused message that an earlier version left unclaimed is dropped, and its chat goes on.
func TestAnUnclaimedJobWithAReceiptHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newSeveral(t, 2, echo)
		owner, other := all.sides(t, "7")
		other.accept(in("7", "1", "one"))
		pass(t, 1)
		j := &queue.Run{Job: queue.Job{Message: in("7", "2", "two"), State: receipts.Open, Unclaimed: true, Unstarted: true}}
		job, err := j.NewOps()
		if err != nil {
			t.Fatal(err)
		}
		receipt, err := (&receipts.Receipt{Message: j.Message, State: receipts.Refused}).Ops(storage.Absent)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := owner.cfg.Store.Write(t.Context(), append(job, receipt...)...); err != nil { // at once: a replica watches
			t.Fatal(err)
		}
		owner.accept(in("7", "3", "three"))
		pass(t, 10)
		all.once(t, "re: one", "re: three")
		all.stop(t)
	})
}

// A message that a replica accepted which answered in the chat no more stays behind what was
// unclaimed before it.
func TestWhatHasNotBegunStaysBehindAnEarlierUnclaimedJob(t *testing.T) {
	r := newHarness(t, echo)
	r.stop()
	mark := ""
	former := queue.Store{Store: r.cfg.Store, LeaseToken: func(chats.Chat) string { return mark }, Base: new(atomic.Int64)}
	for i, text := range []string{"one", "two", "three"} {
		j := &queue.Run{Job: queue.Job{Message: direct(text, text), State: receipts.Open, Unclaimed: i != 1, Unstarted: true}}
		if !j.Unclaimed {
			j.LeaseToken = "former"
		}
		if added, err := former.Add(t.Context(), j); !added || err != nil {
			t.Fatal(added, err)
		}
	}
	r.start()
	if got := texts(r.platform.wait(t, 3)); !slices.Equal(got, []string{"re: one", "re: two", "re: three"}) {
		t.Errorf("answers: %q", got)
	}
}

// What has begun in a chat goes on before what waits there unclaimed from earlier, and takes no other
// question's answer for its own.
func TestWhatHasBegunGoesBeforeAnEarlierUnclaimedJob(t *testing.T) {
	called := make(chan struct{}, 1)
	var going atomic.Bool
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		return func(yield func(agent.Message, error) bool) {
			last := turn.History[len(turn.History)-1].Text
			if last == "offered" || going.Load() {
				echo(ctx, turn)(yield)
				return
			}
			if last == "begun" && (!yield(agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "1", Name: "read_file", Arguments: "{}"}}}, nil) ||
				!yield(agent.Message{Role: agent.RoleTool, CallID: "1", Text: "what is in it"}, nil)) {
				return
			}
			called <- struct{}{}
			<-ctx.Done()
			yield(agent.Message{}, context.Cause(ctx))
		}
	})
	r.accept(direct("0", "offered"))
	waitAnswered(t, r.platform, "re: offered")
	r.accept(direct("2", "begun"))
	<-called
	r.stop()
	unclaimed := queue.Store{Store: r.cfg.Store, LeaseToken: func(chats.Chat) string { return "" }, Base: new(atomic.Int64)}
	offer, err := json.Marshal(queue.Job{Message: direct("1", "offered"), State: receipts.Open, Unclaimed: true, Unstarted: true, Seq: 1})
	if err != nil {
		t.Fatal(err)
	}
	j := &queue.Run{Job: queue.Job{Message: direct("1", "offered"), State: receipts.Open, Unclaimed: true, Unstarted: true}}
	if added, err := unclaimed.Add(t.Context(), j); !added || err != nil {
		t.Fatal(added, err)
	}
	if _, err := r.cfg.Store.Put(t.Context(), queue.OpenPrefix+j.Key(), offer, storage.Any); err != nil {
		t.Fatal(err)
	}
	changes := r.cfg.Store.Watch(t.Context(), queue.OpenPrefix+j.Key())
	r.start()
	<-called
	for e, err := range changes {
		var taken queue.Job
		if err := cmp.Or(err, json.Unmarshal(e.Value, &taken)); err != nil {
			t.Fatal(err)
		}
		if taken.LeaseToken != "" {
			break
		}
	}
	going.Store(true)
	r.restart()
	if got := texts(r.platform.wait(t, 3)); !slices.Equal(got[1:], []string{"re: what is in it", "re: offered"}) {
		t.Errorf("answers: %q", got)
	}
}

// A job whose chat was given away is left as it is.
func TestAJobIsNotTakenInAChatThatWasGivenAway(t *testing.T) {
	r := newHarness(t, echo)
	r.stop() // it would take the job itself when it starts
	store := r.cfg.Store
	mark := "former"
	s := queue.Store{Store: store, LeaseToken: func(chats.Chat) string { return mark }, Base: new(atomic.Int64)}
	j := &queue.Run{Job: queue.Job{Message: direct("x", "hello"), State: receipts.Open, LeaseToken: "former"}}
	if added, err := s.Add(t.Context(), j); !added || err != nil {
		t.Fatal(added, err)
	}
	mark = ""
	if taken, err := s.Claim(t.Context(), j); taken || err != nil {
		t.Errorf("taken: %v, %v", taken, err)
	}
	if known, err := s.Load(t.Context(), j.Key()); err != nil || known.Unclaimed || known.LeaseToken != "former" {
		t.Errorf("it is %+v, %v", known, err)
	}
}

// An edit that is too large is dropped, whoever it comes to.
func TestAnEditThatIsTooLargeIsDroppedAtAnotherReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newSeveral(t, 2, echo)
		owner, other := all.sides(t, "7")
		edit := in("7", "1", strings.Repeat("x", storage.MaxValue))
		edit.Kind = chats.KindEdit
		owner.accept(edit)
		other.accept(edit)
		all.stop(t)
	})
}

// A chat moves to one of another replica while a turn runs in it.
func TestAChatMovesToAnotherReplica(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"101", "102", "104"} {
		for _, at := range []int{0, 1} {
			synctest.Test(t, func(t *testing.T) {
				s := newSlow()
				all := newSeveral(t, 2, s.think)
				from, here, there := in("99", "1", "slow one"), in("99", "2", "two"), in(to, "1", "three")
				all[at].accept(from, here)
				<-s.asked
				if err := all[at].bridge.Moved(t.Context(), from.Chat, there.Chat); err != nil {
					t.Fatal(err)
				}
				pass(t, 10)
				all[1-at].accept(there)
				all[at].accept(in("99", "4", "late"))
				pass(t, 10)
				close(s.free)
				pass(t, 20)
				all.once(t, "re: slow one", "re: two", "re: three", "re: late")
				all[at].accept(in(to, "5", "end"))
				pass(t, 10)
				all.once(t, "re: end")
				all.stop(t)
			})
		}
	}
}
