package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oneclaw/bridge/queue"
	"oneclaw/internal/app"
	"oneclaw/internal/budget"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/storage"
)

// told says when administrators hear of a damaged record of a kind.
type told int

const (
	onDemand told = iota // when it is read, which no message of the test does
	atStart              // at the next start, where it is damaged while the bot runs
	always
)

// recordKinds are keys of each kind of record, one of each: {chat} stands for a direct chat and its
// user, {day} and {month} for today's, {hour} for this hour. The kinds are those of
// internal/database/format.go; three are not here, because they are about all of the store and stop
// the start with what to do: the format, the fingerprint of the secret key, and the mark of a move
// that broke off.
var recordKinds = []struct {
	key  string
	told told
}{
	{"wipe", onDemand},
	{"numbers", onDemand},
	{"job/open/telegram:{chat}/7001/text", always},
	{"job/open/telegram:{chat}/7002/command", always},
	{"job/open/telegram:{chat}/7003/card", always},
	{"job/open/telegram:{chat}/7004/task", always},
	{"job/open/telegram:{chat}/7005/edit", always},
	{"job/open/strange", always},
	{"job/done/telegram:{chat}/7006/text", always},
	{"job/done/strange", always},
	{"finished/0000000000000000001/telegram:{chat}/7006/text", onDemand},
	{"sweep", onDemand},
	{"new/017/telegram:{chat}/7006/text", onDemand},
	{"card/7007", always},
	{"access/telegram:{chat}", atStart},
	{"access/telegram:77", atStart},
	{"access/claim", onDemand},
	{"stranger/telegram:77", onDemand},
	{"aside/7008", onDemand},
	{"moved/telegram:-77", atStart},
	{"moved/telegram:{chat}", atStart},
	{"session/telegram:{chat}", always},
	{"session/telegram:-77", onDemand},
	{"audit/0000000000000000001", onDemand},
	{"admin/seat/x", onDemand},
	{"conversation/telegram:{chat}/telegram:{chat}/1", onDemand},
	{"conversation/telegram:-77/telegram:-77/1", onDemand},
	{"asked/telegram:{chat}/telegram:-77/1", onDemand},
	{"memory/telegram:{chat}", always},
	{"schedule/task/telegram:{chat}/x", onDemand},
	{"schedule/due/0000", onDemand},
	{"settings/provider/x", atStart},
	{"settings/models/x", onDemand},
	{"settings/agent/x", onDemand},
	{"settings/value/routing", onDemand},
	{"settings/value/user_budget", onDemand},
	{"settings/variable/x", onDemand},
	{"settings/key/x", onDemand},
	{"settings/off/tool/exec", onDemand},
	{"settings/off/group/pdf", onDemand},
	{"settings/chat/telegram:{chat}", always},
	{"telegram/albums", onDemand},
	{"telegram/undecided", onDemand},
	{"slack/marks", onDemand},
	{"slack/owed/x", onDemand},
	{"slack/response/x", onDemand},
	{"slack/thread/x", onDemand},
	{"hook/x", onDemand},
	{"google/account/telegram:{chat}", onDemand},
	{"google/wanted/telegram:{chat}", onDemand},
	{"google/pending/x", onDemand},
	{"google/state", onDemand},
	{"mcp/server/x", always},
	{"mcp/account/telegram:{chat}/x", onDemand},
	{"mcp/pending/x", onDemand},
	{"mcp/client/x", onDemand},
	{"mcp/state", onDemand},
	{"mcp/pin/x", onDemand},
	{"files/owner/telegram:{chat}", onDemand},
	{"blob/owner/telegram:{chat}/x", onDemand},
	{"observe/telegram:-77", onDemand},
	{"heard/telegram:-77/1", onDemand},
	{"sign/telegram:{chat}/7009/text", onDemand},
	{"account/charges/x/1", always},
	{"account/{day}/total/", always},
	{"account/{month}/month", always},
	{"account/{day}/user/telegram:{chat}", always},
	{"account/{day}/chat/telegram:{chat}", always},
	{"account/ever/telegram:{chat}", always},
	{"account/{day}/model/" + openai.DefaultModel, always},
	{"account/{day}/group/core", always},
}

// lines is a log that a test reads while it is written.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// life is the whole bot in this process, whose store a test can write to.
type life struct {
	bot   *app.Bot
	store *database.Store
	log   *lines
	stop  func()
}

func (w *harness) live() *life {
	w.t.Helper()
	environment := os.Environ()
	for name, value := range w.env {
		environment = append(environment, name+"="+value)
	}
	cfg, err := config.Load("", environment)
	if err != nil {
		w.t.Fatal(err)
	}
	l := &life{log: &lines{}}
	log := slog.New(slog.NewTextHandler(l.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if l.store, err = app.OpenStore(w.t.Context(), cfg, log); err != nil {
		w.t.Fatal(err)
	}
	b, err := app.New(w.t.Context(), cfg, l.store, log)
	if err != nil {
		w.t.Fatal(errors.Join(err, l.store.Close()))
	}
	l.bot = b
	before := 0
	w.telegram.View(func(s telegram.State) { before = s.PollCount() })
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	l.stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-done, b.Close(), l.store.Close()); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(l.stop)
	w.until(nil, "a poll", func(s telegram.State) bool { return s.PollCount() > before })
	return l
}

// answered has somebody say something and waits until exactly that is answered.
func (w *harness) answered(who int64, text, want string) {
	w.t.Helper()
	w.say(who, text, nil)
	w.until(nil, fmt.Sprintf("answer to %q", text), func(s telegram.State) bool {
		return slices.ContainsFunc(s.Answers(who), func(m telegram.Message) bool { return strings.Contains(m.Text, want) })
	})
}

// TestADamagedRecordOfAnyKindStopsNothingElse damages a record of each kind, before the start and
// while the bot runs. A message in another chat is answered, and one in the chat that the record is
// about; administrators are told.
func TestADamagedRecordOfAnyKindStopsNothingElse(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
		return openai.Reply{Text: "re: " + req.Messages[len(req.Messages)-1].Content}, nil
	}))
	w.env["ONECLAW_BUDGET_TOTAL_TOKENS"] = "1000000000"
	ann, bob := w.person("Ann"), w.person("Bob")
	first := w.live()
	w.answered(ann, "begin a", "re: begin a")
	w.answered(bob, "begin b", "re: begin b")
	first.stop()
	now := time.Now().UTC()
	names := strings.NewReplacer("{chat}", fmt.Sprint(ann), "{day}", now.Format(time.DateOnly), "{month}", now.Format("2006-01"), "{hour}", now.Format("2006-01-02T15"))
	for n, kind := range recordKinds {
		key := names.Replace(kind.key)
		for _, running := range []bool{false, true} {
			when := map[bool]string{false: " before the start", true: " while it runs"}[running]
			ok := t.Run(strings.ReplaceAll(key, "/", " ")+when, func(t *testing.T) {
				w := *w
				w.t = t
				l := w.live()
				damage := func() {
					if _, err := l.store.Put(t.Context(), key, []byte("{"), storage.Any); err != nil {
						t.Fatal(err)
					}
				}
				if damage(); !running {
					l.stop()
					l = w.live()
				}
				said := fmt.Sprint(n, running)
				w.answered(bob, "b"+said, "re: b"+said)
				w.answered(ann, "a"+said, "re: a"+said)
				if _, err := l.bot.Ledger().Report(t.Context(), budget.Payer{}); err != nil { // what was used is written
					t.Fatal(err)
				}
				isHeard := func() bool {
					letters, err := queue.ListDeadLetters(t.Context(), l.store)
					if err != nil {
						t.Fatal(err)
					}
					return strings.Contains(l.log.String(), key) || slices.ContainsFunc(letters, func(a queue.DeadLetter) bool { return a.Key == key })
				}
				heard := isHeard()
				for i := 0; i < 100 && !heard && kind.told == always; i++ { // a watch reads it in its own time
					more := fmt.Sprint("c", said, i)
					w.answered(bob, more, "re: "+more)
					heard = isHeard()
				}
				if !heard && (kind.told == always || kind.told == atStart && !running) {
					t.Errorf("administrators are not told of %s: %s", key, l.log)
				}
				if err := l.store.Delete(t.Context(), key, storage.Any); err != nil {
					t.Fatal(err)
				}
				l.stop()
			})
			if !ok {
				return
			}
		}
	}
}
