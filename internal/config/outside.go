package config

import (
	"io"
	"net"
	"time"

	"oneclaw/internal/database"
	"oneclaw/storage"
)

// Runtime has dependencies and values that are not settings. Most of them are set only in tests.
type Runtime struct {
	Now func() time.Time
	// Version is the program's version, set by the linker.
	Version string
	// Migrations are steps behind those of the program.
	Migrations []database.Migration
	Resolver   *net.Resolver // for tools and MCP servers; nil means the host's
	// ReplicaTTL is how long a replica may be silent before it counts as dead; 0 means the default.
	ReplicaTTL time.Duration
	// Terminal, if not nil, is the terminal on which the next steps are printed.
	Terminal io.Writer
	// WrapStore, if not nil, wraps the store.
	WrapStore func(storage.Store) storage.Store
}

// DefaultRuntime returns the values used outside of tests.
func DefaultRuntime() Runtime { return Runtime{Now: time.Now, Version: "devel"} }
