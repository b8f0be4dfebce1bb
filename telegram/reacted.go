package telegram

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"oneclaw/bridge/chats"
)

// reactionUpdate is a change of a user's reactions to a message. It has neither the author of the
// message nor its topic. A reaction in the name of a chat has no user.
type reactionUpdate struct {
	Chat    chat       `json:"chat"`
	Message int64      `json:"message_id"`
	User    *user      `json:"user"`
	Date    int64      `json:"date"`
	Old     []reaction `json:"old_reaction"`
	New     []reaction `json:"new_reaction"`
}

type reaction struct {
	Emoji string `json:"emoji"`
}

// means returns what a reaction means; empty if it is no feedback.
func (r reaction) means() chats.Feedback {
	return chats.FeedbackOf(r.Emoji)
}

// feedback returns the feedback in a change, withdrawals first.
func (r *reactionUpdate) feedback() (said []chats.Message) {
	if r.Chat.ID == 0 || r.User == nil || r.User.IsBot || r.User.ID == 0 {
		return nil
	}
	place := chatOf(r.Chat.ID)
	if r.Chat.IsDirectMessages {
		place = directChat(r.Chat.ID, r.User.ID) // that of an administrator of the channel does not exist
	}
	say := func(these, others []reaction, withdrawn bool) {
		for i, one := range these {
			what := one.means()
			same := func(other reaction) bool { return other.means() == what }
			if what == "" || slices.ContainsFunc(others, same) || slices.ContainsFunc(these[:i], same) {
				continue // it was said before, or is still
			}
			if withdrawn {
				what = what.Withdrawn()
			}
			m := chats.NewFeedback(place, strconv.FormatInt(r.Message, 10), strconv.FormatInt(r.User.ID, 10), what, time.Unix(r.Date, 0).UTC())
			m.Emoji, m.UserName, m.Direct = one.Emoji, r.User.name(), r.Chat.Type == "private"
			said = append(said, m)
		}
	}
	say(r.Old, r.New, true)
	say(r.New, r.Old, false)
	return said
}

// ReportsReactions implements [chats.ReactionReporter]: in groups only administrators get reactions.
func (p *platform) ReportsReactions(ctx context.Context, chat chats.Chat) bool {
	in, topic := splitID(chat)
	if !strings.HasPrefix(in, "-") {
		return true
	}
	if topic != "" { // the messages to a channel are no group
		return false
	}
	admin, err := p.IsAdmin(ctx, chat, p.api.botID())
	return err == nil && admin
}
