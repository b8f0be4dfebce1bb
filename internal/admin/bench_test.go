package admin_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/sessions"
	"oneclaw/internal/admin/frame"
	"oneclaw/internal/budget"
	"oneclaw/storage"
)

// BenchmarkPage asks for each list and look-up over a store of so many receipts of the last week,
// and a tenth of that of conversations, as TEST_ONECLAW_ADMIN_RECEIPTS says.
func BenchmarkPage(b *testing.B) {
	n, err := strconv.Atoi(os.Getenv("TEST_ONECLAW_ADMIN_RECEIPTS"))
	if err != nil {
		n = 5000
	}
	r := newRig(b)
	fill(r, n)
	key := fmt.Sprintf("telegram:%d/%d/text", n/2%(n/10), n/2)
	for _, c := range []struct{ name, target string }{
		{"overview", frame.Root},
		{"messages", frame.Root + "messages"},
		{"messages, next page", frame.To("messages", "after", deep(r, n/2))},
		{"messages, file of 1000", frame.To("messages", "csv", "messages")},
		{"messages, one chat", frame.To("messages", "find", "telegram:77")},
		{"messages, nothing found", frame.To("messages", "find", "telegram:none")},
		{"message", frame.To("message", "key", key)},
		{"conversations", frame.Root + "conversations"},
		{"conversations, file of 1000", frame.To("conversations", "csv", "conversations")},
		{"conversations, none of the kind", frame.To("conversations", "kind", "task")},
		{"conversations of one", frame.To("conversations", "owner", "telegram:77")},
		{"conversation", frame.To("conversation", "log", "telegram:77/1", "owner", "telegram:77")},
		{"spending of 100000 people", frame.Root + "spending"},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				r.get(c.target)
			}
		})
	}
	b.Run("hourly run", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.jobs.Prune(b.Context(), r.now, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// deep is a place in the middle of the index.
func deep(r *rig, n int) string {
	i, last := 0, jobs.Finished{}
	for f, err := range r.jobs.Finished(r.Context(), "") {
		if err != nil {
			r.Fatal(err)
		}
		if last, i = f, i+1; i == n {
			break
		}
	}
	return last.Place()
}

func fill(r *rig, n int) {
	r.Helper()
	var group errgroup.Group
	group.SetLimit(256) // the engine joins writes that wait
	text := strings.Repeat("what people write ", 12)
	for i := range n {
		group.Go(func() error {
			at := r.now.Add(-time.Duration(i) * 7 * 24 * time.Hour / time.Duration(n+1))
			chat := chats.Chat{Platform: "telegram", ID: fmt.Sprint(i % (n / 10))}
			j := &jobs.Job{
				Message: chats.Message{Chat: chat, ID: fmt.Sprint(i), Kind: chats.KindText, User: chat.ID, UserName: "Somebody", Text: text, Direct: true, Time: at},
				State:   jobs.StateDone, Generation: 1, Accepted: at.Add(-2 * time.Second), Closed: at, Holder: "me",
				Parts: []jobs.SentPart{{Part: chats.Part{Text: text}, State: jobs.PartSent, ID: "1"}},
			}
			return r.jobs.Refuse(r.Context(), j, storage.Absent)
		})
	}
	day := r.now.Format(time.DateOnly)
	for i := range n / 10 {
		group.Go(func() error {
			chat := chats.Chat{Platform: "telegram", ID: fmt.Sprint(i)}
			c := sessions.Conversation{Owner: chat.String(), Chat: chat, Generation: 1, Title: text[:60], Begun: r.now.Add(-time.Duration(i) * time.Minute)}
			if err := c.Enter(r.Context(), r.store); err != nil {
				return err
			}
			var records []storage.Record
			for k := range 20 {
				at := c.Begun.Add(time.Duration(k) * time.Second)
				for _, m := range []agent.Message{{Role: agent.RoleUser, Time: at, Text: text, Ref: fmt.Sprintf("telegram:%d/%d/text", i, i+k*n/10)}, {Role: agent.RoleAssistant, Time: at, Text: text, Final: true, Model: "m", Usage: &agent.Usage{Input: 1}}} {
					record, err := sessions.Encode(m)
					if err != nil {
						return err
					}
					records = append(records, record)
				}
			}
			_, err := r.store.Write(r.Context(), storage.Append(c.Log(), 0, records...), storage.Put("account/"+day+"/"+string(budget.KindUser)+"/"+chat.String(), []byte(`{"calls":3,"input":5000}`), storage.Absent))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		r.Fatal(err)
	}
	if _, err := r.jobs.Prune(r.Context(), r.now, nil); err != nil {
		r.Fatal(err)
	}
}

// BenchmarkClose closes jobs, without the wait for the disk: messages, which the index has, and presses, which it has not.
func BenchmarkClose(b *testing.B) {
	for _, kind := range []chats.Kind{chats.KindPress, chats.KindText} {
		b.Run(string(kind), func(b *testing.B) {
			r := newRig(b)
			for i := 0; b.Loop(); i++ {
				m := chats.Message{Chat: chats.Chat{Platform: "telegram", ID: "5"}, ID: fmt.Sprint(i), Kind: kind, User: "5", Text: "hello", Time: r.now}
				j := &jobs.Job{Message: m, State: jobs.StateOpen, Accepted: r.now, Holder: "me"}
				if _, err := r.jobs.Add(b.Context(), j); err != nil {
					b.Fatal(err)
				}
				j.State, j.Closed = jobs.StateDone, r.now.Add(time.Duration(i))
				if err := r.jobs.Close(b.Context(), j); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
