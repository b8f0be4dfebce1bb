package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/admin"
	"oneclaw/internal/admin/frame"
	"oneclaw/internal/telemetry"
	"oneclaw/storage"
)

// keepErrors writes what was logged until now to the store.
func keepErrors(t *testing.T, kept *admin.ErrorStore) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := kept.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// An error of the log is on the pages after a restart, with its cause, and leads to the message that
// it is about, as that leads to it; a warning is not kept.
func TestAnErrorAndItsMessageLeadToEachOther(t *testing.T) {
	r := newRig(t)
	ring := telemetry.NewRing(r.cfg.Redact)
	log := slog.New(ring.WrapHandler(slog.DiscardHandler))
	kept := &admin.ErrorStore{Store: r.store, Ring: ring, Log: log, Now: func() time.Time { return r.now }}
	log.Warn("slow disk")
	log.Error("no answer", "incident", "830E5118", "chat", "telegram:7", "job", "telegram:7/1/text", "remedy", "Check the key.", "err", errors.New("openai: status 401: invalid key hunter2"))
	keepErrors(t, kept)
	r.finish(said{
		chat: "telegram:7", id: "1", user: "7", name: "Bo", text: "hello", at: time.Now(), took: time.Second, state: receipts.Failed, incident: "830E5118",
		turn: []agent.Message{{Role: agent.RoleUser, Text: "hello", Ref: "telegram:7/1/text", Time: time.Now()}},
	})

	r.cfg.Program.Errors = &admin.ErrorStore{Store: r.store, Now: kept.Now} // a new process
	r.now = time.Now().Add(time.Minute)
	message := frame.Root + "message?key=" + url.QueryEscape("telegram:7/1/text")
	for address, wants := range map[string][]string{
		frame.Root + "errors":   {"no answer", "Check the key. (openai: status 401: invalid key •••)", `href="` + message},
		frame.Root + "messages": {"invalid key •••", "errors?find=830E5118"},
		message:                 {"invalid key •••", "errors?find=830E5118", "Tried in vain"},
		frame.Root:              {"Something needs you", "no answer: Check the key. (openai"},
	} {
		body := r.get(address)
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %q:\n%s", address, want, body)
			}
		}
		if strings.Contains(body, "hunter2") || strings.Contains(body, "slow disk") {
			t.Errorf("%s shows a secret or a warning of another process", address)
		}
	}
}

// Most lines of the log name only the job: a search finds their chat all the same, and what it does not find
// is not denied.
func TestErrorsAreFoundByTheChatOfTheirJob(t *testing.T) {
	r := newRig(t)
	ring := telemetry.NewRing(func(s string) string { return s })
	slog.New(ring.WrapHandler(slog.DiscardHandler)).Error("job given up", "job", "telegram:7/1/text")
	r.cfg.Program.Errors = &admin.ErrorStore{Store: r.store, Ring: ring, Log: slog.New(slog.DiscardHandler), Now: time.Now}
	keepErrors(t, r.cfg.Program.Errors)
	for find, want := range map[string]string{"telegram:7": "job given up", "telegram:8": "None was found."} {
		if page := r.get(frame.ViewURL("errors", "find", find)); !strings.Contains(page, want) || strings.Contains(page, "No error in the last 30 days") {
			t.Errorf("%s is answered with %s", find, page)
		}
	}
}

// Errors are bounded in number and age, those of a user who is forgotten go, and others stay.
func TestErrorsGo(t *testing.T) {
	r := newRig(t)
	ring := telemetry.NewRing(func(s string) string { return s })
	log := slog.New(ring.WrapHandler(slog.DiscardHandler))
	now := time.Now()
	kept := &admin.ErrorStore{Store: r.store, Ring: ring, Log: log, Now: func() time.Time { return now }}
	count := func() (n int, all string) {
		for entry, err := range r.store.List(t.Context(), storage.Range{Prefix: "error/"}) {
			if err != nil {
				t.Fatal(err)
			}
			n, all = n+1, all+string(entry.Value)
		}
		return n, all
	}
	r.finish(said{chat: "telegram:-5", id: "3", user: "7", name: "Bo", text: "hello", at: now, took: time.Second, state: receipts.Done})
	log.Error("direct", "job", "telegram:7/1/text")
	log.Error("in a thread", "chat", "telegram:7:2")
	log.Error("in a group", "job", "telegram:-5/3/text")
	log.Error("about them", "user", "telegram:7")
	log.Error("of another", "chat", "telegram:77")
	log.Error("still in memory", "user", "telegram:7")
	keepErrors(t, kept)
	log.Error("still in memory", "user", "telegram:7")
	log.Error("still in memory, in a group", "job", "telegram:-5/3/text")
	log.Warn("a warning in a group", "job", "telegram:-5/3/text")
	if err := kept.Forget(t.Context(), "telegram:7", chats.Chat{Platform: "telegram", ID: "7"}); err != nil {
		t.Fatal(err)
	}
	keepErrors(t, kept)
	if last := ring.Last(); len(last) != 1 || last[0].Text != "of another" {
		t.Errorf("after /forget there are in memory: %+v", last)
	}
	if n, all := count(); n != 1 || !strings.Contains(all, "of another") {
		t.Errorf("after /forget there are %d: %s", n, all)
	}
	for i := range admin.MaxErrors + 100 {
		if log.Error("one of many", "n", i); i%telemetry.MaxErrors == 0 {
			keepErrors(t, kept)
		}
	}
	keepErrors(t, kept)
	if n, all := count(); n != admin.MaxErrors || !strings.Contains(all, fmt.Sprint("n=", admin.MaxErrors+99)) || strings.Contains(all, "of another") {
		t.Errorf("%d are kept", n)
	}
	now = now.Add(admin.ErrorAge + time.Hour)
	keepErrors(t, kept)
	if n, _ := count(); n != 0 {
		t.Errorf("%d are kept for too long", n)
	}
}

// What a replica keeps in its memory goes, too, where another one forgets a user.
func TestErrorsGoInEveryReplica(t *testing.T) {
	r := newRig(t)
	now := time.Now()
	replica := func(name string) (*admin.ErrorStore, *slog.Logger) {
		ring := telemetry.NewRing(func(s string) string { return s })
		log := slog.New(ring.WrapHandler(slog.DiscardHandler))
		return &admin.ErrorStore{Store: r.store, Replica: name, Ring: ring, Log: log, Now: func() time.Time { return now }}, log
	}
	one, _ := replica("1")
	looked, looking := replica("2")
	storing, stored := replica("3")
	for _, log := range []*slog.Logger{looking, stored} {
		log.Warn("a warning of theirs", "chat", "telegram:7:2")
		log.Error("an error of theirs", "user", "telegram:7")
		log.Warn("a warning of another", "chat", "telegram:77")
		log.Warn("a warning of theirs in a group", "job", "telegram:-5/3/text")
		log.Error("an error of theirs in a group", "job", "telegram:-5/3/text")
		log.Warn("a later warning of theirs in a group", "job", "telegram:-5/4/text")
		log.Warn("a warning of another in the group", "job", "telegram:-5/5/text")
	}
	says := func(id, user string) {
		r.finish(said{chat: "telegram:-5", id: id, user: user, name: "Bo", text: "hello", at: now, took: time.Second, state: receipts.Done})
	}
	says("3", "7")
	says("5", "9")
	says("4", "7")
	for range 2 { // a repetition finds no receipts
		if err := one.Forget(t.Context(), "telegram:7", chats.Chat{Platform: "telegram", ID: "7"}); err != nil {
			t.Fatal(err)
		}
		if err := receipts.EraseBy(t.Context(), r.store, "telegram:7", func(*receipts.Receipt) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	if n := erasures(t, r.store); n != 1 {
		t.Errorf("each replica has to read %d erasures", n)
	}
	keepErrors(t, storing)
	r.cfg.Program.Errors = looked
	for _, got := range []string{r.get(frame.Root + "errors"), fmt.Sprint(storing.Ring.Last())} {
		if strings.Contains(got, "of theirs") || !strings.Contains(got, "a warning of another in the group") {
			t.Errorf("another replica shows %s", got)
		}
	}
	// What is logged of a user later stays.
	now = now.Add(-time.Hour)
	if err := one.Forget(t.Context(), "telegram:8", chats.Chat{Platform: "telegram", ID: "8"}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	looking.Error("a later error", "user", "telegram:8")
	keepErrors(t, looked)
	if got := r.get(frame.Root + "errors"); !strings.Contains(got, "a later error") {
		t.Errorf("the page is %s", got)
	}
	// What tells the others is not kept for long.
	now = now.Add(3 * time.Hour)
	keepErrors(t, looked)
	if n := erasures(t, r.store); n > 0 {
		t.Errorf("there are still %d", n)
	}
}

// interrupted is a store in which something happens before a write.
type interrupted struct {
	storage.Store

	before func()
}

func (s *interrupted) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	if do := s.before; do != nil {
		s.before = nil
		do()
	}
	return s.Store.Write(ctx, ops...)
}

// A replica that stores an error at the moment in which another one forgets its user removes it again.
func TestAnErrorThatIsStoredWhileItsUserIsForgottenGoes(t *testing.T) {
	for name, job := range map[string]string{"of a job that is known": "telegram:-5/3/text", "of the direct chat": "telegram:7/1/text"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.finish(said{chat: "telegram:-5", id: "3", user: "7", name: "Bo", text: "hello", at: time.Now(), took: time.Second, state: receipts.Done})
			one := &admin.ErrorStore{Store: r.store, Replica: "1", Log: slog.New(slog.DiscardHandler), Now: time.Now}
			ring := telemetry.NewRing(func(s string) string { return s })
			log := slog.New(ring.WrapHandler(slog.DiscardHandler))
			log.Error("of theirs", "job", job)
			log.Error("of another", "job", "telegram:-5/5/text")
			keepErrors(t, &admin.ErrorStore{Replica: "2", Ring: ring, Log: log, Now: time.Now, Store: &interrupted{r.store, func() {
				if err := one.Forget(t.Context(), "telegram:7", chats.Chat{Platform: "telegram", ID: "7"}); err != nil {
					t.Error(err)
				}
			}}})
			var all string
			for entry, err := range r.store.List(t.Context(), storage.Range{Prefix: "error/"}) {
				if err != nil {
					t.Fatal(err)
				}
				all += string(entry.Value)
			}
			if strings.Contains(all, "of theirs") || !strings.Contains(all, "of another") {
				t.Errorf("stored are %s", all)
			}
		})
	}
}

// erasures returns the number of records that tell replicas what to drop.
func erasures(t *testing.T, store storage.Store) (n int) {
	t.Helper()
	for _, err := range store.List(t.Context(), storage.Range{Prefix: "errors-erased/"}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// A running process writes an error within a second.
func TestAnErrorIsWrittenSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		ring := telemetry.NewRing(func(s string) string { return s })
		log := slog.New(ring.WrapHandler(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- (&admin.ErrorStore{Store: r.store, Ring: ring, Log: log, Now: time.Now}).Run(ctx)
		}()
		synctest.Wait()
		log.Error("now")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		n := 0
		for _, err := range r.store.List(ctx, storage.Range{Prefix: "error/"}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		cancel()
		if err := <-done; err != nil || n != 1 {
			t.Errorf("%d are written, %v", n, err)
		}
	})
}

// Many messages behind a turn that hangs are not approvals, and an approval that no user has decided yet
// is no fault.
func TestTheOverviewTellsATurnThatHangsFromAnApproval(t *testing.T) {
	for name, c := range map[string]struct {
		load func(now time.Time) queue.Stats
		want []string
	}{
		"three messages behind a turn": {
			func(now time.Time) queue.Stats {
				return queue.Stats{Open: 4, Waiting: 3, Oldest: now.Add(-time.Hour), OldestDue: now.Add(-time.Hour)}
			},
			[]string{"Something needs you", "a message has been open since 23 November 11:00", "Waiting for approval 0"},
		},
		"an approval and a new message": {
			func(now time.Time) queue.Stats {
				return queue.Stats{Open: 2, Undecided: 1, Oldest: now.Add(-11 * time.Minute), OldestDue: now.Add(-time.Second)}
			},
			[]string{"All is well", "Waiting for approval 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(cfg *admin.Config) { cfg.Bot.ReceiveErrors = func() map[string]error { return nil } })
			r.cfg.Bot.QueueStats = func() queue.Stats { return c.load(r.now) }
			text := strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(r.get(frame.Root), " ")), " ")
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("it lacks %q: %s", want, text)
				}
			}
		})
	}
}
