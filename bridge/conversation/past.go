package conversation

import (
	"context"
	"iter"

	"oneclaw/agent"
	"oneclaw/storage"
)

// Past is what a turn was shown of a conversation.
type Past struct {
	// Messages are those in front of the question, Groups the groups that were loaded.
	Messages []agent.Message
	Groups   []string
	// Cut says that messages were let go that no summary stands for.
	Cut bool
}

// Before returns what the turn was shown whose question is the record at pos.
func Before(ctx context.Context, store storage.Store, log string, pos storage.Position, windowTokens int) (past Past, err error) {
	if pos <= 1 {
		return past, nil
	}
	then := until{store, pos}
	h, err := NewCache(then, windowTokens).Take(ctx, log)
	if err != nil {
		return past, err
	}
	past.Messages, past.Cut = h.Messages, h.Cut
	past.Groups, err = LoadedGroups(ctx, then, log)
	return past, err
}

// until is a store whose logs end in front of a position.
type until struct {
	storage.Store

	before storage.Position
}

// Records implements [storage.Log].
func (u until) Records(ctx context.Context, log string, q storage.Query) iter.Seq2[storage.Record, error] {
	if q.Before == 0 || q.Before > u.before {
		q.Before = u.before
	}
	return u.Store.Records(ctx, log, q)
}
