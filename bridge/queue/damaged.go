package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

// DamagedError is returned for a record that does not decode. The record becomes a dead letter.
type DamagedError struct {
	Key  string
	Data []byte
	// Pos is the position of the record if it is in a log, which Key names then; otherwise 0.
	Pos storage.Position
	Err error
}

// Error names the record and the error of the decoder.
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

// Name returns the key of the record's dead letter.
func (e *DamagedError) Name() string {
	if e.Pos > 0 {
		return fmt.Sprintf("log/%s/%d", e.Key, e.Pos)
	}
	return e.Key
}

// Decode decodes a record of the KV. Its error is a *[DamagedError].
func Decode(entry storage.Entry, v any) error {
	if err := json.Unmarshal(entry.Value, v); err != nil {
		return &DamagedError{Key: entry.Key, Data: entry.Value, Err: err}
	}
	return nil
}

// MessageOf returns the chat, without its thread, the id and the kind of a job's message from the job's
// key, which follows a prefix.
func MessageOf(key, prefix string) (m chats.Message, ok bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 3 {
		return m, false
	}
	chat, err := chats.ParseChat(parts[0])
	return chats.Message{Chat: chat, ID: parts[1], Kind: chats.Kind(parts[2])}, err == nil
}
