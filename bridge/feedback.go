package bridge

import (
	"context"
	"fmt"
	"time"

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
	good, isGiven bool
	metric        queue.Metric
}{
	chats.FeedbackGood:    {true, true, queue.MeasuredGood},
	chats.FeedbackBad:     {false, true, queue.MeasuredBad},
	chats.FeedbackNotGood: {true, false, queue.MeasuredWithdrawn},
	chats.FeedbackNotBad:  {false, false, queue.MeasuredWithdrawn},
}

// feedbackRecorder stores users' ratings of answers.
type feedbackRecorder struct {
	workers      *workerRegistry
	jobs         queue.Store
	people       *access.Registry
	cards        *interact.Cards
	ratingNotice func(ctx context.Context, chat chats.Chat, rated time.Time) (text string, told func(context.Context) error, err error) // see [Hooks]
	measure      queue.Counter
}

// record stores a rating by a user who may talk to the bot. Any process may store it, whichever owns the
// chat: the write of a receipt succeeds only if no other process has written it since it was read.
func (f *feedbackRecorder) record(ctx context.Context, m chats.Message) error {
	what, known := ratings[chats.Feedback(m.Text)]
	if !known || m.TargetID == "" || f.people.Role(m.SenderID()) == toolgroups.RoleStranger {
		return nil
	}
	rating := receipts.Feedback{By: m.SenderID(), Good: what.good, Given: what.isGiven, At: m.Time}
	var where *chats.Chat // the chat of the answer
	changed, err := turn.SetFeedback(ctx, f.jobs, m.Chat, m.TargetID, rating, func(r *receipts.Receipt) bool {
		if !f.workers.forReceipt(r).policy().explainable {
			return false
		}
		where = &r.Message.Chat
		return true
	})
	if err != nil {
		return fmt.Errorf("store feedback: %w", err)
	}
	if changed {
		f.measure(m.Chat.Platform, what.metric)
	}
	if where == nil || !what.isGiven || f.ratingNotice == nil {
		return nil
	}
	return f.postRatingNotice(ctx, *where, m.Time) // even for a repeated rating, because an earlier attempt may have failed
}

// postRatingNotice posts the hook's text about ratings in a chat, once.
func (f *feedbackRecorder) postRatingNotice(ctx context.Context, chat chats.Chat, rated time.Time) error {
	text, told, err := f.ratingNotice(ctx, chat, rated)
	if err != nil || text == "" {
		return err
	}
	if _, err := f.cards.Post(ctx, "judged in "+chat.WithoutThread().String(), chat, interact.Card{Text: text}); err != nil {
		return fmt.Errorf("post the notice about ratings: %w", err)
	}
	return told(ctx)
}
