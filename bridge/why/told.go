package why

import (
	"context"

	"oneclaw/agent"
	"oneclaw/bridge/receipts"
)

// Explanation explains to an administrator outside the chat how a message was handled.
type Explanation struct {
	Receipt *receipts.Receipt
	// Lines are the lines of [Explainer.Explain], in Markdown, without texts of users.
	Lines []string
	// Turn is the message's turn in the conversation, with the full texts.
	Turn []agent.Message
}

// ExplainJob explains a job, or the one to which it was joined; nil if there is none.
func (e Explainer) ExplainJob(ctx context.Context, key string) (*Explanation, error) {
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
	s := story{redact: e.Redact, job: j, turn: turn, forAdmin: true, omitTexts: true, zone: e.zone(), running: e.IsAnswering(j.Message.Chat, j.Key())}
	return &Explanation{Receipt: j, Lines: s.facts(), Turn: turn}, nil
}
