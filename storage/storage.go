// Package storage defines the storage engine that OneClaw needs: an append-only [Log] per conversation
// and a [KV] for everything else.
//
// Sessions, jobs, users, tasks, leases and tokens are all values in the KV; engines store bytes and do
// not interpret them. An engine is a package that passes the suite in storage/storetest. A write has
// happened only when the call has returned nil: then it is on disk and survives a crash of the process
// and of the machine.
//
// All methods may be called concurrently. An engine does not keep byte slices after the call to which
// they were passed has returned; byte slices that an engine returns belong to the caller.
package storage

import (
	"context"
	"errors"
	"iter"
)

// Errors that callers distinguish with errors.Is. After any other error it is unknown whether the write
// happened, so the caller has to read again.
var (
	// ErrNotFound is returned by Get for a key that does not exist, and ends an iteration over a log that
	// is dropped in the meantime.
	ErrNotFound = errors.New("storage: not found")
	// ErrConflict is returned by a write if its expected position or revision is not the current one.
	// Nothing was written, and the write that it conflicts with is as safe as one that has returned nil.
	ErrConflict = errors.New("storage: conflict")
	// ErrLocked is returned when another process has the store open.
	ErrLocked = errors.New("storage: in use by another process")
	// ErrLagged is yielded by [KV.Watch] if changes were lost because the consumer was too slow.
	ErrLagged = errors.New("storage: watcher too slow, changes were lost")
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("storage: closed")
	// ErrInvalid is returned for an empty key or log name, for a key, log name, label or value that is
	// too long, for a negative limit, for an empty Append or Write, and for a Write that names a key or
	// a log twice. Empty values and records are valid, and so is every byte in a name.
	ErrInvalid = errors.New("storage: invalid argument")
)

// Limits of every engine, so that data can move between engines.
const (
	// MaxKey is the largest length of a key, a log name and a label in bytes.
	MaxKey = 512
	// MaxValue is the largest length of a value or of a record's data in bytes.
	MaxValue = 8 << 20
)

// Store is a complete engine.
type Store interface {
	Log
	KV
	// Write applies all operations in one step, on keys and logs alike. If a key does not have the
	// expected revision, or a log does not end at the expected position, Write applies none of them and
	// returns ErrConflict. Each key and each log may occur once. Write returns a revision, which every
	// key that it put or deleted then has; it is 0 if no key has changed. Records get the positions that
	// follow [Op.After].
	Write(ctx context.Context, ops ...Op) (Revision, error)
	// Close waits for running calls, ends every Watch, and releases the store. It is idempotent.
	Close() error
}

// Position is the position of a record in its log: 1 for the first record, then counting up without
// gaps. 0 is the position before the first record.
type Position uint64

// Record is one entry of a log.
type Record struct {
	// Pos is the position. Append assigns it and ignores the given one; Erase finds the record by it.
	Pos Position
	// Label is optional. Records with the same label can be read alone, at a cost that does not depend
	// on the other records ([Query].Label).
	Label string
	Data  []byte
}

// Query selects records for [Log.Records]. The zero value selects all.
type Query struct {
	// After skips the records up to and including this position.
	After Position
	// Before, if not 0, skips the records from this position on.
	Before Position
	// Label, if not empty, yields only the records with exactly this label.
	Label string
	// Limit, if not 0, bounds the number of records.
	Limit int
	// Backward yields the newest records first.
	Backward bool
}

// Log stores append-only sequences of records, each under a name.
type Log interface {
	// Append writes all records after the position after, or none of them, and returns the position of
	// the last one. If the log does not end at that position (0 for a log that does not exist), Append
	// returns ErrConflict. The label index is updated in the same step.
	Append(ctx context.Context, log string, after Position, records ...Record) (Position, error)
	// Records yields the records as they were when the iteration began, in order. A log that does not
	// exist yields nothing. The consumer may be slow, and may write to the store between two records.
	// The iteration ends after the first error. If the log is dropped during the iteration, it may end
	// early, with ErrNotFound, but never yields records that were appended after the drop; after Close
	// it may end with ErrClosed.
	Records(ctx context.Context, log string, q Query) iter.Seq2[Record, error]
	// Drop removes a log with its labels. A log that does not exist is no error.
	Drop(ctx context.Context, log string) error
	// Erase replaces the labels and the data of records at their positions ([Record].Pos), for users who
	// want their messages deleted. A record with an empty label and empty data leaves nothing. The
	// positions do not change. Missing records are no error. Erase is idempotent.
	Erase(ctx context.Context, log string, left ...Record) error
	// Logs yields the names of the logs in order, none twice, under the conditions of [KV.List].
	Logs(ctx context.Context, r Range) iter.Seq2[string, error]
}

// Revision identifies one version of a value. One sequence numbers the versions of all keys: a write
// that begins after another has returned gets a higher revision, whichever keys the two name, also
// across deletions and restarts.
type Revision uint64

// Absent is the revision to pass to [KV.Put] for a key that must not exist yet.
const Absent Revision = 0

// Any is the revision to pass to [KV.Put] and [KV.Delete] if the current version does not matter.
const Any Revision = ^Revision(0)

// Entry is a key with its value.
type Entry struct {
	Key      string
	Value    []byte
	Revision Revision
}

// Event is a change that [KV.Watch] reports.
type Event struct {
	Entry
	// Deleted is set if the key was deleted; Value is empty then.
	Deleted bool
}

// Range selects entries for [KV.List] and names for [Log.Logs], in byte order of the names.
type Range struct {
	// Prefix is the prefix of all names; empty for all names.
	Prefix string
	// After, if not empty, skips the names up to and including this one.
	After string
	// Limit, if not 0, bounds the number of names.
	Limit int
}

// KV stores values under keys, with compare-and-set.
type KV interface {
	// Get returns the newest version: it sees every write that returned before Get was called. It
	// returns ErrNotFound if there is none.
	Get(ctx context.Context, key string) (Entry, error)
	// Put writes a value if rev is the revision of the current version ([Absent]: the key must not
	// exist; [Any]: any state), otherwise it returns ErrConflict. It returns the new revision.
	Put(ctx context.Context, key string, value []byte, rev Revision) (Revision, error)
	// Delete removes a key if rev is its current revision or [Any], otherwise it returns ErrConflict.
	// For a key that does not exist it returns ErrConflict, or nil if rev is [Any].
	Delete(ctx context.Context, key string, rev Revision) error
	// List yields entries in order, no key twice. A key that is not written during the iteration is
	// yielded as it is. A key that is written may be yielded in its old or its new version, and one that
	// is created or deleted may be yielded or not. The consumer may write to the store between two
	// entries. The iteration ends after the first error, and may end with ErrClosed after Close.
	List(ctx context.Context, r Range) iter.Seq2[Entry, error]
	// Watch yields the changes of keys with one of the prefixes that are made after Watch was called (not after
	// the iteration began): each change is followed by an event with that version of the key or a newer
	// one. Versions that a newer one has replaced may be left out. The events of one key come in order,
	// and only for versions that were written. A deletion has a revision of its own.
	//
	// The sequence continues until ctx ends (it yields no error then), the store is closed (ErrClosed),
	// or the consumer is too slow for the engine to keep the changes (ErrLagged). After ErrLagged, list
	// and watch again. The sequence can be iterated once.
	Watch(ctx context.Context, prefixes ...string) iter.Seq2[Event, error]
}
