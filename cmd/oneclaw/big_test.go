package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/database"
	"oneclaw/internal/emulator/openai"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// bigStore fills the database of a bot with what so many goroutines at a time write.
func bigStore(b testing.TB, w *harness, fill func(ctx context.Context, store storage.Store, group *errgroup.Group)) {
	b.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(w.env["ONECLAW_DATA_DIR"], databaseName), NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(256)
	fill(ctx, store, group)
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	put(b, store, "format", map[string]int{"version": database.LowestFormat})
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
}

// spoken are so many records of a conversation, questions and answers by turns.
func spoken(from, n int) []storage.Record {
	var records []storage.Record
	for i := from; i < from+n; i++ {
		m := agent.Message{Role: agent.RoleUser, Time: time.Now(), Text: fmt.Sprintf("question %d: %s", i, strings.Repeat("what is it about? ", 10))}
		if i%2 == 1 {
			m = agent.Message{
				Role: agent.RoleAssistant, Time: time.Now(), Final: true, Usage: &agent.Usage{Input: 1000, Output: 100},
				Text: fmt.Sprintf("answer %d: %s", i, strings.Repeat("It is about this and that. ", 15)),
			}
		}
		data, _ := json.Marshal(m) // strings and numbers
		records = append(records, storage.Record{Data: data})
	}
	return records
}

// fillChats writes what a chat leaves: its conversation, the line in the list of those of
// its owner, a session, and the receipts of its messages.
func fillChats(n int) func(context.Context, storage.Store, *errgroup.Group) {
	return func(ctx context.Context, store storage.Store, group *errgroup.Group) {
		for i := range n {
			group.Go(func() error {
				chat := chats.Chat{Platform: "telegram", ID: fmt.Sprint(1_000_000 + i)}
				c := conversation.Conversation{Owner: chat.String(), Chat: chat, Generation: 2, Title: "question 0", StartedAt: time.Now()}
				values := map[string]any{
					"session/" + chat.String():                conversation.Session{Chat: chat, Generation: 2, ClearedAt: int64(i)},
					"conversation/" + c.Owner + "/" + c.Log(): c,
					"job/done/" + chat.String() + "/1/text":   receipt(chat, "1"),
					"job/done/" + chat.String() + "/2/text":   receipt(chat, "2"),
					"memory/" + chat.String() + "/note":       map[string]string{"text": strings.Repeat("likes tea ", 20)},
				}
				for key, value := range values {
					data, err := json.Marshal(value)
					if err == nil {
						_, err = store.Put(ctx, key, data, storage.Any)
					}
					if err != nil {
						return err
					}
				}
				_, err := store.Append(ctx, c.Log(), 0, spoken(0, 4)...)
				return err
			})
		}
	}
}

func receipt(chat chats.Chat, id string) receipts.Receipt {
	return receipts.Receipt{
		Message: chats.Message{Chat: chat, ID: id, Kind: chats.KindText, User: chat.ID, UserName: "Ann", Direct: true, Text: strings.Repeat("what is it about? ", 10), Time: time.Now()},
		State:   receipts.Done, Accepted: time.Now(), Closed: time.Now(), Turn: receipts.Turn{Generation: 1},
		Answer: receipts.Answer{Parts: []receipts.Part{{Part: chats.Part{Text: strings.Repeat("It is about this and that. ", 15)}, State: receipts.PartSent, ID: "7"}}},
	}
}

// BenchmarkManyChats starts with so many chats on disk, and measures the most memory until what is
// done at the start has ended, and what it is then: a receipt at the end of all is too old and pruned.
func BenchmarkManyChats(b *testing.B) {
	for _, many := range []int{1_000, 10_000, 60_000, 100_000} {
		b.Run(fmt.Sprint(many), func(b *testing.B) {
			w := newHarness(b, openai.Offline{})
			w.env["ONECLAW_LOG_LEVEL"] = "debug"
			bigStore(b, w, fillChats(many))
			var took time.Duration
			var idle, peak, size float64
			n := 0
			for b.Loop() {
				old := receipt(chats.Chat{Platform: "telegram", ID: "~"}, "1")
				old.Closed = old.Closed.Add(-30 * 24 * time.Hour)
				bigStore(b, w, func(_ context.Context, store storage.Store, _ *errgroup.Group) {
					put(b, store, "job/done/"+old.Key(), old)
				})
				if info, err := os.Stat(filepath.Join(w.env["ONECLAW_DATA_DIR"], databaseName)); err == nil {
					size = float64(info.Size())
				}
				begun := time.Now()
				bot := w.run()
				took += time.Since(begun)
				bot.out.await(b, "pruned")
				idle += bot.resident(b)
				peak = max(peak, bot.status(b, "VmHWM"))
				n++
				bot.kill(9)
			}
			b.ReportMetric(peak/(1<<20), "peak-MiB")
			b.ReportMetric(size/(1<<20), "database-MiB")
			b.ReportMetric(float64(took.Microseconds())/1000/float64(n), "ms-to-first-poll")
			b.ReportMetric(idle/float64(n)/(1<<20), "idle-MiB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkManyRecords measures the processor time of commands and a search in a chat with
// so many records, and of a message.
func BenchmarkManyRecords(b *testing.B) {
	for _, records := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(records), func(b *testing.B) {
			w := newHarness(b, openai.ResponderFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
				last := req.Messages[len(req.Messages)-1]
				if query, search := strings.CutPrefix(last.Content, "search "); search && last.Role == "user" {
					return openai.Reply{Calls: []openai.ToolCall{{ID: "1", Name: "search_history", Arguments: fmt.Sprintf(`{"query":%q}`, query)}}}, nil
				}
				return openai.Reply{Text: "found"}, nil
			}))
			ann := w.person("Ann")
			chat := chats.Chat{Platform: "telegram", ID: fmt.Sprint(ann)}
			c := conversation.Conversation{Owner: chat.String(), Chat: chat, Generation: 1, Title: "question 0", StartedAt: time.Now()}
			bigStore(b, w, func(ctx context.Context, store storage.Store, group *errgroup.Group) {
				put(b, store, "conversation/"+c.Owner+"/"+c.Log(), c)
				group.Go(func() error {
					for n := 0; n < records; n += 1000 {
						if _, err := store.Append(ctx, c.Log(), storage.Position(n), spoken(n, 1000)...); err != nil {
							return err
						}
					}
					// Without a summary the first answers would wait for many.
					data, err := json.Marshal(agent.Message{Role: agent.RoleSummary, Text: "They talked.", Kept: 20})
					if err == nil {
						_, err = store.Append(ctx, c.Log(), storage.Position(records), storage.Record{Label: agent.LabelSummary, Data: data})
					}
					return err
				})
			})
			bot := w.run()
			w.ask(bot, ann, "hello", nil)
			const times = 10
			for b.Loop() {
				// A word that stands nowhere else, and one that stands in each question.
				for _, text := range []string{"/status", "/tools", "search 777", "search question", "hello"} {
					before := bot.cpu(b)
					for range times {
						w.ask(bot, ann, text, nil)
					}
					b.ReportMetric(float64((bot.cpu(b)-before).Milliseconds())/times, strings.ReplaceAll(strings.Trim(text, "/"), " ", "-")+"-cpu-ms")
				}
			}
			b.ReportMetric(0, "ns/op")
			bot.kill(9)
		})
	}
}

// BenchmarkFiveThousandChats has all of them ask at once, of a model that takes its time.
func BenchmarkFiveThousandChats(b *testing.B) {
	for b.Loop() {
		c := newCrowd(b, 5_000, 50*time.Millisecond)
		report(b, c.all(b, 2))
		b.ReportMetric(c.bot.resident(b)/(1<<20), "MiB")
		c.bot.kill(9)
	}
}

// put stores a value as JSON.
func put(t testing.TB, kv storage.KV, key string, value any) {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), key, data, storage.Any); err != nil {
		t.Fatal(err)
	}
}
