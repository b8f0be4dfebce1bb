package bridge

import (
	"context"
	"fmt"

	"oneclaw/bridge/cards"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/toolgroups"
)

// opinions say what the texts of messages of [chats.KindOpinion] mean, and how each is counted
// that says something new.
var opinions = map[chats.Opinion]struct {
	good, given bool
	counted     jobs.Measured
}{
	chats.Good:    {true, true, jobs.MeasuredGood},
	chats.Bad:     {false, true, jobs.MeasuredBad},
	chats.NotGood: {true, false, jobs.MeasuredWithdrawn},
	chats.NotBad:  {false, false, jobs.MeasuredWithdrawn},
}

// judged keeps what somebody who may talk to the bot thinks of an answer. It needs nobody who
// answers in the chat: receipts are changed by whoever reads them last.
func (in *intake) judged(ctx context.Context, m chats.Message) error {
	what, known := opinions[chats.Opinion(m.Text)]
	if !known || m.On == "" || in.people.Role(m.By()) == toolgroups.RoleStranger {
		return nil
	}
	opinion := jobs.Opinion{By: m.By(), Good: what.good, Given: what.given, At: m.Time}
	var where *chats.Chat // of the answer
	changed, err := in.jobs.Judge(ctx, m.Chat, m.On, opinion, func(j *jobs.Job) bool {
		if !in.kinds.of(j).explained {
			return false
		}
		where = &j.Message.Chat
		return true
	})
	if err != nil {
		return fmt.Errorf("keep an opinion: %w", err)
	}
	if changed {
		in.cfg.Hooks.Measure(m.Chat.Platform, what.counted)
	}
	if where == nil || !what.given || in.cfg.Hooks.Judged == nil {
		return nil
	}
	return in.announce(ctx, *where) // also where the opinion comes again, because this has failed
}

// announce tells a chat what comes of opinions, once.
func (in *intake) announce(ctx context.Context, chat chats.Chat) error {
	text, told, err := in.cfg.Hooks.Judged(ctx, chat)
	if err != nil || text == "" {
		return err
	}
	if _, err := in.desk.Post(ctx, "judged in "+chat.Whole().String(), chat, cards.Card{Text: text}); err != nil {
		return fmt.Errorf("say what comes of opinions: %w", err)
	}
	return told(ctx)
}
