package bridge

import (
	"context"
	"fmt"

	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/toolgroups"
)

// ratings map the texts of messages of [chats.KindFeedback] to ratings and to the metrics that count
// new ones.
var ratings = map[chats.Feedback]struct {
	good, given bool
	counted     queue.Metric
}{
	chats.Good:    {true, true, queue.MeasuredGood},
	chats.Bad:     {false, true, queue.MeasuredBad},
	chats.NotGood: {true, false, queue.MeasuredWithdrawn},
	chats.NotBad:  {false, false, queue.MeasuredWithdrawn},
}

// feedback stores users' ratings of answers.
type feedback struct {
	workers *workers
	jobs    queue.Store
	people  *access.Registry
	cards   *interact.Cards
	judged  func(ctx context.Context, chat chats.Chat) (text string, told func(context.Context) error, err error) // see [Hooks]
	measure queue.Counter
}

// keep stores a rating by a user who may talk to the bot. Any process may do so: a receipt is written
// by the process that read it last, whichever owns the chat.
func (f *feedback) keep(ctx context.Context, m chats.Message) error {
	what, known := ratings[chats.Feedback(m.Text)]
	if !known || m.On == "" || f.people.Role(m.By()) == toolgroups.RoleStranger {
		return nil
	}
	rating := receipts.Feedback{By: m.By(), Good: what.good, Given: what.given, At: m.Time}
	var where *chats.Chat // of the answer
	changed, err := turn.SetFeedback(ctx, f.jobs, m.Chat, m.On, rating, func(r *receipts.Receipt) bool {
		if !f.workers.ofReceipt(r).declares().explained {
			return false
		}
		where = &r.Message.Chat
		return true
	})
	if err != nil {
		return fmt.Errorf("keep feedback: %w", err)
	}
	if changed {
		f.measure(m.Chat.Platform, what.counted)
	}
	if where == nil || !what.given || f.judged == nil {
		return nil
	}
	return f.announce(ctx, *where) // also for a repeated rating, because this may have failed
}

// announce sends a chat, once, the hook's text about ratings.
func (f *feedback) announce(ctx context.Context, chat chats.Chat) error {
	text, told, err := f.judged(ctx, chat)
	if err != nil || text == "" {
		return err
	}
	if _, err := f.cards.Post(ctx, "judged in "+chat.WithoutThread().String(), chat, interact.Card{Text: text}); err != nil {
		return fmt.Errorf("say what comes of feedback: %w", err)
	}
	return told(ctx)
}
