package config

import (
	"io"
	"net"
	"time"

	"oneclaw/internal/database"
	"oneclaw/storage"
)

// Outside is what the program takes from elsewhere than its settings and files, most of it for tests.
type Outside struct {
	Now func() time.Time
	// Version is that of the program, set by the linker.
	Version string
	// Migrations lead from [database.Lowest] to the newest format; there is none yet.
	Migrations []database.Migration
	Resolver   *net.Resolver // of what the model and servers reach; nil means the host's
	// TTL is how long a replica may give no sign of life; 0 means the default.
	TTL time.Duration
	// Terminal is where a person sees what they have to do next; nil where only the log is read.
	Terminal io.Writer
	// Engine, if not nil, stands between the program and its store.
	Engine func(storage.Store) storage.Store
}

// Standard is what the program takes where no test says otherwise.
func Standard() Outside { return Outside{Now: time.Now, Version: "devel"} }
