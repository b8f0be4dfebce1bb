package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

// DamagedError is a record that does not decode. It becomes a dead letter and is never retried.
type DamagedError struct {
	Key  string
	Data []byte
	// Pos is its position, if it is a record of the log that Key names.
	Pos storage.Position
	Err error
}

// Error names the record and what is wrong with it.
func (e *DamagedError) Error() string {
	if e.Pos > 0 {
		return fmt.Sprintf("decode record %d of %s: %v", e.Pos, e.Key, e.Err)
	}
	return fmt.Sprintf("decode %s: %v", e.Key, e.Err)
}

// Unwrap returns the error of the decoder.
func (e *DamagedError) Unwrap() error { return e.Err }

// IsDamaged reports whether an error is a [DamagedError].
func IsDamaged(err error) bool {
	_, is := errors.AsType[*DamagedError](err)
	return is
}

// Name returns the key for its dead letter.
func (e *DamagedError) Name() string {
	if e.Pos > 0 {
		return fmt.Sprintf("log/%s/%d", e.Key, e.Pos)
	}
	return e.Key
}

// Decode decodes a record of the KV.
func Decode(entry storage.Entry, v any) error {
	if err := json.Unmarshal(entry.Value, v); err != nil {
		return &DamagedError{Key: entry.Key, Data: entry.Value, Err: err}
	}
	return nil
}

// Write writes a record of the KV over a revision.
func Write(ctx context.Context, kv storage.KV, key string, v any, rev storage.Revision) (storage.Revision, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("encode %s: %w", key, err)
	}
	if rev, err = kv.Put(ctx, key, data, rev); err != nil {
		return 0, fmt.Errorf("store %s: %w", key, err)
	}
	return rev, nil
}

// MessageOf returns what the key of a job says about its message.
func MessageOf(key, prefix string) (m chats.Message, ok bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 3 {
		return m, false
	}
	chat, err := chats.ParseChat(parts[0])
	return chats.Message{Chat: chat, ID: parts[1], Kind: chats.Kind(parts[2])}, err == nil
}
