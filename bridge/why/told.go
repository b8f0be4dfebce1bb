package why

import (
	"context"

	"oneclaw/agent"
	"oneclaw/bridge/receipts"
)

// Explanation explains to an administrator outside of the chat how a message was handled.
type Explanation struct {
	Receipt *receipts.Receipt
	// Lines are the lines of [Explainer.Explain], in Markdown, without texts of users.
	Lines []string
	// Turn is its turn in the conversation, with the full texts.
	Turn []agent.Message
}

// Tell explains a job, or the one that it became part of; nil if there is none.
func (e Explainer) Tell(ctx context.Context, key string) (*Explanation, error) {
	j, err := e.Jobs.Find(ctx, key)
	if err == nil && j != nil && j.JoinedTo != "" {
		j, err = e.Jobs.Find(ctx, j.JoinedTo)
	}
	if j == nil || err != nil {
		return nil, err
	}
	turn, err := e.turn(ctx, j)
	if err != nil {
		return nil, err
	}
	s := story{job: j, turn: turn, whole: true, silent: true, zone: e.zone(), running: e.Answering(j.Message.Chat, j.Key())}
	return &Explanation{Receipt: j, Lines: s.facts(), Turn: turn}, nil
}
