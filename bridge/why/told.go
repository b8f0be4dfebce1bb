package why

import (
	"context"

	"oneclaw/agent"
	"oneclaw/bridge/receipts"
)

// Explanation is what became of a message, for an administrator who is not in its chat.
type Explanation struct {
	Receipt *receipts.Receipt
	// Lines are what [Explainer.Explain] says, in Markdown, without anything that a user wrote.
	Lines []string
	// Turn is what its conversation has about it: the whole texts.
	Turn []agent.Message
}

// Tell tells of a job, or of the one that it became part of; nil where there is none.
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
