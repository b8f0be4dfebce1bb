package bridge_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
)

const unreadable = "I can no longer read a part"

// put writes a value, whatever is there.
func (r *harness) put(key, value string) {
	r.t.Helper()
	if _, err := r.cfg.Store.Put(r.t.Context(), key, []byte(value), storage.Any); err != nil {
		r.t.Fatal(err)
	}
}

// appendRecord writes a record behind the last of the first conversation.
func (r *harness) appendRecord(record storage.Record) {
	r.t.Helper()
	const log = "fake:1/1"
	last := storage.Position(0)
	for record, err := range r.cfg.Store.Records(r.t.Context(), log, storage.Query{Backward: true, Limit: 1}) {
		if err != nil {
			r.t.Fatal(err)
		}
		last = record.Pos
	}
	if _, err := r.cfg.Store.Append(r.t.Context(), log, last, record); err != nil {
		r.t.Fatal(err)
	}
}

// letters are the incidents of what was set aside, by key.
func (r *harness) deadLetters() map[string]string {
	r.t.Helper()
	all, err := queue.ListDeadLetters(r.t.Context(), r.cfg.Store)
	if err != nil {
		r.t.Fatal(err)
	}
	byKey := map[string]string{}
	for _, a := range all {
		byKey[a.Key] = a.Incident
	}
	return byKey
}

func TestAnOpenJobThatDoesNotDecodeIsSetAside(t *testing.T) {
	r := newHarness(t, echo, func(c *bridge.Config) { c.Limits.DrainTimeout = 20 * time.Second })
	r.stop()
	r.put("job/open/fake:1/7/text", "{")
	r.put("job/open/fake:1/8/card", "null and void")
	r.put("job/open/strange", "{")
	for range 2 { // the second time there is nothing to tell
		r.start()
		told := r.platform.wait(t, 1)
		r.accept(edit(direct("none", ""), "x")) // when all is resumed
		letters := r.deadLetters()
		if len(told) != 1 || !strings.Contains(told[0].text, unreadable) || !strings.Contains(told[0].text, "please send it again") ||
			!strings.Contains(told[0].text, "Incident "+letters["job/open/fake:1/7/text"]) {
			t.Errorf("told %q", texts(told))
		}
		if len(letters) != 3 {
			t.Errorf("set aside: %v", letters)
		}
		r.jobs(queue.OpenPrefix, func([]queue.Job) bool { return openJobs(t, r.cfg.Store) == 0 })
		r.stop()
	}
	r.start()
	r.accept(direct("7", "again"), direct("9", "/status"))
	got := r.platform.wait(t, 3)
	if all := fmt.Sprint(texts(got)); !strings.Contains(all, "re: again") || strings.Count(all, unreadable) != 1 {
		t.Errorf("answers: %s", all)
	}
}

func TestAReceiptThatDoesNotDecodeStillStopsDuplicates(t *testing.T) {
	r := newHarness(t, echo)
	r.accept(direct("1", "one"))
	r.receipts(1)
	r.stop()
	r.put("job/done/fake:1/1/text", "{")
	r.start()
	r.accept(direct("1", "one"), direct("2", "two"))
	if got := texts(r.platform.wait(t, 2)); got[1] != "re: two" {
		t.Errorf("answers: %q", got)
	}
	r.jobs("aside/", func(all []queue.Job) bool { return len(all) == 1 })
	r.jobs("job/done/", func(all []queue.Job) bool { return len(all) == 2 }) // all of them decode
	if letters := r.deadLetters(); letters["job/done/fake:1/1/text"] == "" {
		t.Errorf("set aside: %v", letters)
	}
}

func TestATurnDoesNotWaitForACardThatDoesNotDecode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &execTools{}
		r := w.guarded(t)
		r.accept(direct("1", "run a"))
		card := r.platform.wait(t, 1)[0]
		r.untilHeld()
		r.stop()
		token, _, _ := strings.Cut(card.button(t, "Allow once"), "-")
		r.put("card/"+token, "{")
		r.start()
		r.platform.until(t, "answer", func(all []sent) bool {
			return strings.Contains(fmt.Sprint(texts(all)), "its request for approval is gone")
		})
		if letters := r.deadLetters(); letters["card/"+token] == "" || len(w.commands()) != 0 {
			t.Errorf("set aside: %v, ran %v", letters, w.commands())
		}
		// While it runs, too.
		r.accept(direct("2", "run b"))
		shown := r.platform.until(t, "second card", func(all []sent) bool {
			return slices.ContainsFunc(all, func(s sent) bool { return s.buttons != nil && s.id != card.id })
		})
		card = shown[slices.IndexFunc(shown, func(s sent) bool { return s.buttons != nil && s.id != card.id })]
		r.untilHeld()
		pass(t, 1) // the card is on record as shown, and what is done at the start has not met it
		if open := r.stored(queue.OpenPrefix); len(open) != 1 {
			t.Fatalf("open are %v", open)
		}
		token, _, _ = strings.Cut(card.button(t, "Allow once"), "-")
		r.put("card/"+token, "{")
		r.accept(pressOn(card, "p", "1", card.button(t, "Allow once")))
		told := r.platform.until(t, "notice", func(all []sent) bool {
			return strings.Count(fmt.Sprint(texts(all)), unreadable) > strings.Count(fmt.Sprint(texts(shown)), unreadable)
		})
		if incident := r.deadLetters()["card/"+token]; incident == "" || !strings.Contains(fmt.Sprint(texts(told)), "Incident "+incident) {
			t.Errorf("told %q", texts(told))
		}
		if got := r.platform.toast(t, "p"); got != "These buttons are out of date." {
			t.Errorf("toast %q", got)
		}
		r.platform.until(t, "second answer", func(all []sent) bool {
			return strings.Count(fmt.Sprint(texts(all)), "its request for approval is gone") == 2
		})
	})
}

// A turn whose card does not decode any more waits no longer than its time.
func TestATurnGoesOnWhenTheTimeOfADamagedCardIsOver(t *testing.T) {
	t.Parallel()
	w, c := &execTools{}, &clock{}
	r := w.guarded(t, func(cfg *bridge.Config) { cfg.Now = c.Now })
	r.accept(direct("1", "run a"))
	card := r.platform.wait(t, 1)[0]
	r.untilHeld()
	r.jobs(queue.OpenPrefix, func(open []queue.Job) bool { return len(open) == 1 })
	token, _, _ := strings.Cut(card.button(t, "Allow once"), "-")
	r.put("card/"+token, "{")
	c.advance(16 * time.Minute)
	r.platform.until(t, "answer", func(all []sent) bool {
		return strings.Contains(fmt.Sprint(texts(all)), "its request for approval is gone")
	})
	if letters := r.deadLetters(); letters["card/"+token] == "" || len(w.commands()) != 0 {
		t.Errorf("dead letters %v, ran %v", letters, w.commands())
	}
}

func TestARecordOfAConversationThatDoesNotDecodeIsSkipped(t *testing.T) {
	seen := make(chan int, 10)
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		seen <- len(turn.History)
		return echo(ctx, turn)
	}, func(c *bridge.Config) { c.Limits.DrainTimeout = 20 * time.Second })
	r.accept(direct("1", "one"))
	r.platform.wait(t, 1)
	r.stop()
	r.appendRecord(storage.Record{Data: []byte("{")})
	r.appendRecord(storage.Record{Label: agent.LabelLoad, Data: []byte("{")})
	r.appendRecord(storage.Record{Label: agent.LabelSummary, Data: []byte("{")})
	for n, text := range []string{"two", "three"} {
		r.start()
		r.accept(direct(text, text))
		waitAnswered(t, r.platform, "re: "+text)
		<-seen
		if got := n; got == 0 {
			r.platform.wait(t, 5)
		}
		r.stop()
	}
	if got := <-seen; got != 5 {
		t.Errorf("the last turn saw %d messages, want 5", got)
	}
	letters, all := r.deadLetters(), fmt.Sprint(r.platform.texts())
	for pos := 3; pos <= 5; pos++ {
		incident := letters[fmt.Sprint("log/fake:1/1/", pos)]
		if incident == "" || strings.Count(all, "Incident "+incident) != 1 {
			t.Errorf("record %d: %v, told %s", pos, letters, all)
		}
	}
}

// TestATurnWithALostRecordRunsNothingTwice loses what a turn has written about a
// call, which the restart would otherwise make again.
func TestATurnWithALostRecordRunsNothingTwice(t *testing.T) {
	began := make(chan struct{}, 10)
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		if turn.History[len(turn.History)-1].Text == "last" {
			return echo(ctx, turn)
		}
		return func(yield func(agent.Message, error) bool) {
			if !yield(agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "0", Name: "x"}}}, nil) {
				return
			}
			began <- struct{}{}
			<-ctx.Done()
			yield(agent.Message{}, context.Cause(ctx))
		}
	})
	r.accept(direct("1", "go"))
	<-began
	r.stop()
	r.appendRecord(storage.Record{Data: []byte("{")})
	r.start()
	got := r.platform.until(t, "notice and answer", func(all []sent) bool { return len(all) == 2 })
	if all := fmt.Sprint(texts(got)); !strings.Contains(all, unreadable) || !strings.Contains(all, "Something went wrong inside me") || len(began) > 0 {
		t.Errorf("told %s, begun again: %d", all, len(began))
	}
	r.accept(direct("2", "last"))
	if got := r.platform.wait(t, 3)[2].text; got != "re: last" {
		t.Errorf("got %q", got)
	}
}

func TestALostSessionBringsNothingBackThatWasCleared(t *testing.T) {
	t.Parallel()
	seen := make(chan int, 10)
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		seen <- len(turn.History)
		return echo(ctx, turn)
	})
	r.accept(direct("1", "one"))
	r.platform.wait(t, 1)
	r.accept(direct("2", "/clear"))
	r.platform.wait(t, 2)
	r.stop()
	r.put("session/fake:1", "{")
	r.start()
	r.accept(direct("3", "three"), direct("4", "/status"))
	waitAnswered(t, r.platform, "re: three", unreadable, "Running since")
	if first, second := <-seen, <-seen; first != 1 || second != 1 {
		t.Errorf("the turns saw %d and %d messages", first, second)
	}
	if letters := r.deadLetters(); letters["session/fake:1"] == "" {
		t.Errorf("set aside: %v", letters)
	}
}
