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

// formatKey is where the store says which format the data in it has. What lies where,
// and what keeps it from growing for ever:
//
//	format        this record; one
//	doctor/       what doctor writes to see how long that takes; deleted at once
//	wipe          whether the file is to be written anew at the next start; one
//	secret        a fingerprint of the key that encrypts, on a server; one
//	replicas/     who serves a database on a server, and what each holds; one for each
//	job/open/     messages to be answered; bounded for each chat
//	job/done/     receipts; a week, looked through each hour
//	finished/     messages and tasks among them by their time; as long as they are
//	tally/        sums of them; one for each hour of 400 days, and one that says up to when
//	card/         cards with buttons; they expire, and go a week after they were closed
//	access/       who was let in, one for each; a refusal goes when its time is over
//	stranger/     who was told that the bot does not know them, where replicas share the
//	              store; a day, and at most 200 new ones an hour
//	aside/        what could not be carried to its end; 30 days, looked through each hour
//	moved/        under which id a chat goes on; one for each that moved
//	session/      the present conversation; one for each chat
//	learning/     which chats know of exports, who has said no to them; one for each; the key
//	              of the pseudonyms
//	audit/        who did what; at most 50,000, for a year unless the settings say otherwise
//	error/        errors of the log; at most 1,000, for 30 days
//	admin/        sessions of administrators on their pages, one record for each of them
//	conversation/ a line for each conversation; those of tasks go after 90 days
//	begun/        an entry of an index for each of them
//	asked/        in which conversations of groups a user has asked something; one for each of
//	              both
//	memory/       one for each owner, of a bounded size
//	schedule/     tasks, bounded for each owner, with a bounded history; two entries of
//	              the index for each
//	settings/     what administrators and chats chose; each kind is bounded
//	telegram/     which albums were last for the bot; one
//	slack/        up to when messages have arrived; what is still to be looked at, at most
//	              200 threads for each process; where commands take answers, one list for
//	              each channel, which goes after half an hour; with several processes the
//	              threads with the bot, for a day
//	hook/         webhooks, bounded for each owner
//	google/       an account, what it may do, and a sign-in; one each for a user
//	files/        what the folder of an owner holds, where replicas share the store; one for
//	              each, of at most 8 MiB
//	blob/         chunks of those files, within the quota of each owner; what none has goes
//	              with the next sweep
//	account/      what models used: one for each user, chat and day for two months, one
//	              for each day, month, model and tool group for 400 days, one for each chat
//	              since it began; what was charged and is not added to them yet, for a second
//	              or so
//
// The logs hold the conversations, which people search: they stay, but for those of
// tasks, which go with their lines.
const formatKey = "format"

// Lowest is the lowest format that is read, lastReader the commit whose program reads what lies
// below: no release wrote that.
const (
	Lowest     = 4
	lastReader = "86754647"
)

// Newest is the format that some steps lead to.
func Newest(steps []Migration) int { return Lowest + len(steps) }

type format struct {
	Version int `json:"version"`
	// Backup names what was written before the steps that have begun, until all are
	// done.
	Backup string `json:"backup,omitempty"`
	// Next is the format that the data is about to get, from before it is certain that
	// all replicas know it.
	Next int `json:"next,omitempty"`

	// rev is that of the record: who writes it over another loses.
	rev storage.Revision
	// empty says that there are no data at all.
	empty bool
}

// Migration brings data from one format to the next. A crash has it run again, so it
// must take what it has changed already.
//
// Replicas go on meanwhile. A program that brings a format reads the one before it, too,
// and writes that until [Store.Format] says that all know the new one.
type Migration func(ctx context.Context, store storage.Store) error

// readFormat returns the format of the data: 0 where there is no record of it.
func readFormat(ctx context.Context, store storage.KV) (format, error) {
	var f format
	entry, err := store.Get(ctx, formatKey)
	if errors.Is(err, storage.ErrNotFound) {
		f.empty = true
		for _, err := range store.List(ctx, storage.Range{Limit: 1}) {
			if err != nil {
				return f, fmt.Errorf("look for data: %w", err)
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

// checkFormat refuses a format that a program does not know which knows those from [Lowest] up to
// known.
func checkFormat(f format, known int) error {
	if newest := max(f.Version, f.Next); newest > known {
		return fmt.Errorf("the database was written by a newer oneclaw (format %d, this one knows %d): update oneclaw, "+
			"or restore the backup that the newer one made before it changed the format", newest, known)
	}
	if f.Version < Lowest && !f.empty {
		return fmt.Errorf("the database was written before the first release (format %d, this oneclaw reads %d and above): "+
			"the program of commit %s reads it; to begin anew, name another place for the data", f.Version, Lowest, lastReader)
	}
	return nil
}

// upgrade brings the data to the newest format. backup is called before the first step
// and returns the name of what it wrote.
func upgrade(ctx context.Context, store storage.Store, steps []Migration, backup func() (string, error), log *slog.Logger) error {
	f, err := readFormat(ctx, store)
	if err == nil {
		err = checkFormat(f, Newest(steps))
	}
	if err != nil || f.Version == Newest(steps) && f.Backup == "" {
		return err
	}
	if f.empty {
		return writeFormat(ctx, store, &format{Version: Newest(steps)})
	}
	if f.Backup == "" {
		if f.Backup, err = backup(); err != nil {
			return fmt.Errorf("back the database up before its format is changed: %w", err)
		}
		if err := writeFormat(ctx, store, &f); err != nil {
			return err
		}
	}
	begun := time.Now()
	for f.Version < Newest(steps) {
		if err := steps[f.Version-Lowest](ctx, store); err != nil {
			return fmt.Errorf("bring the database from format %d to %d (as it was it is in %s): %w", f.Version, f.Version+1, f.Backup, err)
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

func writeFormat(ctx context.Context, store storage.KV, f *format) error {
	data, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode the format of the database: %w", err)
	}
	if f.rev, err = store.Put(ctx, formatKey, data, f.rev); err != nil {
		return fmt.Errorf("record the format of the database: %w", err)
	}
	return nil
}
