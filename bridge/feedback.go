package bridge

import (
	"context"
	"fmt"

	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
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
	workers *workerRegistry
	jobs    queue.Store
	people  *access.Registry
	measure queue.Counter
}

// record stores a rating by a user who may talk to the bot. Any process may store it, whichever owns the
// chat: the write of a receipt succeeds only if no other process has written it since it was read.
func (f *feedbackRecorder) record(ctx context.Context, m chats.Message) error {
	what, known := ratings[chats.Feedback(m.Text)]
	if !known || m.TargetID == "" || f.people.Role(m.SenderID()) == toolgroups.RoleStranger {
		return nil
	}
	rating := receipts.Feedback{By: m.SenderID(), Good: what.good, Given: what.isGiven, At: m.Time}
	changed, err := turn.SetFeedback(ctx, f.jobs, m.Chat, m.TargetID, rating, func(r *receipts.Receipt) bool {
		return f.workers.forReceipt(r).policy().explainable
	})
	if err != nil {
		return fmt.Errorf("store feedback: %w", err)
	}
	if changed {
		f.measure(m.Chat.Platform, what.metric)
	}
	return nil
}
