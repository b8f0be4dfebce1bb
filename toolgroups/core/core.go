// Package core holds the core tools for files, time, HTTP requests, web pages, commands and the
// history.
//
// Unless [Config] allows more, no tool reaches beyond the folder of the user or chat that it runs
// for, no tool connects to addresses that are not public, and no command sees the bot's environment.
// The registry orders the core tools.
package core

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"oneclaw/internal/guard"
	"oneclaw/internal/named"
	"oneclaw/internal/readable"
	"oneclaw/toolgroups"
)

//go:embed *.json
var manifests embed.FS

// Config configures the tools.
type Config struct {
	// Location returns the time zone of a user. nil means the host's.
	Location func(context.Context, toolgroups.Scope) *time.Location
	// Now is the clock. nil means [time.Now].
	Now func() time.Time
	// History is searched by search_history. nil means an empty history.
	History History
	// AllowPrivate are the ranges of private addresses that http_request and webfetch may reach.
	// The zero value allows none.
	AllowPrivate []netip.Prefix
	// Resolver looks up host names. nil means the system's resolver.
	Resolver *net.Resolver
	// Reader reads pages. nil means a new one.
	Reader *readable.Reader
	// CacheDir is the folder for downloaded pages until they are read. Empty means the host's folder
	// for temporary files.
	CacheDir string
	// Exec configures commands.
	Exec ExecConfig
	// Logger gets the details that the model does not see. nil discards them.
	Logger *slog.Logger
}

type tools struct {
	cfg        Config
	client     *http.Client
	ownerSlots *named.Semaphores // limit the pages per owner
	pageSlots  chan struct{}     // holds one element per page being fetched or read
}

// New returns the tools of this package, which [toolgroups.CoreOrder] orders. It starts nothing,
// and nothing has to be closed.
func New(cfg Config) ([]toolgroups.Tool, error) {
	if cfg.Location == nil {
		cfg.Location = func(context.Context, toolgroups.Scope) *time.Location { return time.Local }
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.CacheDir = cmp.Or(cfg.CacheDir, os.TempDir())
	if cfg.Reader == nil {
		var err error
		if cfg.Reader, err = readable.NewReader(cfg.Logger); err != nil {
			return nil, fmt.Errorf("core: %w", err)
		}
	}
	t := &tools{
		cfg: cfg, ownerSlots: named.New(maxOwnerPages), pageSlots: make(chan struct{}, maxPages),
		client: guard.NewClient(guard.Config{AllowPrivate: cfg.AllowPrivate, Resolver: cfg.Resolver}),
	}
	if cfg.Exec.MaxProcesses < 0 || cfg.Exec.MaxMemory < 0 || cfg.Exec.MaxTotalMemory < 0 {
		return nil, errors.New("core: an exec limit is negative")
	}
	var out []toolgroups.Tool
	for _, one := range []struct {
		name string
		run  toolgroups.Handler
	}{
		{"search_history", toolgroups.TypedHandler(t.searchHistory)},
		{"exec", toolgroups.TypedHandler(t.runCommand)},
		{"webfetch", toolgroups.TypedHandler(t.webfetch)},
		{"read_file", toolgroups.TypedHandler(t.readFile)},
		{"write_file", toolgroups.TypedHandler(t.writeFile)},
		{"get_current_time", toolgroups.TypedHandler(t.currentTime)},
		{"http_request", toolgroups.TypedHandler(t.httpRequest)},
	} {
		tool, err := toolgroups.ReadTool(manifests, one.name, one.run)
		if err != nil {
			return nil, fmt.Errorf("core: %w", err)
		}
		switch one.name {
		case "exec":
			tool.Role, tool.CheckReady = toolgroups.RoleUser, t.checkReady
			tool.LastingApproval = !cfg.Exec.Network // otherwise a command can reach others
			if cfg.Exec.UnsafeExec {
				tool.Role = toolgroups.RoleAdmin
			}
		case "http_request":
			tool.NeedsApproval = requestNeedsApproval
		case "webfetch":
			tool.Wait = maxPageWait
		}
		out = append(out, tool)
	}
	return out, nil
}
