package conversation

import (
	"context"
	"iter"

	"oneclaw/agent"
	"oneclaw/storage"
)

// Past is the part of a conversation that the model was shown for a turn.
type Past struct {
	// Messages are the messages before the question, Groups the loaded groups.
	Messages []agent.Message
	Groups   []string
	// Truncated is set if messages were dropped that no summary covers.
	Truncated bool
}

// ReadPast returns what the model was shown for the turn whose question is the record at pos.
func ReadPast(ctx context.Context, store storage.Store, log string, pos storage.Position, windowTokens int) (past Past, err error) {
	if pos <= 1 {
		return past, nil
	}
	then := truncatedStore{store, pos}
	h, err := NewCache(then, windowTokens).Take(ctx, log)
	if err != nil {
		return past, err
	}
	past.Messages, past.Truncated = h.Messages, h.Truncated
	past.Groups, err = LoadedGroups(ctx, then, log)
	return past, err
}

// truncatedStore is a store whose logs end before a position.
type truncatedStore struct {
	storage.Store

	before storage.Position
}

// Records implements [storage.Log].
func (u truncatedStore) Records(ctx context.Context, log string, q storage.Query) iter.Seq2[storage.Record, error] {
	if q.Before == 0 || q.Before > u.before {
		q.Before = u.before
	}
	return u.Store.Records(ctx, log, q)
}
