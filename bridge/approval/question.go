package approval

import (
	"time"

	"oneclaw/bridge/cards"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/toolgroups"
)

// Question is a call that waits for a decision, as it is for somebody.
type Question struct {
	Chat      chats.Chat
	Direct    bool
	Tool      string
	Requester string
	Expires   time.Time
	// Text is the question with the exact arguments, in Markdown, for whoever may decide.
	Text string
	// Allow and Deny are the data of the buttons that they may press; empty where they may not.
	// They belong to this question, and to no other arguments.
	Allow, Deny string
}

// QuestionOf returns the question of an open card, if it is one.
func QuestionOf(kept *cards.Kept, user string, role toolgroups.Role) (Question, bool) {
	if kept.Kind != Kind || !kept.Open() {
		return Question{}, false
	}
	r, err := requestOf(kept.Card)
	if err != nil {
		return Question{}, false
	}
	q := Question{Chat: kept.Chat, Direct: r.Direct, Tool: r.Tool, Requester: r.Requester, Expires: kept.Expires}
	here := chats.Message{Chat: kept.Chat}.By() // the platform of the chat, and nobody
	if len(user) <= len(here) || user[:len(here)] != here {
		return q, true // the chat does not know them
	}
	if r.mayAllow(user, role) {
		q.Allow = kept.ButtonOf(jobs.ChoiceAllow)
	}
	if r.mayAllow(user, role) || user == r.Requester {
		q.Deny, q.Text = kept.ButtonOf(jobs.ChoiceDeny), kept.Text
	}
	return q, true
}
