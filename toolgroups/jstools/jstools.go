// Package jstools has the tools that run JavaScript: js_eval, user-defined tools, and the group of
// tools with which administrators manage the user-defined ones.
//
// A user tool is a pair of files in one folder, which can also be edited by hand: name.json with
// its description and name.js with its code. An object in name.json is one tool, in the core or in
// the group [userTools] (see [maxCoreTokens]); a list is a group of its own. All state is in the
// folder: the management tools write nowhere else, and a broken file does not keep the others from
// loading.
//
// Scripts run in a separate process (package internal/sandbox). This package provides their host
// functions: files stay in the workspace of the call, requests go to public addresses only, and a
// script sees only the variables and accounts that its manifest names. js_eval sees none, and only
// reads the web: it runs without an approval, so it may not send what http_request asks for.
package jstools

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
	"sync"
	"sync/atomic"
	"time"

	"oneclaw/internal/guard"
	"oneclaw/internal/sandbox"
	"oneclaw/toolgroups"
)

const (
	// userTools is the name of the group of the tools from files with one tool, if these are too
	// large to be core tools.
	userTools = "user_tools"
	// management is the name of the group of tools that create, list, update and delete user tools.
	management = "js_tool_management"
	// userSource is the source of all groups from the folder.
	userSource = "user"
	// DefaultRescan is the default of [Config].RescanInterval.
	DefaultRescan = 2 * time.Second
)

var (
	//go:embed *.json
	manifests embed.FS
	//go:embed host.js
	hostPrelude string
)

// Google gives scripts access to the account of the user of a call.
type Google interface {
	// AccessToken returns a valid token. The error says how to connect an account.
	AccessToken(ctx context.Context, scope toolgroups.Scope) (string, error)
	// Email returns the address of the account, "" if unknown.
	Email(ctx context.Context, scope toolgroups.Scope) (string, error)
}

// Config configures [Tools].
type Config struct {
	// Dir is the folder of the user tools. It is created if missing.
	Dir string
	// Sync, if not nil, synchronizes the folder with other processes. It is called before and after
	// a tool changes it.
	Sync func(ctx context.Context) error
	// Engine runs the scripts.
	Engine *sandbox.Engine
	// ReservedNames returns the names of tools and groups that user tools cannot use. It is called
	// while files are read or written and must not call methods of [Tools]. If nil, only the names of
	// this package are reserved.
	ReservedNames func() []string
	// OtherNames returns more names that a new tool cannot take. A tool whose name another tool takes
	// later keeps it. nil means none.
	OtherNames func() []string
	// OnChange, if not nil, is called when the tools in the folder have changed, without a lock held.
	OnChange func()
	// Env returns the value of a variable that a manifest names, and false if it does not exist. nil
	// means that there are no variables.
	Env func(ctx context.Context, scope toolgroups.Scope, name string) (string, bool, error)
	// Google provides the user's account to scripts that have the permission. nil means none.
	Google Google
	// AllowPrivate are ranges of addresses that scripts may reach although they
	// are not public. The zero value allows none.
	AllowPrivate []netip.Prefix
	// Resolver looks up the names of hosts. nil means the host's.
	Resolver *net.Resolver
	// Location returns the default time zone of _time. nil means the host's.
	Location func() *time.Location
	// Now returns the current time. Required.
	Now func() time.Time
	// RescanInterval is the interval of [Tools.Watch]. 0 means [DefaultRescan].
	RescanInterval time.Duration
	// MaxWait bounds how long a script waits for other scripts to end. 0 means five minutes.
	MaxWait time.Duration
	// Logger receives the console output of scripts and errors in the folder. nil discards them.
	Logger *slog.Logger
}

// Tools are the tools of this package. They may be used concurrently.
type Tools struct {
	cfg    Config
	client *http.Client

	// writeMu is held while files are read or written, so that no reader sees half of a change.
	// content is the folder as last read.
	writeMu sync.Mutex
	content atomic.Pointer[folderContent]
}

// New makes the tools and reads the folder. It starts no goroutine, and nothing has to be closed.
func New(cfg Config) (*Tools, error) {
	if cfg.Dir == "" {
		return nil, errors.New("jstools: Dir is empty")
	}
	if cfg.Engine == nil || cfg.Now == nil {
		return nil, errors.New("jstools: Engine or Now is missing")
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("jstools: %w", err)
	}
	if cfg.Location == nil {
		cfg.Location = func() *time.Location { return time.Local }
	}
	cfg.RescanInterval = cmp.Or(cfg.RescanInterval, DefaultRescan)
	cfg.MaxWait = cmp.Or(cfg.MaxWait, 5*time.Minute)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	t := &Tools{cfg: cfg, client: guard.NewClient(guard.Config{AllowPrivate: cfg.AllowPrivate, Resolver: cfg.Resolver})}
	t.content.Store(&folderContent{})
	t.writeMu.Lock()
	defer t.writeMu.Unlock()
	if _, err := t.rescan(); err != nil {
		return nil, err
	}
	return t, nil
}

// EvalTool returns the core tool js_eval.
func (t *Tools) EvalTool() (toolgroups.Tool, error) {
	tool, err := toolgroups.ReadTool(manifests, "js_eval", toolgroups.TypedHandler(t.eval))
	tool.Wait, tool.LastingApproval = t.cfg.MaxWait, true
	return tool, err
}

// ManagementGroup returns the group [management].
func (t *Tools) ManagementGroup() (toolgroups.Group, error) {
	group, err := toolgroups.ReadGroup(manifests, management, map[string]toolgroups.Handler{
		"create_js_tool":  toolgroups.TypedHandler(t.create),
		"list_user_tools": t.list,
		"update_js_tool":  toolgroups.TypedHandler(t.update),
		"delete_js_tool":  toolgroups.TypedHandler(t.remove),
	})
	for i := range group.Tools {
		switch tool := &group.Tools[i]; tool.Name {
		case "update_js_tool":
			tool.Describe = t.describeChange
		case "delete_js_tool":
			tool.Describe = t.describeRemoval
		}
	}
	return group, err
}

// Tools returns the tools in the folder: those from files with one tool as core tools or, from
// [maxCoreTokens] on, as the group [userTools], and the other groups, sorted by file.
func (t *Tools) Tools() (core []toolgroups.Tool, groups []toolgroups.Group) {
	return t.content.Load().tools()
}

// FolderErrors returns the errors for which tools in a folder are left out.
func FolderErrors(dir string) []error {
	t := &Tools{cfg: Config{Dir: dir}}
	names, _, err := t.scan()
	if err != nil {
		return []error{fmt.Errorf("jstools: %w", err)}
	}
	return t.load(names).errors()
}

// Watch reloads the folder whenever files have changed, until ctx ends.
func (t *Tools) Watch(ctx context.Context) {
	tick := time.NewTicker(t.cfg.RescanInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := t.Reload(); err != nil {
			t.cfg.Logger.Warn("user tools not read", "error", err)
		}
	}
}

// Reload reads the folder if files or the reserved names have changed since it was read.
func (t *Tools) Reload() error {
	t.writeMu.Lock()
	changed, err := t.rescan()
	t.writeMu.Unlock()
	if changed {
		t.notify()
	}
	return err
}

// sync synchronizes the folder with other processes.
func (t *Tools) sync(ctx context.Context, code string) error {
	if t.cfg.Sync == nil {
		return nil
	}
	if err := t.cfg.Sync(ctx); err != nil {
		return toolgroups.Errorf(code, "The user tools cannot be brought together with those of the bot's other processes: %v. Look at list_user_tools before you try again.", err)
	}
	return nil
}

// notify calls OnChange. No lock may be held.
func (t *Tools) notify() {
	if t.cfg.OnChange != nil {
		t.cfg.OnChange()
	}
}
