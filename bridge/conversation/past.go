package conversation

import (
	"context"
	"iter"

	"oneclaw/agent"
	"oneclaw/storage"
)

// Past is the part of a conversation that a turn was shown.
type Past struct {
	// Messages are those before the question, Groups the loaded groups.
	Messages []agent.Message
	Groups   []string
	// Cut says that messages were dropped that no summary covers.
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

// until is a store whose logs end before a position.
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
