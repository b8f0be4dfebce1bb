package bridge_test

import (
	"context"
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
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

func task(key, title, text string) bridge.Submission {
	return bridge.Submission{Key: key, Chat: chats.Chat{Platform: "fake", ID: "1"}, User: "1", Direct: true, Title: title, Text: text}
}

func (r *harness) submit(s bridge.Submission) {
	r.t.Helper()
	if err := r.bridge.Submit(r.t.Context(), s); err != nil {
		r.t.Fatal(err)
	}
}

// results keeps what the bridge tells of tasks, the latest of each.
type results struct {
	mu   sync.Mutex
	all  []bridge.TaskResult
	told chan struct{}
	fail error
}

func newResults() *results { return &results{told: make(chan struct{}, 100)} }

func (r *results) done(_ context.Context, result bridge.TaskResult) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fail; err != nil {
		r.fail = nil
		return err
	}
	r.all = append(r.all, result)
	r.told <- struct{}{}
	return nil
}

func (r *results) next(t *testing.T) bridge.TaskResult {
	t.Helper()
	select {
	case <-r.told:
	case <-t.Context().Done():
		t.Fatal("nothing was told")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[len(r.all)-1]
}

const heading = `\[Scheduled\] `

// A task delivers its final answer alone.
func TestATaskIsAnsweredWithItsFinalAnswerAlone(t *testing.T) {
	var effects sync.Map
	told := newResults()
	r := newHarness(t, twoRounds(&effects), func(c *bridge.Config) { c.Hooks.OnTaskDone = told.done })
	r.submit(task("a.1", "News *of* today", "/clear the desk"))
	got := r.platform.wait(t, 1)
	if want := heading + `News \*of\* today` + "\n\nre: /clear the desk"; got[0].text != want || got[0].to.ReplyTo != "" {
		t.Errorf("delivered %q to %+v, want %q", got[0].text, got[0].to, want)
	}
	result := told.next(t)
	want := bridge.TaskResult{
		Key: "a.1", Chat: chats.Chat{Platform: "fake", ID: "1"}, Owner: "fake:1",
		Session: "fake:1/task/a.1", MessageID: "1", State: receipts.Done,
	}
	if result != want {
		t.Errorf("told %+v, want %+v", result, want)
	}
}

func TestATaskHasAConversationOfItsOwn(t *testing.T) {
	scopes := make(chan toolgroups.Scope, 10)
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		if len(turn.History) != 1 {
			t.Errorf("a turn began with %d messages of history", len(turn.History)-1)
		}
		scopes <- turn.Scope
		return echo(ctx, turn)
	})
	r.accept(direct("1", "hello"))
	r.platform.wait(t, 1)
	if (<-scopes).Scheduled {
		t.Error("a message counts as scheduled")
	}
	for n := range 2 {
		r.submit(task(fmt.Sprint("a.", n), "News", "tell me"))
		r.platform.wait(t, n+2)
		s := <-scopes
		if !s.Scheduled || s.User != "fake:1" || s.Owner != "fake:1" || s.Chat != "fake:1" || s.Role != toolgroups.RoleUser || s.Session != fmt.Sprint("fake:1/task/a.", n) {
			t.Errorf("scope %+v", s)
		}
	}
	conversations, err := conversation.Conversations(t.Context(), r.cfg.Store, "fake:1")
	if err != nil {
		t.Fatal(err)
	}
	var logs []string
	for _, c := range conversations {
		logs = append(logs, c.Log()+" "+c.Title)
	}
	slices.Sort(logs)
	if want := []string{"fake:1/1 hello", "fake:1/task/a.0 News", "fake:1/task/a.1 News"}; !slices.Equal(logs, want) {
		t.Errorf("conversations %q, want %q", logs, want)
	}
}

func TestTheSameTaskIsAnsweredOnce(t *testing.T) {
	told := newResults()
	r := newHarness(t, echo, func(c *bridge.Config) { c.Hooks.OnTaskDone = told.done })
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if err := r.bridge.Submit(t.Context(), task("a.1", "one", "one")); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	told.next(t)
	r.submit(task("a.1", "one", "one"))
	r.restart()
	r.submit(task("a.1", "one", "one"))
	r.submit(task("a.2", "two", "two"))
	if got := r.platform.wait(t, 2); len(got) != 2 || !strings.HasSuffix(got[1].text, "re: two") {
		t.Errorf("delivered %q", texts(got))
	}
}

func TestATaskDoesNotHoldUpItsChatAndIsNotCleared(t *testing.T) {
	s := newSlow()
	r := newHarness(t, s.think)
	r.submit(task("a.1", "News", "slow task"))
	<-s.asked
	r.accept(direct("1", "hello"))
	if got := r.platform.wait(t, 1); got[0].text != "re: hello" {
		t.Errorf("beside a task: %q", got[0].text)
	}
	r.accept(direct("2", "/stop"), direct("3", "/clear"))
	r.platform.wait(t, 3)
	s.free <- struct{}{}
	if got := texts(r.platform.wait(t, 4)); got[3] != heading+"News\n\nre: slow task" {
		t.Errorf("delivered %q", got)
	}
}

// A schedule that says delivered and was not.
func TestAFailureOfATaskIsToldToItsChat(t *testing.T) {
	t.Parallel()
	told := newResults()
	told.fail = errors.New("the store is out of order")
	r := newHarness(t, func(context.Context, agent.Turn) iter.Seq2[agent.Message, error] {
		return func(yield func(agent.Message, error) bool) {
			yield(agent.Message{}, &agent.ModelError{Kind: agent.KindAuth, Err: errors.New("401")})
		}
	}, func(c *bridge.Config) { c.Hooks.OnTaskDone = told.done })
	r.submit(task("a.1", "News", "tell me"))
	result := told.next(t)
	got := r.platform.wait(t, 1)
	if !strings.HasPrefix(got[0].text, heading+"News\n\nI can't answer") || !got[0].explains() {
		t.Errorf("told the chat %+v", got[0])
	}
	if result.Incident == "" || result.MessageID == "" {
		t.Errorf("told %+v", result)
	}
}

// A schedule that says delivered and was not.
func TestOnlyWhatThePlatformConfirmedCountsAsDelivered(t *testing.T) {
	told := newResults()
	r := newHarness(t, answering("one\ftwo"), func(c *bridge.Config) { c.Hooks.OnTaskDone = told.done })
	r.platform.mu.Lock()
	r.platform.fail = func(n int, arrived bool) error {
		if n == 2 && !arrived {
			return &chats.SendError{Outcome: chats.Refused, Err: errors.New("blocked")}
		}
		return nil
	}
	r.platform.mu.Unlock()
	r.submit(task("a.1", "News", "tell me"))
	if result := told.next(t); result.MessageID != "" || result.State != receipts.Failed {
		t.Errorf("told %+v of an answer that was refused in part", result)
	}
}

func TestATaskOfSomebodyWhoIsNoLongerAllowedDoesNotRun(t *testing.T) {
	told := newResults()
	r := newHarness(t, echo, func(c *bridge.Config) { c.Hooks.OnTaskDone = told.done })
	r.stop()
	r.cfg.Access = access.Access{Allow: []string{"fake:2"}}
	r.start()
	r.submit(task("a.1", "News", "tell me"))
	if result := told.next(t); result.State != receipts.Revoked || result.MessageID != "" || result.Session != "" {
		t.Errorf("told %+v", result)
	}
	if got := r.platform.texts(); len(got) != 0 {
		t.Errorf("delivered %q", got)
	}
}

func TestSubmitRefusesWhatCanNotBeAnswered(t *testing.T) {
	s := newSlow()
	r := newHarness(t, s.think, func(c *bridge.Config) { c.Limits.MaxWaiting = 1 })
	nowhere, badKey, nobody := task("a.1", "", ""), task("a/1", "", ""), task("a.1", "", "")
	nowhere.Chat.Platform, nobody.User = "none", ""
	for name, s := range map[string]bridge.Submission{"platform": nowhere, "key": badKey, "user": nobody} {
		if err := r.bridge.Submit(t.Context(), s); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.submit(task("a.1", "one", "slow"))
	<-s.asked
	r.submit(task("a.2", "two", "slow"))
	if err := r.bridge.Submit(t.Context(), task("a.3", "three", "slow")); !errors.Is(err, bridge.ErrBusy) {
		t.Errorf("with a full queue: %v", err)
	}
	close(s.free)
	r.platform.wait(t, 2)
}

// TestATaskSurvivesACrashAtAnyStep kills the bridge at every step of two tasks.
func TestATaskSurvivesACrashAtAnyStep(t *testing.T) {
	t.Parallel()
	diesAtEachStep(t, 15, liveTasks)
}

func liveTasks(t *testing.T, life *mortal) {
	t.Helper()
	var effects sync.Map
	told := newResults()
	r := newHarness(t, silent(twoRounds(&effects)), func(c *bridge.Config) { c.Hooks.OnTaskDone = told.done })
	r.stop()
	store, shown := r.cfg.Store, r.platform
	r.cfg.Store, r.cfg.Platforms = mortalStore{store, life}, []chats.Platform{mortalPlatform{shown, life}}
	r.start()
	tasks := []bridge.Submission{task("0.1", "0", "nothing to tell"), task("a.1", "A", "one"), task("b.1", "B", "two")}
	tasks[0].Trigger, tasks[2].Trigger = receipts.Trigger{Quiet: true, Uses: []string{"x"}}, receipts.Trigger{Hook: "B", Quiet: true}
	for _, s := range tasks {
		// Whoever submits tries again after the restart, until it works.
		_ = r.bridge.Submit(t.Context(), s)
	}
	for range tasks {
		select {
		case <-told.told:
		case <-life.dead:
		}
	}
	r.stop()
	r.cfg.Store, r.cfg.Platforms = store, []chats.Platform{shown}
	r.start()
	for _, s := range tasks {
		r.submit(s)
	}
	waitAnswered(t, shown, "re: one", "re: two")
	r.receipts(len(tasks))
	r.stop()
	for _, result := range told.all {
		if silent := result.Key == "0.1"; result.Silent != silent || result.State != receipts.Done {
			t.Errorf("told %+v", result)
		}
	}
	unmarked, all := map[string]int{}, map[string]bool{}
	for _, s := range shown.sent {
		all[s.text] = true
		if !s.repeat {
			unmarked[s.text]++
		}
	}
	one, two := heading+"A\n\nre: one", hookHeading+"B\n\nre: two"
	if len(all) != 2 || !all[one] || !all[two] || unmarked[one] > 1 || unmarked[two] > 1 {
		t.Errorf("sent %v, without a mark %v", all, unmarked)
	}
	for question, n := range effects.Range {
		// A crash right before the record of a result lets a tool run once more.
		if n.(*atomic.Int32).Load() > 2 {
			t.Errorf("the tool of %q ran %d times", question, n.(*atomic.Int32).Load())
		}
	}
}

// TestATaskThatNoLongerStandsDoesNotBegin: a task waits behind another one, and what started it is changed meanwhile.
func TestATaskThatNoLongerStandsDoesNotBegin(t *testing.T) {
	t.Parallel()
	told, hold, began := newResults(), make(chan struct{}), make(chan struct{})
	var off atomic.Bool
	think := func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		if strings.Contains(turn.History[len(turn.History)-1].Text, "first") {
			close(began)
			<-hold
		}
		return echo(ctx, turn)
	}
	r := newHarness(t, think, func(c *bridge.Config) {
		c.Hooks.OnTaskDone = told.done
		c.Hooks.TaskStands = func(_ context.Context, owner, key string, from receipts.Trigger) (bool, error) {
			if owner != "fake:1" || !strings.HasPrefix(key, "a.") || from.Version != "v" {
				return false, fmt.Errorf("asked about %s of %s, version %q", key, owner, from.Version)
			}
			return !off.Load(), nil
		}
	})
	for n, text := range []string{"first", "second"} {
		s := task(fmt.Sprint("a.", n), "Watch", text)
		s.Trigger = receipts.Trigger{Version: "v"}
		r.submit(s)
	}
	<-began
	off.Store(true)
	close(hold)
	told.next(t)
	told.next(t)
	told.mu.Lock()
	defer told.mu.Unlock()
	for _, result := range told.all { // in any order
		want := receipts.Stopped
		if result.Key == "a.0" { // it had begun
			want = receipts.Done
		}
		if result.State != want || (result.MessageID != "") != (want == receipts.Done) {
			t.Errorf("%s ended as %+v, want %s", result.Key, result, want)
		}
	}
	r.stop()
	if all := strings.Join(r.platform.texts(), "\n"); strings.Contains(all, "second") {
		t.Errorf("shown: %q", all)
	}
}

// putStore fails at the next put if fails is set.
type putStore struct {
	storage.Store
	fails *atomic.Bool
}

func (s putStore) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	if s.fails.CompareAndSwap(true, false) {
		return 0, errFull
	}
	return s.Store.Put(ctx, key, value, rev)
}

// TestATaskThatIsTriedAgainBeginsOnlyIfItStillStands: the store fails before the model is asked, and what started the task is
// removed before the next attempt.
func TestATaskThatIsTriedAgainBeginsOnlyIfItStillStands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told, fails := newResults(), new(atomic.Bool)
		var asked, began atomic.Int64
		r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
			began.Add(1)
			return echo(ctx, turn)
		}, func(c *bridge.Config) {
			c.Store = putStore{c.Store, fails}
			c.Hooks.OnTaskDone = told.done
			c.Hooks.TaskStands = func(context.Context, string, string, receipts.Trigger) (bool, error) {
				first := asked.Add(1) == 1
				fails.Store(first)
				return first, nil
			}
		})
		r.submit(task("a.1", "Watch", "look"))
		if result := told.next(t); result.State != receipts.Stopped || began.Load() != 0 {
			t.Errorf("it ended as %+v, and began %d times", result, began.Load())
		}
		r.stop()
	})
}
