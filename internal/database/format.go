package database

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"oneclaw/storage"
)

// formatKey is the key of the record of the data's format. These are all keys, and their bounds:
//
//	format        this record; one
//	transfer/     the mark of a move into this database that is not finished; one
//	numbers       the base of the numbers of jobs; one
//	claim         the code that makes its sender the owner; one
//	doctor/       test writes of doctor; deleted at once
//	wipe          whether the next start rewrites the file; one
//	secret        a fingerprint of the key that encrypts, on a server; one
//	replicas/     the replicas and their leases; one for each
//	job/open/     messages to be answered; bounded for each chat
//	job/done/     receipts; a week, pruned each hour
//	finished/     an index of the receipts by their time; kept as long as the receipts
//	sweep         which receipts the next pruning reads; one
//	new/          notices of messages that came to another replica than their chat's; the
//	              owner of the chat deletes them
//	sign/         acknowledgement reactions that are shown; deleted with them
//	card/         cards with buttons; they expire, and are deleted a week after they were closed
//	allowed/      approvals that hold until a conversation is cleared; at most 20 for each user and
//	              conversation, for 90 days
//	unattended/   the unattended runs of a day, bounded for each user; two days
//	unreachable/  chats that take no messages from the bot; one for each
//	access/       who was let in, one for each; a refusal expires
//	stranger/     users to whom the notice to unknown users was sent; a day, and at most 200 new
//	              ones an hour
//	probe         is written to find out whether the store accepts writes; one
//	aside/        dead letters; 30 days, pruned each hour
//	observe/      groups in which the bot listens; one for each
//	heard/        messages in those groups; about 50 for each chat or thread, for a day
//	moved/        the new ids of chats that moved; one for each
//	forgotten/    people who were forgotten; one for each, for a day
//	session/      the current conversation; one for each chat
//	audit/        audit entries; at most 50,000, for a year unless the settings say otherwise
//	admin/        sessions of administrators on their pages; one record for each administrator
//	conversation/ a line for each conversation; those of tasks are deleted after 90 days
//	asked/        group conversations in which a user has asked something; one for each user and
//	              conversation
//	memory/       one for each owner, of a bounded size
//	schedule/     tasks, bounded for each owner, with a bounded history; two entries of
//	              the index for each
//	settings/     what administrators and chats chose; each kind is bounded
//	telegram/     the last albums addressed to the bot; one
//	slack/        the cursor of received messages; threads to check, at most
//	              200 threads for each process; where commands accept answers, one list for
//	              each channel, deleted after half an hour; with several processes the
//	              threads with the bot, for a day
//	hook/         webhooks, bounded for each owner
//	google/       an account, wanted scopes, and a sign-in; one each for a user
//	mcp/          servers that were added or imported, at most 50 of each; for each server the
//	              descriptions that were allowed, and the bot's client; for each server and user an
//	              account and a sign-in
//	files/        the contents of an owner's folder, if replicas share the store; one for
//	              each, of at most 8 MiB
//	blob/         chunks of those files, within the quota of each owner; deleted with the files
//	account/      model usage: one for each user, chat and day for two months, one
//	              for each day, month, model and tool group for 400 days, one for each chat
//	              since it began; charges that are not added to them yet, for seconds, or
//	              for a day if another process adds them
//
// The logs contain the conversations, which people search: they are kept, except those of tasks,
// which are deleted with their lines.
const formatKey = "format"

// LowestFormat is the lowest format that is read. lastReaderCommit is
// the commit whose program reads lower ones, which no release wrote.
const (
	LowestFormat     = 4
	lastReaderCommit = "86754647"
)

// NewestFormat returns the format that the steps lead to.
func NewestFormat(steps []Migration) int { return LowestFormat + len(steps) }

type format struct {
	Version int `json:"version"`
	// Backup names the backup written before the steps in progress, until all are done.
	Backup string `json:"backup,omitempty"`
	// Next is the format to which the data is about to be upgraded,
	// set before it is certain that all replicas know it.
	Next int `json:"next,omitempty"`

	// rev is the revision of the record, for conditional writes.
	rev storage.Revision
	// empty is true if there is no data.
	empty bool
}

// Migration upgrades data from one format to the next, and logs what it drops. After a crash it runs again, so it must
// accept data that it has changed already.
//
// Replicas keep running meanwhile. A program with a new format also reads the previous
// one, and writes that until [Store.Format] reports that all replicas know the new one.
type Migration func(ctx context.Context, store storage.Store, log *slog.Logger) error

// readFormat returns the format of the data: 0 if there is no record.
func readFormat(ctx context.Context, store storage.KV) (format, error) {
	var f format
	entry, err := store.Get(ctx, formatKey)
	if errors.Is(err, storage.ErrNotFound) {
		f.empty = true
		for _, err := range store.List(ctx, storage.Range{Limit: 1}) {
			if err != nil {
				return f, fmt.Errorf("list the database: %w", err)
			}
			f.empty = false
		}
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("read the format of the database: %w", err)
	}
	if err := json.Unmarshal(entry.Value, &f); err != nil || f.Version < 0 {
		return f, fmt.Errorf("the format of the database cannot be read: restore a backup with 'oneclaw restore FILE' (%w)", err)
	}
	f.rev = entry.Revision
	return f, nil
}

// checkFormat refuses a format outside of [LowestFormat] to known.
func checkFormat(f format, known int) error {
	if newest := max(f.Version, f.Next); newest > known {
		return fmt.Errorf("the database was written by a newer oneclaw (format %d, this one knows %d): update oneclaw, "+
			"or restore the backup that the newer one made before it changed the format", newest, known)
	}
	if f.Version < LowestFormat && !f.empty {
		return fmt.Errorf("the database was written before the first release (format %d, this oneclaw reads %d and above): "+
			"the program of commit %s reads it; to begin anew, name another place for the data", f.Version, LowestFormat, lastReaderCommit)
	}
	return nil
}

// upgrade upgrades the data to the newest format. Before the
// first step it calls backup, which returns the name of the file.
func upgrade(ctx context.Context, store storage.Store, steps []Migration, backup func() (string, error), log *slog.Logger) error {
	f, err := readFormat(ctx, store)
	if err == nil {
		err = checkFormat(f, NewestFormat(steps))
	}
	if err != nil || f.Version == NewestFormat(steps) && f.Backup == "" {
		return err
	}
	if f.empty {
		return writeFormat(ctx, store, &format{Version: NewestFormat(steps)})
	}
	if f.Backup == "" {
		if f.Backup, err = backup(); err != nil {
			return fmt.Errorf("back up the database before its format changes: %w", err)
		}
		if err := writeFormat(ctx, store, &f); err != nil {
			return err
		}
	}
	begun := time.Now()
	for f.Version < NewestFormat(steps) {
		if err := steps[f.Version-LowestFormat](ctx, store, log); err != nil {
			return fmt.Errorf("upgrade the database from format %d to %d (its backup is %s): %w", f.Version, f.Version+1, f.Backup, err)
		}
		f.Version++
		if err := writeFormat(ctx, store, &f); err != nil {
			return err
		}
	}
	log.Info("the database has a new format", "format", f.Version, "backup", f.Backup, "took", time.Since(begun))
	f.Backup, f.Next = "", 0
	return writeFormat(ctx, store, &f)
}

func writeFormat(ctx context.Context, store storage.KV, f *format) (err error) {
	f.rev, err = storage.Save(ctx, store, formatKey, f, f.rev)
	return err
}
