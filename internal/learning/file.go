package learning

import (
	"context"
	"fmt"
	"io"

	"oneclaw/internal/database"
)

// File is a file of cases to write.
type File struct {
	Path  string
	Force bool // replaces an existing file
	Off   bool // refuses: the settings do not permit it
	// At is the database. Ask asks the bot that has it open, if necessary.
	At  database.Place
	Ask func(ctx context.Context, read func(io.Reader) error) (bool, error)
	// Exporter returns the exporter of the database if no bot was asked.
	Exporter func(store *database.Store) (Exporter, error)
}

// Write writes the file atomically.
func (f File) Write(ctx context.Context) (counts Counts, err error) {
	if f.Off {
		return counts, ErrOff
	}
	return counts, f.At.WriteFile(f.Path, f.Force, func(w io.Writer) error {
		asked, err := f.Ask(ctx, func(r io.Reader) (err error) { counts, err = Copy(w, r); return err })
		if asked || err != nil {
			return err
		}
		found := false
		err = database.Look(ctx, f.At, func(store *database.Store) error {
			e, err := f.Exporter(store)
			if err != nil {
				return err
			}
			found = true
			counts, err = e.Write(ctx, w)
			return err
		})
		if err == nil && !found {
			err = fmt.Errorf("there is no database in %s", f.At)
		}
		return err
	})
}
