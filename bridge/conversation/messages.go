package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"oneclaw/agent"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
)

// Encode returns the record of a message. For a message that is too large for a record it returns
// [storage.ErrInvalid]: retrying does not help.
func Encode(m agent.Message) (storage.Record, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return storage.Record{}, fmt.Errorf("encode message: %w", err)
	}
	if len(data) > storage.MaxValue {
		return storage.Record{}, fmt.Errorf("%w: a message of %d bytes, at most %d", storage.ErrInvalid, len(data), storage.MaxValue)
	}
	return storage.Record{Label: m.Label(), Data: data}, nil
}

// Decode returns the message of a record. Its error is a *[queue.DamagedError].
func Decode(log string, r storage.Record) (agent.Message, error) {
	var m agent.Message
	if err := json.Unmarshal(r.Data, &m); err != nil {
		return m, &queue.DamagedError{Key: log, Data: r.Data, Pos: r.Pos, Err: err}
	}
	return m, nil
}

// Messages yields the messages of a conversation, oldest first. It yields an error for a record that
// does not decode, and continues.
func Messages(ctx context.Context, store storage.Log, log string) iter.Seq2[agent.Message, error] {
	return readAll(ctx, store, log, storage.Query{})
}

// RecentMessages yields the messages of a conversation, newest first.
func RecentMessages(ctx context.Context, store storage.Log, log string) iter.Seq2[agent.Message, error] {
	return readAll(ctx, store, log, storage.Query{Backward: true})
}

// TaskAnswer returns the answer in the conversation of a task, whose question has the given Ref; one without a text if
// there is none.
func TaskAnswer(ctx context.Context, store storage.Log, log, ref string) (agent.Message, error) {
	for m, err := range RecentMessages(ctx, store, log) {
		switch {
		case queue.IsDamaged(err):
			continue
		case err != nil:
			return agent.Message{}, fmt.Errorf("look for the answer in %s: %w", log, err)
		case m.Role == agent.RoleAssistant && m.Final:
			return m, nil
		case m.Ref == ref:
			return agent.Message{}, nil
		}
	}
	return agent.Message{}, nil
}

// RecentMatches is [RecentMessages] restricted to messages for whose record, as JSON, wanted returns
// true. The other records are not decoded.
func RecentMatches(ctx context.Context, store storage.Log, log string, wanted func(record []byte) bool) iter.Seq2[agent.Message, error] {
	return read(ctx, store, log, storage.Query{Backward: true}, wanted)
}

// readAll yields the messages that a query finds, in the order of the query. It yields an error for a
// record that does not decode, and continues.
func readAll(ctx context.Context, store storage.Log, log string, q storage.Query) iter.Seq2[agent.Message, error] {
	return read(ctx, store, log, q, func([]byte) bool { return true })
}

func read(ctx context.Context, store storage.Log, log string, q storage.Query, wanted func([]byte) bool) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		for record, err := range keptRecords(ctx, store, log, q) {
			if err == nil && !wanted(record.Data) {
				continue
			}
			var m agent.Message
			if err == nil {
				m, err = Decode(log, record)
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// keptRecords yields the records that a query finds, except erased ones. With a limit there may be fewer.
func keptRecords(ctx context.Context, store storage.Log, log string, q storage.Query) iter.Seq2[storage.Record, error] {
	return skipErased(store.Records(ctx, log, q), func(storage.Record) {})
}

// isErased reports whether the texts of a record were erased. Records that load groups keep a part.
func isErased(r storage.Record) bool {
	if len(r.Data) == 0 {
		return true
	}
	var m agent.Message
	return r.Label == agent.LabelLoad && json.Unmarshal(r.Data, &m) == nil && m.Erased
}

// HasBegun reports whether a conversation has any records, including erased ones.
func HasBegun(ctx context.Context, store storage.Log, log string) (bool, error) {
	for _, err := range store.Records(ctx, log, storage.Query{Limit: 1}) {
		if err != nil {
			return false, fmt.Errorf("look for records in %s: %w", log, err)
		}
		return true, nil
	}
	return false, nil
}

// skipErased yields the records that were not erased. It calls met with every record.
func skipErased(all iter.Seq2[storage.Record, error], met func(storage.Record)) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		for record, err := range all {
			met(record)
			if (err != nil || !isErased(record)) && !yield(record, err) {
				return
			}
		}
	}
}

// LoadedGroups returns the groups that a conversation has loaded, in the order in which they were first
// loaded, according to its log. It reads only labelled records.
func LoadedGroups(ctx context.Context, store storage.Log, log string) ([]string, error) {
	var failure error
	groups := agent.RestoreGroups(func(yield func(agent.Message) bool) {
		for record, err := range store.Records(ctx, log, storage.Query{Label: agent.LabelLoad}) {
			if err != nil {
				failure = errors.Join(failure, err)
				continue
			}
			// A group whose record is damaged can be loaded again.
			if m, err := Decode(log, record); err == nil && !yield(m) {
				return
			}
		}
	})
	if failure != nil {
		return nil, fmt.Errorf("restore groups of %s: %w", log, failure)
	}
	return groups, nil
}
