package admin_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/admin"
	"oneclaw/internal/admin/filled"
	"oneclaw/internal/admin/frame"
	"oneclaw/storage/postgres"
	"oneclaw/storage/postgres/pgtest"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// BenchmarkPage asks for each list and look-up over a store of so many receipts of the last week,
// and a tenth of that of conversations, as TEST_ONECLAW_ADMIN_RECEIPTS says, on each engine.
func BenchmarkPage(b *testing.B) {
	n, err := strconv.Atoi(os.Getenv("TEST_ONECLAW_ADMIN_RECEIPTS"))
	if err != nil {
		n = 5000
	}
	b.Run("bolt", func(b *testing.B) { askAll(b, newRig(b), n) })
	b.Run("postgres", func(b *testing.B) {
		var server pgtest.Server
		store, err := postgres.Open(b.Context(), postgres.Config{URL: server.Database(b)})
		if err != nil {
			b.Fatal(err)
		}
		r := newRigOver(b, store)
		b.Cleanup(func() { _ = server.Stop() })
		askAll(b, r, n)
	})
}

// askAll fills a store and asks for each page.
func askAll(b *testing.B, r *harness, n int) {
	if err := errors.Join(filled.WriteWeek(b.Context(), r.store, r.now, n), hourly(r)); err != nil {
		b.Fatal(err)
	}
	registry, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{})
	if err != nil {
		b.Fatal(err)
	}
	r.cfg.Tools = admin.ToolSource{Registry: func() *toolgroups.Registry { return registry }, Servers: func() []mcp.Status { return nil }}
	handler, err := admin.New(r.cfg)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, target string }{
		{"overview", frame.Root},
		{"messages", frame.Root + "messages"},
		{"messages, next page", frame.ViewURL("messages", "after", deep(r, n/2))},
		{"messages, file of 1000", frame.ViewURL("messages", "csv", "messages")},
		{"messages, one chat", frame.ViewURL("messages", "find", "telegram:77")},
		{"messages, nothing found", frame.ViewURL("messages", "find", "telegram:none")},
		{"message", frame.ViewURL("message", "key", filled.ReceiptKey(n/2, n))},
		{"conversations", frame.Root + "conversations"},
		{"conversations, file of 1000", frame.ViewURL("conversations", "csv", "conversations")},
		{"conversations, none of the kind", frame.ViewURL("conversations", "kind", "task")},
		{"conversations of one", frame.ViewURL("conversations", "owner", "telegram:77")},
		{"conversation", frame.ViewURL("conversation", "log", "telegram:77/1", "owner", "telegram:77")},
		{"spending of all people", frame.Root + "spending"},
		{"tools", frame.Root + "tools"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			before := used(b)
			for b.Loop() {
				r.getFrom(handler, c.target)
			}
			b.ReportMetric((used(b)-before)/float64(b.N), "cpu-ms/op")
		})
	}
	b.Run("hourly run", func(b *testing.B) {
		before := used(b)
		for b.Loop() {
			if err := hourly(r); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric((used(b)-before)/float64(b.N), "cpu-ms/op")
	})
}

// used is the processor time of this process so far, in milliseconds.
func used(b *testing.B) float64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e6
}

func hourly(r *harness) error {
	_, err := receipts.Prune(r.Context(), r.store, r.now, nil)
	return err
}

// deep is a place in the middle of the index.
func deep(r *harness, n int) string {
	i, last := 0, receipts.Entry{}
	for f, err := range receipts.ListEntries(r.Context(), r.store, "") {
		if err != nil {
			r.Fatal(err)
		}
		if last, i = f, i+1; i == n {
			break
		}
	}
	return last.IndexKey()
}

// BenchmarkClose closes jobs, without the wait for the disk: messages, which the index has, and presses, which it has not.
func BenchmarkClose(b *testing.B) {
	for _, kind := range []chats.Kind{chats.KindPress, chats.KindText} {
		b.Run(string(kind), func(b *testing.B) {
			r := newRig(b)
			for i := 0; b.Loop(); i++ {
				m := chats.Message{Chat: chats.Chat{Platform: "telegram", ID: "5"}, ID: fmt.Sprint(i), Kind: kind, User: "5", Text: "hello", Time: r.now}
				j := &queue.Run{Job: queue.Job{Message: m, State: receipts.Open, Accepted: r.now, LeaseToken: "me"}}
				if _, err := r.jobs.Add(b.Context(), j); err != nil {
					b.Fatal(err)
				}
				j.State, j.Closed = receipts.Done, r.now.Add(time.Duration(i))
				if err := r.jobs.Close(b.Context(), j, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
