package config

import (
	"io"
	"net"
	"time"

	"oneclaw/internal/database"
	"oneclaw/storage"
)

// Outside has what the program takes neither from settings nor from files, mostly for tests.
type Outside struct {
	Now func() time.Time
	// Version is the program's version, set by the linker.
	Version string
	// Migrations upgrade from [database.Lowest] to the newest format; there are none yet.
	Migrations []database.Migration
	Resolver   *net.Resolver // for the model and servers; nil means the host's
	// TTL is how long a replica may be silent; 0 means the default.
	TTL time.Duration
	// Terminal is where a person is shown what to do next; nil if only the log is read.
	Terminal io.Writer
	// Engine, if not nil, wraps the store.
	Engine func(storage.Store) storage.Store
}

// Standard returns the values outside of tests.
func Standard() Outside { return Outside{Now: time.Now, Version: "devel"} }
