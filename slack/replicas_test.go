package slack

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/slack/shared"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// openStore is the store that several processes share.
func openStore(t *testing.T) storage.Store {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// twin is another process of the bot, which does not run yet.
func (f *fixture) twin(kv storage.KV, change func(*config)) *fixture {
	f.t.Helper()
	transport := &http.Transport{}
	f.t.Cleanup(transport.CloseIdleConnections)
	other := *f
	other.in, other.log = newInbox(), &syncBuffer{}
	config := config{
		Settings: f.settings, kv: kv, httpClient: &http.Client{Transport: transport}, pingTimeout: 10 * time.Second,
		logger: slog.New(slog.NewTextHandler(other.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&config)
	}
	var err error
	if other.p, err = newPlatform(config); err != nil {
		f.t.Fatal(err)
	}
	return &other
}

// stored is everything that the store has under a prefix.
func stored(t *testing.T, kv storage.KV, prefix string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for entry, err := range kv.List(t.Context(), storage.Range{Prefix: prefix}) {
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Key] = string(entry.Value)
	}
	return all
}

// TestResponsesOfAnotherProcess has a command and a press answered by processes that have
// not received them.
func TestResponsesOfAnotherProcess(t *testing.T) {
	store := openStore(t)
	f := start(t, quick(), func(c *config) { c.kv = store })
	f.make(emulator.ChannelSpec{ID: "C9", Members: []string{f.user}, WithoutBot: true})
	if _, err := f.Command("C9", f.user, "/oneclaw", "tools"); err != nil {
		t.Fatal(err)
	}
	msg := f.in.wait(t, 1)[0]
	id, err := f.twin(store, nil).p.Send(t.Context(), chats.Address{Chat: msg.Chat, ReplyTo: msg.ID}, question())
	if err != nil {
		t.Fatal(err)
	}
	f.press("C9", f.Messages("C9")[0].TS, "tok:0")
	press := f.in.wait(t, 2)[1]
	f.stop()
	third := f.twin(store, nil).p
	if err := third.AnswerPress(t.Context(), press, "Thanks."); err != nil {
		t.Error(err)
	}
	if err := third.Edit(t.Context(), chats.Address{Chat: press.Chat}, id, chats.Part{Text: "done"}); err != nil {
		t.Error(err)
	}
	if all := f.Messages("C9"); len(all) != 2 || all[0].Shown != "done" || all[1].Shown != "Thanks." {
		t.Errorf("got %+v", all)
	}
	kept := stored(t, store, "slack/response/")
	if len(kept) != 1 {
		t.Errorf("the store has %d lists of one channel", len(kept))
	}
	for _, value := range kept {
		if strings.Contains(value, "http") || strings.Contains(value, "commands/") {
			t.Errorf("the store has it in plain: %q", value)
		}
	}
}

// TestAnswersAreCountedByAllProcesses has two processes use up what Slack takes.
func TestAnswersAreCountedByAllProcesses(t *testing.T) {
	store := openStore(t)
	f := start(t, quick(), func(c *config) { c.kv = store })
	f.make(emulator.ChannelSpec{ID: "C9", Members: []string{f.user}, WithoutBot: true})
	if _, err := f.Command("C9", f.user, "/oneclaw", "whoami"); err != nil {
		t.Fatal(err)
	}
	msg := f.in.wait(t, 1)[0]
	both := []*platform{f.p, f.twin(store, nil).p}
	for i := range shared.MaxResponses + 1 {
		_, err := both[i%2].Send(t.Context(), chats.Address{Chat: msg.Chat, ReplyTo: msg.ID}, chats.Part{Text: fmt.Sprint(i)})
		var failure *chats.SendError
		if i < shared.MaxResponses && err != nil || i == shared.MaxResponses && (!errors.As(err, &failure) || failure.Outcome != chats.Refused) {
			t.Errorf("answer %d: %v", i, err)
		}
	}
	all := f.Messages("C9")
	if len(all) != shared.MaxResponses || !strings.Contains(all[shared.MaxResponses-1].Shown, "no more answers") {
		t.Errorf("got %+v", all)
	}
}

func always() bool { return true }

func never() bool { return false }

// shares has a platform of several.
func shares(kv storage.KV, leads func() bool) func(*config) {
	return func(c *config) {
		c.kv = kv
		c.Share(leads)
	}
}

// TestThreadsOfAnotherProcess has another process answer in a thread in which this one has
// just looked for the bot in vain, and be called in one of which Slack does not tell.
func TestThreadsOfAnotherProcess(t *testing.T) {
	store := openStore(t)
	f := start(t, quick(), shares(store, always))
	other := f.twin(store, shares(store, never))
	lunch := f.say(f.channel, "lunch?", nil)
	reply := &emulator.SayOptions{Thread: lunch.TS}
	f.acked(f.say(f.channel, "yes", reply))
	if _, err := other.p.Send(t.Context(), chats.Address{Chat: chatOf(f.channel, lunch.TS)}, chats.Part{Text: "at noon"}); err != nil {
		t.Fatal(err)
	}
	f.acked(f.say(f.channel, "fine", reply))
	if got := f.in.all(); len(got) != 1 || got[0].Text != "fine" {
		t.Errorf("accepted %+v", got)
	}

	tea := f.say(f.channel, "tea?", nil)
	reply = &emulator.SayOptions{Thread: tea.TS}
	f.acked(f.say(f.channel, "<@U0BOT> what do you say?", reply))
	f.stop()
	f.wait(func(s emulator.State) bool { return s.ActiveSockets() == 0 })
	other.run()
	f.wait(func(s emulator.State) bool { return s.ActiveSockets() == 1 })
	f.inject(emulator.Fault{Method: "conversations.replies", Effect: emulator.ServerError})
	f.acked(f.say(f.channel, "and you?", reply))
	if got := other.in.all(); len(got) == 0 || got[len(got)-1].Text != "and you?" {
		t.Errorf("accepted %+v", got)
	}
}

// TestAThreadTellsWhatComesByItself asks for a thread before and behind the place where the bot
// began to take part: who asks may not have had what it was called by.
func TestAThreadTellsWhatComesByItself(t *testing.T) {
	f := setup(t, quick(), nil)
	first := f.say(f.channel, "lunch?", nil)
	reply := &emulator.SayOptions{Thread: first.TS}
	if _, err := f.SayAsBot(f.channel, "B0NEWS", "news", "<@U0BOT> soup of the day", &emulator.SayOptions{Thread: first.TS}); err != nil {
		t.Fatal(err)
	}
	f.say(f.channel, "no soup", reply)
	called := f.say(f.channel, "<@U0BOT> what do you say?", reply)
	if _, err := f.p.Send(t.Context(), chats.Address{Chat: chatOf(f.channel, first.TS)}, chats.Part{Text: "soup", Plain: "soup"}); err != nil {
		t.Fatal(err)
	}
	between := f.say(f.channel, "and you?", reply)
	last := f.say(f.channel, "anybody?", reply)
	for _, tt := range []struct {
		message, after string
		limit          int
		want           []bool
	}{
		{called.TS, "", 20, []bool{false, false, false}},
		{between.TS, "", 20, []bool{false, false, false, true, false}},
		{last.TS, "", 20, []bool{false, false, false, true, false, true}},
		{last.TS, "", 1, []bool{true}},
		{last.TS, called.TS, 20, []bool{false, true}},
	} {
		said, err := f.p.ReadThread(t.Context(), chats.Message{Chat: chatOf(f.channel, first.TS), ID: tt.message, Time: time.Now()}, tt.after, tt.limit)
		var got []bool
		for _, q := range said {
			got = append(got, q.Addressed)
		}
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%d before %q after %q: %+v, %v", tt.limit, tt.message, tt.after, said, err)
		}
	}
}

// TestWhoLeadsFetchesWhatWasMissed has two processes lose their connections: one fetches
// what came meanwhile, also where the connection of the other is back first.
func TestWhoLeadsFetchesWhatWasMissed(t *testing.T) {
	store := openStore(t)
	f := start(t, deaf(), shares(store, never))
	leader := f.twin(store, shares(store, always))
	leader.run()
	f.wait(func(s emulator.State) bool { return s.ActiveSockets() == 2 })
	f.acked(f.say(f.dm, "before", nil))
	hear := f.lose()
	f.say(f.dm, "missed", nil)
	f.BreakSockets()
	f.wait(func(s emulator.State) bool { return s.ActiveSockets() == 2 })
	hear()
	for n := 1; !slices.ContainsFunc(leader.in.all(), func(m chats.Message) bool { return m.Text == "missed" }); n++ {
		leader.in.wait(t, n)
	}
	if slices.ContainsFunc(f.in.all(), func(m chats.Message) bool { return m.Text == "missed" }) {
		t.Error("who does not lead has fetched it, too")
	}
	leader.stop()
	f.stop()
	// A gap that another process has opened is seen to when the marks are saved next.
	f.p.progress.RecordConnection(true)
	for _, one := range []*fixture{f, leader} {
		for len(one.p.progress.Wake) > 0 {
			<-one.p.progress.Wake
		}
		r := &receiver{platform: one.p}
		r.saveMarks(t.Context())
		r.takeOver(t.Context())
		if since, _ := one.p.progress.Gap(); since.IsZero() || len(one.p.progress.Wake) != map[bool]int{true: 1}[one == leader] {
			t.Errorf("gap since %v, %d to look at it", since, len(one.p.progress.Wake))
		}
	}
}
