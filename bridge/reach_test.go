package bridge_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/receipts"
)

// In a chat that has blocked the bot, tasks cost no model call: they pause until it can write there again, are tried
// once a day, and administrators are told once.
func TestTasksPauseWhereTheBotIsBlocked(t *testing.T) {
	var calls atomic.Int32
	var blocked atomic.Bool
	var mu sync.Mutex
	told := map[string]string{}
	results, c := newResults(), &clock{}
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		calls.Add(1)
		return echo(ctx, turn)
	}, func(cfg *bridge.Config) {
		cfg.Now = c.Now
		cfg.Hooks.OnTaskDone = results.done
		cfg.Hooks.Report = func(_ context.Context, key, text string) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			told[key] = text
			return 1, nil
		}
	})
	r.platform.mu.Lock()
	r.platform.fail = func(_ int, arrived bool) error {
		if blocked.Load() && !arrived {
			return &chats.SendError{Outcome: chats.Refused, Unreachable: true, Err: errors.New("403 Forbidden: bot was blocked by the user")}
		}
		return nil
	}
	r.platform.mu.Unlock()
	run := func(key string) bridge.TaskResult {
		t.Helper()
		r.submit(task(key, "News", "tell me"))
		return results.next(t)
	}
	want := func(what string, got bridge.TaskResult, paused bool, made int32) {
		t.Helper()
		if n := calls.Load(); got.Paused != paused || n != made {
			t.Errorf("%s: %+v after %d calls of the model, want %d", what, got, n, made)
		}
	}
	want("before", run("a.1"), false, 1)
	blocked.Store(true)
	want("the first that is refused", run("a.2"), false, 2)
	for _, key := range []string{"a.3", "a.4", "a.5"} {
		want("blocked", run(key), true, 2)
	}
	r.restart()
	want("after a restart", run("a.6"), true, 2)
	c.advance(25 * time.Hour)
	want("a day later", run("a.7"), false, 3)
	want("then", run("a.8"), true, 3)
	blocked.Store(false)
	if err := r.bridge.SetMember(t.Context(), chatOne, true); err != nil {
		t.Fatal(err)
	}
	if got := run("a.9"); got.MessageID == "" || got.State != receipts.Done {
		t.Errorf("unblocked: %+v", got)
	}
	if err := r.bridge.SetMember(t.Context(), chatOne, false); err != nil {
		t.Fatal(err)
	}
	want("removed", run("a.10"), true, 4)
	r.accept(direct("1", "I am back")) // the platform told nothing
	r.platform.until(t, "answer", func(all []sent) bool { return all[len(all)-1].text == "re: I am back" })
	if got := run("a.11"); got.Paused || got.MessageID == "" {
		t.Errorf("after a message: %+v", got)
	}
	if err := r.bridge.SetMember(t.Context(), chatOne, false); err != nil {
		t.Fatal(err)
	}
	r.restart()
	r.accept(direct("2", "I am here")) // the first message that the new process sees
	r.platform.until(t, "answer", func(all []sent) bool { return all[len(all)-1].text == "re: I am here" })
	if got := run("a.12"); got.Paused || got.MessageID == "" {
		t.Errorf("after a restart and a message: %+v", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(told) != 2 { // at most once a day
		t.Errorf("administrators are told %q", told)
	}
	for _, text := range told {
		if !strings.Contains(text, "fake:1") {
			t.Errorf("administrators are told %q", text)
		}
	}
}
