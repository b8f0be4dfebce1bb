// Package jstools holds the tools that run JavaScript: js_eval, the tools that
// people write themselves, and the group by which administrators manage those.
//
// A user tool is a pair of files in one folder, which a person may edit as well:
// name.json with its description and name.js with its code. An object in name.json
// is one tool and joins the group [UserTools]; a list is a group of its own. The
// folder is what counts: the tools of the management group write there and nothing
// else, and a file that is broken never keeps the others from loading.
//
// Scripts run in a process of their own (internal/javascript). What they may do
// outside is done here for them: files stay in the workspace of the call, requests
// go to public addresses only, and of the environment and the accounts of the user
// a script sees what its manifest names, js_eval nothing.
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
	// UserTools is the group of the tools that stand alone in their file, where these are too
	// large to be core tools.
	UserTools = "user_tools"
	// Management is the group of the tools that create, list, update and delete.
	Management = "js_tool_management"
	// Source is that of all groups from the folder.
	Source = "user"
	// DefaultRescan is how often [Tools.Watch] looks at the folder.
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
	// Email returns the address of the account, "" where it is not known.
	Email(ctx context.Context, scope toolgroups.Scope) (string, error)
}

// Config is what the tools need to know about the bot.
type Config struct {
	// Dir is the folder of the user tools. It is made if it does not exist.
	Dir string
	// Sync, if not nil, has the folder hold what other processes have made of it, and has them
	// see what it holds. It is called before and after a tool changes it.
	Sync func(ctx context.Context) error
	// Engine runs the scripts.
	Engine *sandbox.Engine
	// Reserved returns the names of tools and groups that come from elsewhere and
	// that user tools cannot take. It is asked while files are read or written and
	// must not call these tools. nil means none but those of this package.
	Reserved func() []string
	// Changed is called when other tools than before come from the folder, while
	// no lock is held. nil is allowed.
	Changed func()
	// Env returns a variable that a manifest names, false where there is none. nil means
	// that there are none at all.
	Env func(ctx context.Context, scope toolgroups.Scope, name string) (string, bool, error)
	// Google is the account for scripts that ask for it. nil means there is none.
	Google Google
	// AllowPrivate are ranges of addresses that scripts may reach although they
	// are not public. The zero value allows none.
	AllowPrivate []netip.Prefix
	// Resolver looks up the names of hosts. nil means the host's.
	Resolver *net.Resolver
	// Location is the time zone of _time by default. nil means the host's.
	Location *time.Location
	// Now tells the time. nil means [time.Now].
	Now func() time.Time
	// Rescan is how often [Tools.Watch] looks. 0 means [DefaultRescan].
	Rescan time.Duration
	// MaxWait is how long a script waits for others. 0 means five minutes.
	MaxWait time.Duration
	// Logger gets the console of scripts and mistakes in the folder. nil discards it.
	Logger *slog.Logger
}

// Tools are the tools of this package. They may be used concurrently.
type Tools struct {
	cfg    Config
	client *http.Client

	// write is held while files are read or written, so that no reader sees half of a
	// change; content is what they came to.
	write   sync.Mutex
	content atomic.Pointer[content]
}

// New reads the folder. Nothing is started and nothing has to be closed.
func New(cfg Config) (*Tools, error) {
	if cfg.Dir == "" {
		return nil, errors.New("jstools: Dir is empty")
	}
	if cfg.Engine == nil {
		return nil, errors.New("jstools: Engine is missing")
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("jstools: %w", err)
	}
	cfg.Location = cmp.Or(cfg.Location, time.Local)
	cfg.Rescan = cmp.Or(cfg.Rescan, DefaultRescan)
	cfg.MaxWait = cmp.Or(cfg.MaxWait, 5*time.Minute)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	t := &Tools{cfg: cfg, client: guard.NewClient(guard.Config{AllowPrivate: cfg.AllowPrivate, Resolver: cfg.Resolver})}
	t.content.Store(&content{})
	t.write.Lock()
	defer t.write.Unlock()
	if _, err := t.rescan(); err != nil {
		return nil, err
	}
	return t, nil
}

// Eval returns the core tool js_eval.
func (t *Tools) Eval() (toolgroups.Tool, error) {
	tool, err := toolgroups.ToolOf(manifests, "js_eval", toolgroups.Typed(t.eval))
	tool.Wait = t.cfg.MaxWait
	return tool, err
}

// Group returns the group [Management].
func (t *Tools) Group() (toolgroups.Group, error) {
	return toolgroups.GroupOf(manifests, Management, map[string]toolgroups.Handler{
		"create_js_tool":  toolgroups.Typed(t.create),
		"list_user_tools": t.list,
		"update_js_tool":  toolgroups.Typed(t.update),
		"delete_js_tool":  toolgroups.Typed(t.remove),
	})
}

// Tools returns what the folder holds: the tools that stand alone in their files as core tools,
// or, where their schemas take [MaxCoreTokens], as the group [UserTools], and the other groups
// by name.
func (t *Tools) Tools() (core []toolgroups.Tool, groups []toolgroups.Group) {
	return t.content.Load().tools()
}

// Mistakes returns what a folder holds that is left out, one error each.
func Mistakes(dir string) []error {
	t := &Tools{cfg: Config{Dir: dir}}
	names, _, err := t.look()
	if err != nil {
		return []error{fmt.Errorf("jstools: %w", err)}
	}
	return t.load(names).errors()
}

// Watch loads the folder anew when files have changed, until ctx ends.
func (t *Tools) Watch(ctx context.Context) {
	tick := time.NewTicker(t.cfg.Rescan)
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

// Reload loads the folder anew if files have changed since it was read.
func (t *Tools) Reload() error {
	t.write.Lock()
	changed, err := t.rescan()
	t.write.Unlock()
	if changed {
		t.notify()
	}
	return err
}

// shared has this process and others see the same tools.
func (t *Tools) shared(ctx context.Context, code string) error {
	if t.cfg.Sync == nil {
		return nil
	}
	if err := t.cfg.Sync(ctx); err != nil {
		return toolgroups.Errorf(code, "The user tools cannot be brought together with those of the bot's other processes: %v. Look at list_user_tools before you try again.", err)
	}
	return nil
}

// notify tells that the tools are others now. No lock may be held.
func (t *Tools) notify() {
	if t.cfg.Changed != nil {
		t.cfg.Changed()
	}
}
