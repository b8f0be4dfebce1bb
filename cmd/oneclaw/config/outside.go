package config

import (
	"context"
	"net"
	"time"

	"oneclaw/internal/budget"
	"oneclaw/internal/database"
	"oneclaw/storage"
)

// Outside is what the program takes from elsewhere than its settings and files, for tests.
type Outside struct {
	Now        func() time.Time
	Migrations []database.Migration
	Resolver   *net.Resolver // of what the model and servers reach; nil means the host's
	// TTL is how long a replica may give no sign of life; 0 means the default.
	TTL time.Duration
	// Engine, if not nil, stands between the program and its store.
	Engine func(storage.Store) storage.Store
}

// Standard is what the program takes where no test says otherwise.
func Standard() Outside { return Outside{Now: time.Now, Migrations: Migrations()} }

// Migrations are all steps, from format n to n+1. They are only ever added to.
func Migrations() []database.Migration {
	return []database.Migration{
		// Format 0 has no record of its format; nothing else is different.
		func(context.Context, storage.Store) error { return nil },
		// Format 1 kept the accounts of a day in a journal, format 2 each under a key.
		budget.Migrate,
		// Format 2 numbered jobs by the clock, format 3 by revisions: whoever reads the records
		// of new jobs has to know that.
		func(context.Context, storage.Store) error { return nil },
	}
}
