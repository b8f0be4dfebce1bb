package bridge_test

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/storage"
)

// counts are what a bridge has measured.
type counts struct {
	mu sync.Mutex
	of map[queue.Metric]int
}

func (c *counts) measure(_ string, what queue.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[what]++
}

func (c *counts) feedback() [3]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return [3]int{c.of[queue.MeasuredGood], c.of[queue.MeasuredBad], c.of[queue.MeasuredWithdrawn]}
}

func TestFeedbackIsKeptWithTheReceipt(t *testing.T) {
	counted := &counts{of: map[queue.Metric]int{}}
	arrived, release := make(chan struct{}), make(chan struct{})
	twoParts := func(context.Context, agent.Turn) iter.Seq2[agent.Message, error] {
		return func(yield func(agent.Message, error) bool) {
			yield(agent.Message{Role: agent.RoleAssistant, Text: "one\ftwo", Final: true}, nil)
		}
	}
	r := newHarness(t, twoParts, clockAt, func(c *bridge.Config) {
		c.Hooks.Measure = counted.measure
		c.Access.Allow = []string{"fake:1", "fake:2", "fake:3"}
	})
	r.platform.fail = func(n int, after bool) error {
		if n == 2 && !after { // the second part of the first answer
			close(arrived)
			<-release
		}
		return nil
	}
	second := 0
	judge := func(user, on string, what chats.Feedback) {
		t.Helper()
		second++
		r.accept(chats.NewFeedback(group("", "", "").Chat, on, user, what, time.Unix(int64(second), 0)))
	}
	r.accept(group("q", "1", "count"))
	<-arrived
	judge("1", "1", chats.FeedbackGood) // while the answer is under way
	close(release)
	r.platform.wait(t, 2)
	r.receipts(1)
	told := func(id, want string) {
		t.Helper()
		r.accept(group(id, "1", "/why"))
		all := r.platform.until(t, "answer to "+id, func(all []sent) bool { return len(all) > 0 && all[len(all)-1].to.ReplyTo == id })
		if got := all[len(all)-1].text; !strings.Contains(got, want) || want == "" && strings.Contains(got, "Ratings:") {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
	told("w1", "Ratings: 👍 1, 👎 0.")
	judge("2", "2", chats.FeedbackBad)
	judge("3", "2", chats.FeedbackGood)
	told("w2", "👍 2, 👎 1.")
	judge("3", "1", chats.FeedbackBad) // the last one counts, on whichever part
	judge("2", "2", chats.FeedbackNotBad)
	told("w3", "👍 1, 👎 1.")
	if got, want := counted.feedback(), [3]int{2, 2, 1}; got != want {
		t.Errorf("counted are %v, want %v", got, want)
	}
	// None of these is about an answer, from somebody who may talk to the bot, and new.
	judge("3", "2", chats.FeedbackBad)
	judge("1", "q", chats.FeedbackBad)
	judge("1", "3", chats.FeedbackBad) // an answer to a command
	judge("1", "99", chats.FeedbackBad)
	judge("4", "2", chats.FeedbackBad)
	judge("1", "2", "heart")
	r.restart()
	told("w4", "👍 1, 👎 1.")
	judge("1", "2", chats.FeedbackNotGood)
	judge("3", "2", chats.FeedbackNotBad)
	told("w5", "👍 1, 👎 0.") // the other thumb of the third person still stands
	judge("3", "2", chats.FeedbackNotGood)
	told("w6", "")
	if got, want := counted.feedback(), [3]int{2, 2, 4}; got != want {
		t.Errorf("counted are %v, want %v", got, want)
	}
}

// An answer that grows is stored by its preview and by its turn: neither loses what others store with it.
func TestFeedbackOnAGrowingAnswerIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := previewRig(t, words("one two three four five six"))
		r.accept(direct("1", "hello"))
		all := p.until(t, "the preview", func(all []sent) bool { return len(all) == 1 && strings.Contains(all[0].text, "two") })
		r.accept(chats.NewFeedback(chatOne, all[0].id, "1", chats.FeedbackGood, time.Unix(1, 0)))
		p.until(t, "another update", func(all []sent) bool { return strings.Contains(all[0].text, "four") })
		r.closed(1)
		var closed receipts.Receipt
		entry, err := r.cfg.Store.Get(t.Context(), receipts.Prefix+"fake:1/1/text")
		if err == nil {
			err = json.Unmarshal(entry.Value, &closed)
		}
		if good, bad := receipts.CountFeedback(closed.Turn.Feedback); err != nil || good != 1 || bad != 0 {
			t.Errorf("%d and %d: %v", good, bad, err)
		}
		r.stop()
	})
}

// What counts does not hang on the order in which events arrive, nor on how often.
func TestFeedbackOvertakesFeedback(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "db"))
	chat := chats.Chat{Platform: "fake", ID: "1"}
	jobs, key := queue.Store{Store: store}, ""
	tries := 0
	rapid.Check(t, func(rt *rapid.T) {
		tries++
		id := "answer-" + strconv.Itoa(tries)
		key = receipts.Prefix + "fake:1/" + id + "/text"
		receipt := receipts.Receipt{Message: chats.Message{Chat: chat, ID: id, Kind: chats.KindText}, Answer: receipts.Answer{Parts: []receipts.Part{{ID: id}}}}
		if _, err := storage.Save(t.Context(), store, key, receipt, storage.Any); err != nil {
			rt.Fatal(err)
		}
		var events []receipts.Feedback
		last := make(map[string]map[bool]receipts.Feedback)
		for n := range rapid.IntRange(1, 12).Draw(rt, "events") {
			o := receipts.Feedback{
				By:   rapid.SampledFrom([]string{"fake:a", "fake:b", "fake:c"}).Draw(rt, "by"),
				Good: rapid.Bool().Draw(rt, "good"), Given: rapid.Bool().Draw(rt, "given"), At: time.Unix(int64(n+1), 0),
			}
			events = append(events, o)
			if last[o.By] == nil {
				last[o.By] = make(map[bool]receipts.Feedback)
			}
			last[o.By][o.Good] = o
		}
		wantGood, wantBad := 0, 0
		for of := range maps.Values(last) {
			up, down := of[true], of[false]
			switch {
			case up.Given && (!down.Given || up.At.After(down.At)):
				wantGood++
			case down.Given:
				wantBad++
			}
		}
		again := rapid.SampledFrom(events).Draw(rt, "again")
		for _, o := range rapid.Permutation(append(slices.Clone(events), again)).Draw(rt, "arriving") {
			if _, err := turn.SetFeedback(t.Context(), jobs, chat, id, o, func(*receipts.Receipt) bool { return true }); err != nil {
				rt.Fatal(err)
			}
		}
		entry, err := store.Get(t.Context(), key)
		var r receipts.Receipt
		if err == nil {
			err = json.Unmarshal(entry.Value, &r)
		}
		if good, bad := receipts.CountFeedback(r.Turn.Feedback); err != nil || good != wantGood || bad != wantBad {
			rt.Errorf("%d and %d, want %d and %d: %v", good, bad, wantGood, wantBad, err)
		}
	})
}
