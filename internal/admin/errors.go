package admin

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/admin/frame"
	"oneclaw/internal/retry"
	"oneclaw/internal/telemetry"
	"oneclaw/storage"
)

const (
	errorsView = "errors"
	// errorPrefix begins the keys of errors, the newest first.
	errorPrefix = "error/"
	// MaxErrors bounds the stored errors.
	MaxErrors = 1000
	// ErrorAge is how long errors are stored.
	ErrorAge = 30 * 24 * time.Hour
	// errorFlushInterval is the pause between two writes: a flood of errors costs one write a second.
	errorFlushInterval = time.Second
	// errorPruneInterval is the longest pause between two deletions of old errors.
	errorPruneInterval = time.Hour
	// erasedPrefix begins the keys of erasures, which tell other replicas what to drop. They are kept for
	// erasedAge, in which each replica looks for them several times.
	erasedPrefix = "errors-erased/"
	erasedAge    = 3 * errorPruneInterval
	// maxErasedJobs bounds the jobs that an erasure names; few users write as much in a week.
	maxErasedJobs = 2000
	// maxClockDifference is how far the clocks of replicas are apart at most.
	maxClockDifference = time.Minute
)

// ErrorStore stores the errors of the log, so that the pages show them after a restart and for all
// replicas.
type ErrorStore struct {
	Store storage.Store
	// Ring has the logged warnings and errors, with secrets masked. Without it nothing is stored.
	Ring *telemetry.Ring
	// Replica is another word for each process that shares the store; "" if no other does.
	Replica string
	Log     *slog.Logger
	Now     func() time.Time

	flushing sync.Mutex
}

// Run stores new errors and deletes old ones until ctx ends, and returns nil. An error that cannot be
// stored remains in the log.
func (e *ErrorStore) Run(ctx context.Context) error {
	if e.Ring == nil {
		return nil
	}
	tick := time.NewTicker(errorPruneInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		e.flushAndPrune(ctx)
		if retry.Wait(ctx, errorFlushInterval) == nil {
			select {
			case <-ctx.Done():
			case <-e.Ring.Arrived():
			case <-tick.C:
			}
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), queue.WriteTimeout)
	defer cancel()
	e.flushAndPrune(last)
	return nil
}

func (e *ErrorStore) flushAndPrune(ctx context.Context) {
	err := e.flush(ctx)
	if err == nil {
		err = e.prune(ctx)
	}
	if err != nil {
		e.Log.Warn("recent errors could not be stored", "err", err) // a warning, which is not stored itself
	}
}

// flush stores the errors that are new in the ring.
func (e *ErrorStore) flush(ctx context.Context) error {
	e.flushing.Lock()
	defer e.flushing.Unlock()
	if err := e.dropErased(ctx); err != nil {
		return err
	}
	var ops []storage.Op
	taken := map[string]telemetry.Error{} // by key
	for _, one := range e.Ring.Take() {
		if one.User == "" && one.Job != "" {
			one.User = e.userOf(ctx, one.Job)
		}
		data, err := json.Marshal(one)
		if err != nil {
			return fmt.Errorf("encode an error: %w", err)
		}
		key := fmt.Sprintf("%s%019d/%s", errorPrefix, math.MaxInt64-one.At.UnixNano(), rand.Text()[:8])
		ops, taken[key] = append(ops, storage.Put(key, data, storage.Absent)), one
	}
	if len(ops) == 0 {
		return nil
	}
	// They are no longer in the ring, so the end of ctx does not interrupt the write.
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), queue.WriteTimeout)
	defer cancel()
	if _, err := e.Store.Write(writing, ops...); err != nil {
		return fmt.Errorf("store %d errors: %w", len(ops), err)
	}
	// Another replica may have erased since the ring was looked through, and before this write.
	erased, err := e.erased(writing)
	var gone []string
	for key, one := range taken {
		if err == nil && erased(one) {
			gone = append(gone, key)
		}
	}
	return errors.Join(err, e.remove(writing, gone))
}

// userOf returns the sender of a job's message, as platform:id, or ""
// if the sender is no longer known. /forget finds the error by it.
func (e *ErrorStore) userOf(ctx context.Context, job string) string {
	for _, prefix := range []string{queue.OpenPrefix, receipts.Prefix} {
		if entry, err := e.Store.Get(ctx, prefix+job); err == nil && senderOf(entry) != "" {
			return senderOf(entry)
		}
	}
	return ""
}

// senderOf returns the sender of the message of an open job or a receipt, as platform:id; "" if it is
// damaged or has none.
func senderOf(entry storage.Entry) string {
	var of struct {
		Message chats.Message `json:"message"`
	}
	if json.Unmarshal(entry.Value, &of) != nil || of.Message.User == "" {
		return ""
	}
	return of.Message.SenderID()
}

// list calls do for each stored error, the newest first,
// until do returns false. A nil receiver has no errors.
func (e *ErrorStore) list(ctx context.Context, do func(key string, one telemetry.Error) bool) error {
	if e == nil {
		return nil
	}
	for entry, err := range e.Store.List(ctx, storage.Range{Prefix: errorPrefix}) {
		if err != nil {
			return fmt.Errorf("list recent errors: %w", err)
		}
		var one telemetry.Error
		_ = json.Unmarshal(entry.Value, &one) // a damaged error is empty, and expires
		if !do(entry.Key, one) {
			break
		}
	}
	return nil
}

// remove deletes the named errors.
func (e *ErrorStore) remove(ctx context.Context, keys []string) error {
	for _, key := range keys {
		if err := e.Store.Delete(ctx, key, storage.Any); err != nil && !errors.Is(err, storage.ErrNotFound) {
			return fmt.Errorf("remove an error: %w", err)
		}
	}
	return nil
}

// prune deletes the errors that are older than ErrorAge, and the oldest ones beyond MaxErrors.
func (e *ErrorStore) prune(ctx context.Context) error {
	oldest := fmt.Sprintf("%s%019d", errorPrefix, math.MaxInt64-e.Now().Add(-ErrorAge).UnixNano())
	n, gone := 0, []string(nil)
	err := e.list(ctx, func(key string, _ telemetry.Error) bool {
		if n++; n > MaxErrors || key > oldest {
			gone = append(gone, key)
		}
		return true
	})
	return errors.Join(err, e.remove(ctx, gone))
}

// erasure says whose errors a replica has deleted when.
type erasure struct {
	User    string     `json:"user"`
	Direct  chats.Chat `json:"direct"`
	Replica string     `json:"replica"`
	At      time.Time  `json:"at"`
	// Jobs has the keys of the user's jobs: many lines of the log name only the job, and its sender is erased
	// next.
	Jobs map[string]bool `json:"jobs,omitempty"`
}

// concerns reports whether an error is about the user, as platform:id, about one of their jobs, or about
// their direct chat.
func (o erasure) concerns(one telemetry.Error) bool {
	chat, err := chats.ParseChat(chatOf(one))
	return one.User == o.User || o.Jobs[one.Job] || err == nil && chat.WithoutThread() == o.Direct.WithoutThread() || strings.Contains(one.Details+" ", "="+o.User+" ")
}

// dropErased drops the errors of the ring that another replica has erased.
func (e *ErrorStore) dropErased(ctx context.Context) error {
	erased, err := e.erased(ctx)
	if err == nil {
		e.Ring.Drop(erased)
	}
	return err
}

// erased returns a function that reports whether another replica has erased an error. Later ones of the same
// user stay. It removes old erasures.
func (e *ErrorStore) erased(ctx context.Context) (func(telemetry.Error) bool, error) {
	if e.Replica == "" {
		return func(telemetry.Error) bool { return false }, nil
	}
	var all []erasure
	var old []storage.Entry
	for entry, err := range e.Store.List(ctx, storage.Range{Prefix: erasedPrefix}) {
		if err != nil {
			return nil, fmt.Errorf("admin: list erasures: %w", err)
		}
		var one erasure
		if json.Unmarshal(entry.Value, &one) != nil || e.Now().Sub(one.At) >= erasedAge {
			old = append(old, entry)
		} else if one.Replica != e.Replica {
			all = append(all, one)
		}
	}
	for _, entry := range old {
		// After a conflict it is gone, or there is a new one.
		if err := e.Store.Delete(ctx, entry.Key, entry.Revision); err != nil && !errors.Is(err, storage.ErrConflict) {
			return nil, fmt.Errorf("admin: remove an erasure: %w", err)
		}
	}
	return func(one telemetry.Error) bool {
		return slices.ContainsFunc(all, func(o erasure) bool { return o.concerns(one) && one.At.Before(o.At.Add(maxClockDifference)) })
	}, nil
}

// tellOthers stores an erasure for the other replicas. Each user has one record, because /forget erases in
// each chat, and it keeps what the last erasure of the user said, which a replica may not have read yet.
func (e *ErrorStore) tellOthers(ctx context.Context, of *erasure) error {
	key := erasedPrefix + queue.Hash(of.User)
	for {
		entry, err := e.Store.Get(ctx, key)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		var last erasure
		if json.Unmarshal(entry.Value, &last) == nil {
			of.Direct = cmp.Or(of.Direct, last.Direct)
			for job := range last.Jobs {
				if len(of.Jobs) < maxErasedJobs {
					of.Jobs[job] = true
				}
			}
		}
		if _, err = queue.Write(ctx, e.Store, key, of, entry.Revision); !errors.Is(err, storage.ErrConflict) {
			return err
		}
	}
}

// Forget deletes the errors of a user, as platform:id, and of their direct chat. Other replicas drop theirs
// before they next store or show any. It has to be called before the user's receipts are erased.
func (e *ErrorStore) Forget(ctx context.Context, user string, direct chats.Chat) error {
	platform, _, _ := strings.Cut(user, ":")
	return e.forget(ctx, erasure{User: user, Direct: direct}, platform+":")
}

// forget carries out an erasure. Other replicas are told of the jobs whose keys begin with under.
func (e *ErrorStore) forget(ctx context.Context, of erasure, under string) error {
	of.Replica, of.At, of.Jobs = e.Replica, e.Now(), map[string]bool{}
	looked := map[string]bool{"": true} // many lines name the same job
	for _, one := range e.Ring.Last() {
		if one.User != "" || looked[one.Job] {
			continue
		}
		looked[one.Job] = true
		if e.userOf(ctx, one.Job) == of.User {
			of.Jobs[one.Job] = true
		}
	}
	if e.Replica != "" {
		err := e.addJobs(ctx, of, under)
		if err == nil {
			err = e.tellOthers(ctx, &of)
		}
		if err != nil {
			return fmt.Errorf("admin: store an erasure of errors: %w", err)
		}
	}
	e.Ring.Drop(of.concerns)
	if e.Ring != nil { // a line that names only the job gets its user when it is stored
		if err := e.flush(ctx); err != nil {
			return err
		}
	}
	var gone []string
	err := e.list(ctx, func(key string, one telemetry.Error) bool {
		if of.concerns(one) {
			gone = append(gone, key)
		}
		return true
	})
	return errors.Join(err, e.remove(ctx, gone))
}

// addJobs adds the user's jobs whose keys begin with under to an erasure.
func (e *ErrorStore) addJobs(ctx context.Context, of erasure, under string) error {
	for _, prefix := range []string{queue.OpenPrefix, receipts.Prefix} {
		for entry, err := range e.Store.List(ctx, storage.Range{Prefix: prefix + under}) {
			switch {
			case err != nil:
				return err
			case len(of.Jobs) >= maxErasedJobs:
				return nil
			case senderOf(entry) == of.User:
				of.Jobs[strings.TrimPrefix(entry.Key, prefix)] = true
			}
		}
	}
	return nil
}

// chatOf returns the chat of an error; many lines of the log name only the job.
func chatOf(one telemetry.Error) string {
	place, _, _ := strings.Cut(one.Job, "/")
	return cmp.Or(one.Chat, place)
}

// byIncident returns the stored errors by the incident ids that were shown in chats.
func (e *ErrorStore) byIncident(ctx context.Context) (map[string]telemetry.Error, error) {
	all := map[string]telemetry.Error{}
	err := e.list(ctx, func(_ string, one telemetry.Error) bool {
		if one.Incident != "" {
			all[one.Incident] = one // the oldest one, which comes last, is the cause
		}
		return true
	})
	return all, err
}

// newestSince returns the newest stored error; found reports whether it is newer than t.
func (e *ErrorStore) newestSince(ctx context.Context, t time.Time) (newest telemetry.Error, found bool, err error) {
	err = e.list(ctx, func(_ string, one telemetry.Error) bool {
		newest, found = one, one.At.After(t)
		return false
	})
	return newest, found, err
}

// lastLogged returns the last warnings and errors of this process.
func (e *ErrorStore) lastLogged(ctx context.Context) ([]telemetry.Error, error) {
	if e == nil {
		return nil, nil
	}
	err := e.dropErased(ctx)
	return e.Ring.Last(), err
}

// errors shows the stored errors and the last warnings of this process.
func (p *page) errors(ctx context.Context, r frame.Request) (frame.Page, error) {
	t := &frame.Table{
		Name: "errors", Caption: "Errors of the last 30 days, the newest first", Empty: "No error in the last 30 days.",
		Columns: frame.Columns("When", "What failed", "Why", "Chat", "Id", "Details"),
	}
	find := strings.TrimSpace(r.Query.Get("find"))
	if find != "" {
		t.Empty = "None was found."
	}
	err := p.Program.Errors.list(ctx, func(_ string, one telemetry.Error) bool {
		if find == "" || find == chatOf(one) || find == one.User || strings.EqualFold(find, one.Incident) {
			t.Rows = append(t.Rows, []frame.Cell{
				{Time: one.At, Link: messageLink(one.Job)}, {Text: one.Text, Mood: frame.Bad}, frame.Text(one.Why()), frame.Text(chatOf(one)), frame.Text(one.Incident), frame.Text(one.Details),
			})
		}
		return len(t.Rows) < r.Limit
	})
	if err != nil {
		return frame.Page{}, err
	}
	logged, err := p.Program.Errors.lastLogged(ctx)
	if err != nil {
		return frame.Page{}, err
	}
	warnings := &frame.Table{Name: "warnings", Caption: "Warnings of this process, the newest first", Columns: frame.Columns("When", "What", "Why", "Details"), Empty: "No warning since the program began."}
	for _, one := range logged {
		if one.Level < slog.LevelError && len(warnings.Rows) < r.Limit {
			warnings.Rows = append(warnings.Rows, []frame.Cell{{Time: one.At, Link: messageLink(one.Job)}, frame.Text(one.Text), frame.Text(one.Cause), frame.Text(one.Details)})
		}
	}
	search := frame.Form{View: errorsView, IsSearch: true, Submit: "Search", Fields: []frame.Field{{Name: "find", Label: "Chat, person or id", Value: find, Hint: "telegram:123"}}}
	return frame.Page{
		Lead:     "What was tried again and worked is a warning. A time leads to the message. No text of a message is here.",
		Sections: []frame.Section{{Title: "Errors", Forms: []frame.Form{search}, Table: t}, {Title: "Warnings", Table: warnings}},
	}, nil
}

// messageLink returns the address of the page about a job's message, or "" if there is none.
func messageLink(job string) string {
	if !receipts.IsUserMessage(chats.Message{Kind: chats.Kind(job[strings.LastIndexByte(job, '/')+1:])}) {
		return ""
	}
	return frame.ViewURL(messageView, "key", job)
}
