// Package connections has the commands with which people connect accounts (/connect and
// /disconnect) and administrators add MCP servers (/mcp), and keeps the servers that were
// added in the store, for all replicas that share it.
package connections

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"oneclaw/internal/retry"
	"oneclaw/storage"
	"oneclaw/toolgroups/google"
	"oneclaw/toolgroups/mcp"
)

const (
	serverPrefix = "mcp/server/"
	// maxServers bounds those that are added in chats.
	maxServers = 50
)

// Config is what the commands need.
type Config struct {
	// Google and Servers are what accounts are connected at.
	Google  *google.Google
	Servers *mcp.Client
	// Store keeps the servers that were added.
	Store storage.KV
	// Now is the clock. nil means time.Now.
	Now func() time.Time
	// Logger gets what people are not told. nil discards it.
	Logger *slog.Logger
}

// Desk runs the commands. It may be used concurrently.
type Desk struct{ cfg Config }

// New makes the desk. [Desk.Load] or [Desk.Run] brings the servers that were added.
func New(cfg Config) *Desk {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return &Desk{cfg: cfg}
}

// added is a server that an administrator added.
type added struct {
	URL   string `json:"url"`
	Auth  string `json:"auth,omitempty"`
	Role  string `json:"role,omitempty"`
	Trust string `json:"trust,omitempty"`
	// By and At say who added it and when.
	By string    `json:"by"`
	At time.Time `json:"at"`
}

func (a added) server() mcp.Server {
	return mcp.Server{URL: a.URL, Auth: a.Auth, Role: a.Role, Trust: a.Trust}
}

// Load makes the servers that the store has those of this process. One that does not fit
// beside the settings is left out.
func (d *Desk) Load(ctx context.Context) error {
	servers := map[string]mcp.Server{}
	for entry, err := range d.cfg.Store.List(ctx, storage.Range{Prefix: serverPrefix}) {
		if err != nil {
			return fmt.Errorf("read the MCP servers that were added: %w", err)
		}
		var one added
		if err := json.Unmarshal(entry.Value, &one); err != nil {
			d.cfg.Logger.Error("MCP server that was added is left out", "key", entry.Key, "err", err)
			continue
		}
		servers[strings.TrimPrefix(entry.Key, serverPrefix)] = one.server()
	}
	if err := d.cfg.Servers.Added(servers); err != nil {
		d.cfg.Logger.Error("MCP servers that were added are left out", "err", err)
	}
	return nil
}

// Run follows what other replicas add and remove until ctx ends.
func (d *Desk) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := d.follow(ctx)
		if ctx.Err() != nil {
			break
		}
		if !errors.Is(err, storage.ErrLagged) {
			d.cfg.Logger.Error("MCP servers that were added cannot be followed, trying again", "err", err)
			_ = retry.Wait(ctx, 10*time.Second) // The loop looks at ctx.
		}
	}
}

// follow watches first and reads then, so that no change falls in between.
func (d *Desk) follow(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	events := d.cfg.Store.Watch(watching, serverPrefix)
	if err := d.Load(ctx); err != nil {
		return err
	}
	for _, err := range events {
		if err == nil {
			err = d.Load(ctx)
		}
		if err != nil {
			return err
		}
	}
	return errors.New("the watch ended by itself")
}
