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

// readReactions replaces the reactions to answers that end with a question by messages of those who reacted, who so
// answer it. Each person answers each so once: a further reaction is dropped as a second delivery of that message.
func (f *feedbackRecorder) readReactions(ctx context.Context, messages []chats.Message) ([]chats.Message, error) {
	for i, m := range messages {
		what := ratings[chats.Feedback(m.Text)]
		if m.Kind != chats.KindFeedback || m.Emoji == "" || !what.isGiven || f.people.Role(m.SenderID()) == toolgroups.RoleStranger {
			continue
		}
		asked, err := turn.QuestionAt(ctx, f.jobs, m.Chat, m.TargetID, func(r *receipts.Receipt) bool {
			return f.workers.forReceipt(r).policy().explainable
		})
		if err != nil {
			return nil, fmt.Errorf("read a reaction: %w", err)
		}
		if asked == nil {
			continue
		}
		messages[i] = chats.Message{
			Chat: asked.Chat, ID: "reaction-" + queue.Hash(m.TargetID, m.User), Kind: chats.KindText, User: m.User, UserName: m.UserName, Direct: m.Direct,
			Text: "(reacted with " + m.Emoji + ")", Emoji: m.Emoji, TargetID: m.TargetID, Time: m.Time,
			// As in a reply to the answer: what the bot has said is not said by the person.
			Quoted: []chats.Quoted{{Kind: chats.RefReply, ID: m.TargetID, FromBot: true, Partial: true, Text: asked.Text}},
		}
	}
	return messages, nil
}
