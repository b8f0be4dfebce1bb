// Package core holds core tools: those that the model is always offered. They read
// and write the files of the workspace, tell the time, make HTTP requests, read web
// pages, run commands, and search what was said before.
//
// No tool reaches outside the folder of the one on whose behalf it runs, none
// connects to an address that is not public, and no command sees the environment of
// the bot. The registry puts the tools in their order among the other core tools.
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

// Config is what the tools need to know about the bot.
type Config struct {
	// Location is the time zone where a call names none. nil means the host's.
	Location *time.Location
	// Now tells the time. nil means [time.Now].
	Now func() time.Time
	// History is what search_history looks through. nil means there is nothing.
	History History
	// AllowPrivate are ranges of addresses that http_request and webfetch may reach
	// although they are not public. The zero value allows none.
	AllowPrivate []netip.Prefix
	// Resolver looks up the names of hosts. nil means the host's.
	Resolver *net.Resolver
	// Reader reads pages. nil means one of its own.
	Reader *readable.Reader
	// CacheDir is where pages lie until they are read. Empty means the host's folder for
	// temporary files.
	CacheDir string
	// Exec says how commands run.
	Exec ExecConfig
	// Logger gets what the model is not told. nil discards it.
	Logger *slog.Logger
}

// Tools are the tools with what they share.
type tools struct {
	cfg    Config
	client *http.Client
	owners *named.Semaphores // of whom pages are fetched or read
	pages  chan struct{}     // one for each page that is fetched or read
}

// New makes the tools of this package. Their place among the other core tools is [toolgroups.CoreOrder].
// Nothing is started and nothing has to be closed.
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
			tool.Asks = asksToRequest
		case "webfetch":
			tool.Wait = waitForOthers
		}
		out = append(out, tool)
	}
	return out, nil
}
