// Package core holds the core tools for files, time, HTTP requests, web pages, commands and the
// history.
//
// No tool reaches beyond the folder of the user or chat that it runs for, none connects to
// addresses that are not public, and no command sees the bot's environment. The registry orders
// the core tools.
package core

import (
	"cmp"
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
	// Location is the default time zone. nil means the host's.
	Location *time.Location
	// Now tells the time. nil means [time.Now].
	Now func() time.Time
	// History is searched by search_history. nil means an empty one.
	History History
	// AllowPrivate are ranges of addresses that http_request and webfetch may reach
	// although they are not public. The zero value allows none.
	AllowPrivate []netip.Prefix
	// Resolver looks up the names of hosts. nil means the host's.
	Resolver *net.Resolver
	// Reader reads pages. nil means a new one.
	Reader *readable.Reader
	// CacheDir is where downloaded pages wait to be read. Empty means the host's folder for
	// temporary files.
	CacheDir string
	// Exec configures commands.
	Exec ExecConfig
	// Logger gets what the model is not told. nil discards it.
	Logger *slog.Logger
}

type tools struct {
	cfg    Config
	client *http.Client
	owners *named.Semaphores // limits pages per owner
	pages  chan struct{}     // one per page that is fetched or read
}

// New returns the tools of this package, which [toolgroups.CoreOrder] orders. It starts nothing,
// and nothing has to be closed.
func New(cfg Config) ([]toolgroups.Tool, error) {
	cfg.Location = cmp.Or(cfg.Location, time.Local)
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
		cfg: cfg, owners: named.New(ownerPages), pages: make(chan struct{}, maxPages),
		client: guard.NewClient(guard.Config{AllowPrivate: cfg.AllowPrivate, Resolver: cfg.Resolver}),
	}
	if cfg.Exec.MaxProcesses < 0 || cfg.Exec.MaxMemory < 0 || cfg.Exec.MaxTotalMemory < 0 {
		return nil, errors.New("core: a limit of exec is negative")
	}
	var out []toolgroups.Tool
	for _, one := range []struct {
		name string
		run  toolgroups.Handler
	}{
		{"search_history", toolgroups.Typed(t.searchHistory)},
		{"exec", toolgroups.Typed(t.runCommand)},
		{"webfetch", toolgroups.Typed(t.webfetch)},
		{"read_file", toolgroups.Typed(t.readFile)},
		{"write_file", toolgroups.Typed(t.writeFile)},
		{"get_current_time", toolgroups.Typed(t.currentTime)},
		{"http_request", toolgroups.Typed(t.httpRequest)},
	} {
		tool, err := toolgroups.ToolOf(manifests, one.name, one.run)
		if err != nil {
			return nil, fmt.Errorf("core: %w", err)
		}
		switch one.name {
		case "exec":
			tool.Role, tool.Ready = toolgroups.RoleUser, t.canRun
			if cfg.Exec.UnsafeExec {
				tool.Role = toolgroups.RoleAdmin
			}
		case "http_request":
			tool.Asks = requestNeedsApproval
		case "webfetch":
			tool.Wait = waitForOthers
		}
		out = append(out, tool)
	}
	return out, nil
}
