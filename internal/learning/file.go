package learning

import (
	"context"
	"fmt"
	"io"

	"oneclaw/internal/database"
)

// ExportFile is a file of cases to write.
type ExportFile struct {
	Path     string
	Force    bool // replaces an existing file
	Disabled bool // the settings do not permit exports
	// At is the database. ExportFromBot exports from the bot that has it open, and reports whether one has.
	At            database.Place
	ExportFromBot func(ctx context.Context, read func(io.Reader) error) (bool, error)
	// Exporter returns the exporter of the database if no bot was asked.
	Exporter func(store *database.Store) (Exporter, error)
}

// Write writes the file atomically.
func (f ExportFile) Write(ctx context.Context) (counts Counts, err error) {
	if f.Disabled {
		return counts, ErrOff
	}
	return counts, f.At.WriteFile(f.Path, f.Force, func(w io.Writer) error {
		asked, err := f.ExportFromBot(ctx, func(r io.Reader) (err error) { counts, err = CopyCases(w, r); return err })
		if asked || err != nil {
			return err
		}
		found := false
		err = database.View(ctx, f.At, func(store *database.Store) error {
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
