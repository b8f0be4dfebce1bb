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
	offerPrefix  = "mcp/offer/"
	// maxServers is the number of servers from which on no more can be added in a chat, or imported.
	maxServers = 50
)

// Config configures a [Handler].
type Config struct {
	// Google and Servers are the services with accounts.
	Google  *google.Google
	Servers *mcp.Client
	// Store stores the added servers.
	Store storage.KV
	// Catalogue has the servers that administrators can switch on.
	Catalogue Catalogue
	// NotifyAdmins sends a text to administrators, once per key. If nil, only /mcp shows changes.
	NotifyAdmins func(ctx context.Context, key, text string) error
	// Now returns the current time. Required.
	Now func() time.Time
	// Logger receives details that are not shown to users. nil discards them.
	Logger *slog.Logger
}

// Handler runs the commands. It may be used concurrently.
type Handler struct {
	cfg Config
	// loading is held by Load: what was listed first must not be set last.
	loading sync.Mutex
}

// New makes the handler. [Handler.Load] or [Handler.Run] loads the added servers.
func New(cfg Config) *Handler {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return &Handler{cfg: cfg}
}

// addedServer is a server that an administrator has added.
type addedServer struct {
	URL   string `json:"url"`
	Auth  string `json:"auth,omitempty"`
	Role  string `json:"role,omitempty"`
	Trust string `json:"trust,omitempty"`
	// Issuer is the only authorization server that is used. Empty means the one that the server names.
	Issuer string `json:"issuer,omitempty"`
	// Description is the group's line in the prompt. Empty means the server's own.
	Description string `json:"description,omitempty"`
	// AddedBy is the administrator who added the server, AddedAt the time.
	AddedBy string    `json:"by"`
	AddedAt time.Time `json:"at"`
}

func (a addedServer) server() mcp.Server {
	return mcp.Server{URL: a.URL, Auth: a.Auth, Role: a.Role, Trust: cmp.Or(a.Trust, mcp.TrustNone), Issuer: a.Issuer, Description: a.Description}
}

// Load sets this process's added servers to those in the store. One that conflicts with the
// settings is left out.
func (d *Handler) Load(ctx context.Context) error {
	d.loading.Lock()
	defer d.loading.Unlock()
	servers := map[string]mcp.Server{}
	for entry, err := range d.cfg.Store.List(ctx, storage.Range{Prefix: serverPrefix}) {
		if err != nil {
			return fmt.Errorf("list the added MCP servers: %w", err)
		}
		var one addedServer
		if err := json.Unmarshal(entry.Value, &one); err != nil {
			d.cfg.Logger.Error("cannot decode an added MCP server, ignoring it", "key", entry.Key, "err", err)
			continue
		}
		servers[strings.TrimPrefix(entry.Key, serverPrefix)] = one.server()
	}
	if err := d.cfg.Servers.SetAddedServers(servers); err != nil {
		d.cfg.Logger.Error("ignoring added MCP servers that are invalid or conflict with the settings", "err", err)
	}
	return nil
}

// Run applies changes made by other replicas, and notifies administrators of changes to allow, until ctx ends.
func (d *Handler) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { d.follow(ctx, serverPrefix, d.Load) })
	all.Go(func() { d.follow(ctx, mcp.RecordPrefix, d.refreshRecords) })
}

// Prune deletes the sign-ins that were not confirmed in time.
func (d *Handler) Prune(ctx context.Context) error { return d.cfg.Servers.PruneSignIns(ctx) }

// follow calls read at once and after each change of a key with the prefix. After an error it tries again.
func (d *Handler) follow(ctx context.Context, prefix string, read func(context.Context) error) {
	for ctx.Err() == nil {
		err := d.watch(ctx, prefix, read)
		if ctx.Err() != nil {
			break
		}
		if !errors.Is(err, storage.ErrLagged) {
			d.cfg.Logger.Error("cannot watch the added or allowed MCP servers, trying again", "err", err)
			_ = retry.Wait(ctx, 10*time.Second) // the loop checks ctx
		}
	}
}

// watch watches a prefix until an error. It starts to watch before the first read, to miss no change.
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
	return errors.New("the watch ended unexpectedly")
}

// refreshRecords reads the records of servers, and notifies administrators of changes to allow. It
// reports the same changes of a server once, even if their texts keep changing.
func (d *Handler) refreshRecords(ctx context.Context) error {
	if err := d.cfg.Servers.Reload(ctx); err != nil {
		return err
	}
	for _, st := range d.cfg.Servers.Status() {
		if !st.HasNews() || d.cfg.NotifyAdmins == nil {
			continue
		}
		sum := sha256.New()
		for _, change := range st.PendingChanges {
			_, _ = fmt.Fprintf(sum, "%q %q\n", change.Tool, change.Description)
		}
		if err := d.cfg.NotifyAdmins(ctx, fmt.Sprintf("mcp/waits/%s/%x", st.Name, sum.Sum(nil)[:8]), changeNotice(st, false)); err != nil {
			return fmt.Errorf("notify administrators of changes of %s: %w", st.Name, err)
		}
	}
	return nil
}
