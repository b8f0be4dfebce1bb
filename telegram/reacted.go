package telegram

import (
	"slices"
	"strconv"
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

// ratings maps the reactions that are ratings to the feedback of adding and of removing them.
var ratings = map[reaction][2]chats.Feedback{
	{"👍"}: {chats.FeedbackGood, chats.FeedbackNotGood},
	{"👎"}: {chats.FeedbackBad, chats.FeedbackNotBad},
}

// feedback returns the ratings in a change, withdrawals first.
func (r *reactionUpdate) feedback() (said []chats.Message) {
	if r.Chat.ID == 0 || r.User == nil || r.User.IsBot || r.User.ID == 0 {
		return nil
	}
	place := chatOf(r.Chat.ID)
	if r.Chat.IsDirectMessages {
		place = directChat(r.Chat.ID, r.User.ID) // that of an administrator of the channel does not exist
	}
	say := func(these, others []reaction, which int) {
		for _, one := range these {
			if what, is := ratings[one]; is && !slices.Contains(others, one) {
				said = append(said, chats.NewFeedback(place, strconv.FormatInt(r.Message, 10), strconv.FormatInt(r.User.ID, 10), what[which], time.Unix(r.Date, 0).UTC()))
			}
		}
	}
	say(r.Old, r.New, 1)
	say(r.New, r.Old, 0)
	return said
}
