// Package filled fills stores for benchmarks with as much data as a busy week leaves.
package filled

import (
	"context"
	"fmt"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/budget"
	"oneclaw/storage"
)

// turnsPerConversation is the number of turns of a conversation.
const turnsPerConversation = 20

// text is the text of all messages, and title the title of all conversations.
const (
	title = "what people write, what people write, what people write,"
	text  = title + title + title + title
)

// WriteWeek writes receipts of the last seven days into a store, and a tenth as many conversations,
// each with the account of its user for today.
func WriteWeek(ctx context.Context, store storage.Store, now time.Time, receipts int) error {
	b := &batchStore{Store: store}
	people, step := receipts/10, 7*24*time.Hour/time.Duration(receipts+1)
	for i := range receipts {
		if err := writeReceipt(ctx, b, i, people, now.Add(-time.Duration(i)*step)); err != nil {
			return err
		}
	}
	for i := range people {
		if err := writeConversation(ctx, b, i, people, now); err != nil {
			return err
		}
	}
	return b.flush(ctx)
}

// ReceiptKey returns the key of receipt i of n, 0 being the newest.
func ReceiptKey(i, n int) string {
	people := n / 10
	return fmt.Sprintf("telegram:%d/%d/text", i%people, i)
}

func writeReceipt(ctx context.Context, b *batchStore, i, people int, at time.Time) error {
	chat := chats.Chat{Platform: "telegram", ID: fmt.Sprint(i % people)}
	r := &receipts.Receipt{
		Message: chats.Message{Chat: chat, ID: fmt.Sprint(i), Kind: chats.KindText, User: chat.ID, UserName: "Somebody", Text: text, Direct: true, Time: at},
		State:   receipts.Done, Turn: receipts.Turn{Generation: 1}, Accepted: at.Add(-2 * time.Second), Closed: at, LeaseToken: "me",
		Answer: receipts.Answer{Parts: []receipts.Part{{Part: chats.Part{Text: text}, State: receipts.PartSent, ID: "1"}}},
	}
	return receipts.Put(ctx, b, r, storage.Absent)
}

func writeConversation(ctx context.Context, b *batchStore, i, people int, now time.Time) error {
	chat := chats.Chat{Platform: "telegram", ID: fmt.Sprint(i)}
	c := conversation.Conversation{Owner: chat.String(), Chat: chat, Generation: 1, Title: title, StartedAt: now.Add(-time.Duration(i) * time.Minute)}
	if err := c.AddToLists(ctx, b); err != nil {
		return err
	}
	var records []storage.Record
	for k := range turnsPerConversation {
		at := c.StartedAt.Add(time.Duration(k) * time.Second)
		for _, m := range []agent.Message{
			{Role: agent.RoleUser, Time: at, Text: text, Ref: fmt.Sprintf("%s/%d/text", chat, i+k*people)},
			{Role: agent.RoleAssistant, Time: at, Text: text, Final: true, Model: "m", Usage: &agent.Usage{Input: 1}},
		} {
			record, err := conversation.Encode(m)
			if err != nil {
				return err
			}
			records = append(records, record)
		}
	}
	account := "account/" + now.Format(time.DateOnly) + "/" + string(budget.KindUser) + "/" + chat.String()
	_, err := b.Write(ctx, storage.Append(c.Log(), 0, records...), storage.Put(account, []byte(`{"calls":3,"input":5000}`), storage.Absent))
	return err
}

// batchStore joins writes, which makes them many times faster.
type batchStore struct {
	storage.Store

	ops []storage.Op
}

// Write implements storage.Store. The revision that it returns is not valid.
func (b *batchStore) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	if b.ops = append(b.ops, ops...); len(b.ops) < 2000 {
		return 0, nil
	}
	return 0, b.flush(ctx)
}

func (b *batchStore) flush(ctx context.Context) error {
	if len(b.ops) == 0 {
		return nil
	}
	_, err := b.Store.Write(ctx, b.ops...)
	b.ops = b.ops[:0]
	return err
}
