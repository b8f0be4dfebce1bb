package bridge_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"os"
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
	"oneclaw/bridge/platformtest"
	"oneclaw/bridge/privacy"
	"oneclaw/storage"
)

const gone = "I have forgotten you: your data is deleted."

// spoken is a bridge to which Ann (1) has said secrets in many ways, and Bob (6) something else,
// and the card that asks Ann whether she wants to be forgotten.
func spoken(t *testing.T, think thinker, change ...func(*bridge.Config)) (*harness, sent) {
	t.Helper()
	r := newHarness(t, think, append(change, func(cfg *bridge.Config) { cfg.Access.Admins = []string{"fake:1"} })...)
	thread := direct("t1", "secret thread")
	thread.Chat.Thread = "t"
	quoted := group("g3", "6", "Bob once more")
	say := func(m chats.Message, answers int) {
		t.Helper()
		r.accept(m)
		r.platform.wait(t, answers)
	}
	say(direct("1", "secret one"), 1)
	say(direct("2", "/clear"), 2)
	say(direct("3", "secret two"), 3)
	say(thread, 4)
	say(group("g1", "1", "secret in the group"), 5)
	say(group("g2", "6", "Bob has his say"), 6)
	say(group("g4", "1", "secret again"), 7)
	say(quoted, 8)
	say(group("g5", "1", "/observe on"), 9)
	heard := group("g6", "1", "secret aside")
	heard.Kind = chats.KindAmbient
	r.accept(heard)
	for i, chat := range []chats.Chat{{Platform: "fake", ID: "1"}, {Platform: "fake", ID: "g"}} {
		s := bridge.Submission{Key: fmt.Sprint("task", i), Chat: chat, User: "1", Direct: i == 0, Title: "Secret title", Text: "secret task"}
		if err := r.bridge.Submit(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		r.platform.wait(t, 10+i)
	}
	pass(t, 1)
	r.accept(direct("5", "/forget"))
	return r, r.platform.wait(t, 12)[11]
}

// placesOf are the places of a store in which there is a text.
func placesOf(t *testing.T, store storage.Store, text string) (found []string) {
	t.Helper()
	add := func(place string, data []byte) {
		if bytes.Contains(bytes.ToLower(data), []byte(text)) {
			found = append(found, place)
		}
	}
	for e, err := range store.List(t.Context(), storage.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		add(e.Key, e.Value)
	}
	for log, err := range store.Logs(t.Context(), storage.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		for record, err := range store.Records(t.Context(), log, storage.Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			add(log, record.Data)
		}
	}
	return found
}

func TestForgetTakesAllOfAPersonAway(t *testing.T) {
	var seen sync.Map // the last history by question
	think := func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		seen.Store(turn.History[len(turn.History)-1].Text, turn.History)
		return echo(ctx, turn)
	}
	synctest.Test(t, func(t *testing.T) {
		told := []string{}
		r, card := spoken(t, think, func(cfg *bridge.Config) {
			cfg.Hooks.Forget = func(_ context.Context, user string, direct chats.Chat) error {
				told = append(told, user, direct.String())
				return nil
			}
		})
		if n := len(placesOf(t, r.cfg.Store, "secret")); n < 20 {
			t.Fatalf("only %d places have the secrets", n)
		}
		r.accept(pressOn(card, "p1", "1", card.button(t, "Keep all")))
		r.platform.until(t, "the end of the question", func(all []sent) bool { return all[11].text == "I have forgotten nothing." })
		if n := len(placesOf(t, r.cfg.Store, "secret")); n < 20 {
			t.Fatalf("only %d places have the secrets that Ann wants to be kept", n)
		}
		r.accept(direct("6", "/forget"))
		card = r.platform.wait(t, 13)[12]
		r.accept(pressOn(card, "p2", "1", card.button(t, "Forget me")))
		if got := r.platform.wait(t, 14)[13].text; got != gone {
			t.Errorf("answered %q", got)
		}
		pass(t, 60)
		if found := placesOf(t, r.cfg.Store, "secret"); len(found) > 0 {
			t.Errorf("there are still secrets in %q", found)
		}
		for _, place := range placesOf(t, r.cfg.Store, `"by":"fake:1"`) {
			if strings.HasPrefix(place, conversation.ConversationPrefix) {
				t.Errorf("%s still names who asked", place)
			}
		}
		if strings.Join(told, " ") != "fake:1 fake:1 fake:1 fake:1" { // it is erased twice
			t.Errorf("others were told of %q", told)
		}
		r.did(t, "forget fake:1 Ann fake:1 ", "clear fake:1 Ann fake:1 fake:1/1")

		// What comes again is not answered again; what Bob has said is still there.
		r.accept(direct("1", "secret one"), group("g7", "6", "what did I say?"), direct("7", "hello"), direct("8", "/undo"))
		got := texts(r.platform.wait(t, 17)[14:])
		if len(got) != 3 || !strings.Contains(strings.Join(got, "|"), "There is nothing to undo") {
			t.Errorf("then there stands %q", got)
		}
		history, _ := seen.Load("what did I say?")
		var said []string
		for _, m := range history.([]agent.Message) {
			said = append(said, m.Text)
		}
		if strings.Join(said, "|") != "Bob has his say|re: Bob has his say|Bob once more|re: Bob once more|what did I say?" {
			t.Errorf("the group goes on with %q", said)
		}
		history, _ = seen.Load("hello")
		if n := len(history.([]agent.Message)); n != 1 {
			t.Errorf("the direct chat goes on with %d messages", n)
		}
	})
}

// What docs/privacy.md calls kept is in the question, so that the user does not find out later.
func TestTheQuestionOfForgetNamesAllThatIsKept(t *testing.T) {
	r := newHarness(t, echo)
	r.accept(direct("1", "/forget"))
	_, asked, _ := strings.Cut(r.platform.wait(t, 1)[0].text, "I keep:")
	names := map[string]string{ // what a row of the table begins with, and its name in the question
		"model usage":                         "how much you have used",
		"that the bot was blocked":            "", // not by who can send /forget
		"that the bot has introduced itself":  "", // of the chat alone, and names nobody
		"who may talk":                        "your permission to talk to me",
		"strangers":                           "", // who may send /forget has been let in
		"in the conversation of another user": "your id where you allowed or changed something for others",
		"who made `/observe on`":              "your id where you allowed or changed something for others",
		"the audit":                           "the administrators' audit",
	}
	page, err := os.ReadFile("../docs/privacy.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		if len(cells) < 4 || !strings.HasPrefix(cells[3], "kept") {
			continue
		}
		rows++
		known := false
		for begins, name := range names {
			if strings.HasPrefix(cells[0], "| "+begins) {
				if known = true; !strings.Contains(asked, name) {
					t.Errorf("the question does not say that the bot keeps %s", cells[0])
				}
			}
		}
		if !known {
			t.Errorf("name in the question what the page says is kept: %s", cells[0])
		}
	}
	if rows != len(names) {
		t.Errorf("the page has %d rows of what is kept, want %d", rows, len(names))
	}
}

// TestForgetOutlivesAFailedWriteAndARestart lets the store fail once at every write, after it or
// before it, with a restart behind that.
func TestForgetOutlivesAFailedWriteAndARestart(t *testing.T) {
	t.Parallel()
	writes := forgetsAcross(t, 1000)
	for fails := range platformtest.Steps(t, 1, writes) {
		t.Run(fmt.Sprint("step ", fails), func(t *testing.T) { forgetsAcross(t, fails) })
	}
}

func forgetsAcross(t *testing.T, fails int) (writes int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, card := spoken(t, echo)
		r.stop()
		store, f := r.cfg.Store, &flaw{fails: fails}
		r.cfg.Store = leakyStore{flakyStore{Store: store, flaw: f}}
		r.start()
		press := pressOn(card, "p", "1", card.button(t, "Forget me"))
		for r.bridge.Accept(t.Context(), press) != nil {
			pass(t, 1)
		}
		for f.count() < fails && f.moves(t) {
		}
		r.cfg.Store = store
		r.restart()
		r.platform.until(t, "the answer", func(all []sent) bool { return all[len(all)-1].text == gone })
		pass(t, 300)
		if found := placesOf(t, store, "secret"); len(found) > 0 {
			t.Errorf("there are still secrets in %q", found)
		}
		if found := placesOf(t, store, "bob once more"); len(found) == 0 {
			t.Error("what Bob said is gone")
		}
		writes = f.count()
	})
	return writes
}

// leakyStore lets removals fail, too.
type leakyStore struct{ flakyStore }

func (s leakyStore) Drop(ctx context.Context, log string) error {
	return s.flaw.around(func() error { return s.Store.Drop(ctx, log) })
}

func (s leakyStore) Erase(ctx context.Context, log string, left ...storage.Record) error {
	return s.flaw.around(func() error { return s.Store.Erase(ctx, log, left...) })
}

func (s leakyStore) Delete(ctx context.Context, key string, rev storage.Revision) error {
	return s.flaw.around(func() error { return s.Store.Delete(ctx, key, rev) })
}

func (f *flaw) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.steps
}

// moves reports whether there was a step within half a minute.
func (f *flaw) moves(t *testing.T) bool {
	before := f.count()
	pass(t, 30)
	return f.count() > before
}

func TestForgetIsAskedInDirectChatsAlone(t *testing.T) {
	r := newHarness(t, echo)
	r.accept(group("1", "6", "/forget"))
	if got := r.platform.wait(t, 1)[0]; !strings.HasPrefix(got.text, "Please send me /forget in a direct chat") || got.buttons != nil {
		t.Errorf("answered %+v", got)
	}
	r.receipts(1)
	if n := len(placesOf(t, r.cfg.Store, string(privacy.KindForget))); n != 1 { // the receipt of the command
		t.Errorf("%d places tell of it", n)
	}
}

// What is older than the age goes turn by turn, with summaries that may tell of it; of a
// conversation of which nothing is left there is no trace.
func TestHistoryHasAnAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen sync.Map
		think := func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
			seen.Store(turn.History[len(turn.History)-1].Text, turn.History)
			return echo(ctx, turn)
		}
		var erased, pruned atomic.Int32
		r := newHarness(t, think, func(cfg *bridge.Config) {
			cfg.Limits.HistoryDays = 30
			cfg.Hooks.Prune = func(context.Context) error { pruned.Add(1); return nil }
			cfg.Hooks.OnErased = func(context.Context) error { erased.Add(1); return nil }
		})
		r.accept(direct("1", "once secret"), group("g1", "6", "once secret as well"))
		r.platform.wait(t, 2)
		summary, err := conversation.Encode(agent.Message{Role: agent.RoleSummary, Time: time.Now(), Text: "Somebody told a secret."})
		if err == nil {
			_, err = r.cfg.Store.Append(t.Context(), "fake:1/1", 2, summary)
		}
		if err != nil {
			t.Fatal(err)
		}
		r.restart() // its copy of the conversation has no summary
		pass(t, 20*24*3600)
		r.accept(direct("2", "later"))
		r.platform.wait(t, 3)
		if n := len(placesOf(t, r.cfg.Store, "secret")); n == 0 {
			t.Fatal("what is not too old is gone")
		}
		if erased.Load() > 0 {
			t.Error("it is told that something is gone")
		}
		pass(t, 12*24*3600)
		if found := placesOf(t, r.cfg.Store, "secret"); len(found) > 0 {
			t.Errorf("there are still secrets in %q", found)
		}
		if erased.Load() == 0 {
			t.Error("nobody is told that something is gone")
		}
		if n := pruned.Load(); n < 32*24 {
			t.Errorf("the rest of the program has pruned %d times", n)
		}
		if found := placesOf(t, r.cfg.Store, "fake:g"); len(found) > 0 {
			t.Errorf("traces of a conversation that is gone in %q", found)
		}
		r.accept(direct("3", "now"), group("g2", "6", "hello again"))
		r.platform.wait(t, 5)
		for last, want := range map[string]string{"now": "later|re: later|now", "hello again": "hello again"} {
			history, _ := seen.Load(last)
			var said []string
			for _, m := range history.([]agent.Message) {
				said = append(said, m.Text)
			}
			if got := strings.Join(said, "|"); got != want {
				t.Errorf("it goes on with %q, want %q", got, want)
			}
		}
	})
}

// One replica erases in the chats of all, and no copy of what is gone is left with the others.
func TestForgetReachesTheChatsOfOtherReplicas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var shown sync.Map // by the answer, what the model was shown
		all := newSeveral(t, 3, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
			text := turn.History[len(turn.History)-1].Text
			shown.Store(text, fmt.Sprint(turn.History))
			if !strings.HasPrefix(text, "hold") {
				return echo(ctx, turn)
			}
			return func(yield func(agent.Message, error) bool) {
				<-ctx.Done()
				yield(agent.Message{}, context.Cause(ctx))
			}
		})
		said := func(chat, id, user, text string) chats.Message {
			m := group(id, user, text)
			m.Chat.ID = chat
			return m
		}
		const groups = 12
		for n := range groups {
			chat := fmt.Sprint("g", n)
			all[n%3].accept(said(chat, "1", "1", "secret of Ann"), said(chat, "2", "6", "Bob has his say"))
		}
		pass(t, 10)
		for n := range groups {
			all[n%3].accept(said(fmt.Sprint("g", n), "4", "1", "hold a secret")) // until it is ended
		}
		pass(t, 10)
		all[0].accept(direct("1", "/forget"))
		pass(t, 10)
		for _, r := range all {
			for _, card := range r.platform.shown() {
				if card.buttons != nil {
					all[1].accept(pressOn(card, "p", "1", card.button(t, "Forget me")))
				}
			}
		}
		pass(t, 60)
		all.once(t, gone)
		if found := placesOf(t, all[0].cfg.Store, "secret"); len(found) > 0 {
			t.Errorf("there are still secrets in %q", found)
		}
		for n := range groups {
			all[(n+1)%3].accept(said(fmt.Sprint("g", n), "3", "6", fmt.Sprint("and now ", n)))
		}
		pass(t, 10)
		for n := range groups {
			if got, _ := shown.Load(fmt.Sprint("and now ", n)); got == nil || strings.Contains(got.(string), "secret") || !strings.Contains(got.(string), "Bob has his say") {
				t.Errorf("in group %d the model was shown %v", n, got)
			}
		}
		all.stop(t)
	})
}
