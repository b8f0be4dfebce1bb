// Package connections has the commands with which users connect accounts (/connect and
// /disconnect) and administrators add MCP servers (/mcp). It stores the added servers, for all
// replicas that share the store.
package connections

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"oneclaw/internal/retry"
	"oneclaw/storage"
	"oneclaw/toolgroups/google"
	"oneclaw/toolgroups/mcp"
)

const (
	serverPrefix = "mcp/server/"
	// maxServers bounds the servers added in chats.
	maxServers = 50
)

// Config configures a [Handler].
type Config struct {
	// Google and Servers are the services with accounts.
	Google  *google.Google
	Servers *mcp.Client
	// Store stores the added servers.
	Store storage.KV
	// Tell sends a text to administrators, once per key. If nil, only /mcp shows it.
	Tell func(ctx context.Context, key, text string) error
	// Now is the clock. nil means time.Now.
	Now func() time.Time
	// Logger gets the details that users do not see. nil discards them.
	Logger *slog.Logger
}

// Handler runs the commands. It may be used concurrently.
type Handler struct{ cfg Config }

// New makes the handler. [Handler.Load] or [Handler.Run] loads the added servers.
func New(cfg Config) *Handler {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return &Handler{cfg: cfg}
}

// added is a server that an administrator has added.
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
	return mcp.Server{URL: a.URL, Auth: a.Auth, Role: a.Role, Trust: cmp.Or(a.Trust, mcp.TrustNone)}
}

// Load sets this process's added servers to those in the store. One that conflicts with the
// settings is left out.
func (d *Handler) Load(ctx context.Context) error {
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
	if err := d.cfg.Servers.SetAdded(servers); err != nil {
		d.cfg.Logger.Error("MCP servers that were added are left out", "err", err)
	}
	return nil
}

// Run follows changes by other replicas, and tells administrators about changes to allow, until
// ctx ends.
func (d *Handler) Run(ctx context.Context) {
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() { d.follow(ctx, serverPrefix, d.Load) })
	both.Go(func() { d.follow(ctx, mcp.PinPrefix, d.repin) })
}

// follow calls read after each change below a prefix, and again after an error.
func (d *Handler) follow(ctx context.Context, prefix string, read func(context.Context) error) {
	for ctx.Err() == nil {
		err := d.watch(ctx, prefix, read)
		if ctx.Err() != nil {
			break
		}
		if !errors.Is(err, storage.ErrLagged) {
			d.cfg.Logger.Error("MCP servers that were added or allowed cannot be followed, trying again", "err", err)
			_ = retry.Wait(ctx, 10*time.Second) // the loop checks ctx
		}
	}
}

// watch starts watching before it reads, so that it misses no change.
func (d *Handler) watch(ctx context.Context, prefix string, read func(context.Context) error) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	events := d.cfg.Store.Watch(watching, prefix)
	if err := read(ctx); err != nil {
		return err
	}
	for _, err := range events {
		if err == nil {
			err = read(ctx)
		}
		if err != nil {
			return err
		}
	}
	return errors.New("the watch ended by itself")
}

// repin reads what servers may say, and tells administrators about changes. A server whose texts
// keep changing is reported once.
func (d *Handler) repin(ctx context.Context) error {
	if err := d.cfg.Servers.Repin(ctx); err != nil {
		return err
	}
	for _, st := range d.cfg.Servers.Status() {
		if len(st.Waiting) == 0 || d.cfg.Tell == nil {
			continue
		}
		sum := sha256.New()
		for _, change := range st.Waiting {
			_, _ = fmt.Fprintf(sum, "%q %q\n", change.Tool, change.What)
		}
		if err := d.cfg.Tell(ctx, fmt.Sprintf("mcp/waits/%s/%x", st.Name, sum.Sum(nil)[:8]), changed(st, false)); err != nil {
			return fmt.Errorf("tell administrators of %s: %w", st.Name, err)
		}
	}
	return nil
}
