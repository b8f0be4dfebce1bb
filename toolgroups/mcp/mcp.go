// Package mcp offers the tools of MCP servers (Model Context Protocol) as groups, one group
// mcp_<server> for each configured server.
//
// An unused server is not running. The groups are built from the last lists of tools, each
// stored in a file; a server is started, or contacted over HTTP, by the first call of one of its
// tools, and ended when it has been idle for a while. Each connection reads the list again, as
// does a server's notification that it has changed; if it has, [Config].Changed is called, and
// the owner of the registry builds the next one from [Client.Groups]. [Client.Discover] contacts
// servers whose tools are unknown, in the background after the start; until that has worked the
// group has one tool, <server>_connect, which tries again.
//
// After a failure a server is not contacted for a time that doubles with each failure; until
// then its tools return at once that it is unavailable, and why. Only calls of its own tools
// wait for a server, with a time limit.
//
// A server uses one configured identity for all users who may load its group: Role says who may.
// With auth: oauth it acts for each user with a personal account instead, over a personal
// connection (package oauth); its tools are those shown to the user who connected last.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp/oauth"
)

// CodeUnavailable is the error code while the server cannot be reached.
const CodeUnavailable = "server_unavailable"

// GroupPrefix begins the name of a server's group.
const GroupPrefix = "mcp_"

// Config configures the servers. The program sets the fields without a YAML key.
type Config struct {
	// Servers are the servers by name: letters, digits, "-" and "_", at most 32.
	Servers map[string]Server `yaml:"servers"`
	// DataDir is the folder for the tool lists. Empty keeps them only in memory.
	DataDir string `yaml:"-"`
	// Idle is how long an unused server is kept. 0 means five minutes.
	Idle time.Duration `yaml:"-"`
	// Retry is how long a server is not contacted after its first failure; the time doubles with
	// each further one up to MaxRetry. 0 means a second and five minutes.
	Retry, MaxRetry time.Duration `yaml:"-"`
	// MaxMessage bounds a message of a server, in bytes. 0 means 16 MiB.
	MaxMessage int `yaml:"-"`
	// Accounts configures users' accounts for servers with auth: oauth.
	Accounts AccountsConfig `yaml:"-"`
	// AllowPrivate are the private addresses permitted for servers added in a chat, and for
	// authorisation servers.
	AllowPrivate []netip.Prefix `yaml:"-"`
	// Taken are the names of other tools.
	Taken []string `yaml:"-"`
	// Changed, if not nil, is called when the result of Groups has changed. It may call Groups: no
	// lock is held.
	Changed func() `yaml:"-"`
	// Resolver looks up the names of hosts. nil means the host's.
	Resolver *net.Resolver `yaml:"-"`
	// LookupEnv finds variables of the environment. nil means [os.LookupEnv].
	LookupEnv func(name string) (string, bool) `yaml:"-"`
	// Now is the clock. nil means time.Now.
	Now func() time.Time `yaml:"-"`
	// Logger gets what the model is not told. nil discards it.
	Logger *slog.Logger `yaml:"-"`

	accounts *oauth.Accounts // nil if nothing stores them
}

// AccountsConfig configures users' accounts.
type AccountsConfig struct {
	// KV stores them, encrypted with SecretKey. nil means that there are none.
	KV        storage.KV
	SecretKey []byte
	// PublicURL and LocalURL are as in oauth.Config.
	PublicURL, LocalURL string
}

// Client manages the servers. It must be closed.
//
// It has goroutines for each connecting or connected server, and for calls of Discover; Close
// waits for them.
type Client struct {
	cfg Config

	adding  sync.Mutex // held while servers are added, and by Close; guards closed
	closed  bool
	mu      sync.Mutex
	servers []*server      // sorted by name; replaced, never changed
	closing sync.WaitGroup // of removed servers
}

// New checks the configuration and reads the lists. It starts nothing.
func New(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.DataDir != "" {
		cfg.DataDir = filepath.Join(cfg.DataDir, "mcp")
	}
	cfg.Idle = cmp.Or(cfg.Idle, 5*time.Minute)
	cfg.Retry = cmp.Or(cfg.Retry, time.Second)
	cfg.MaxRetry = max(cmp.Or(cfg.MaxRetry, 5*time.Minute), cfg.Retry)
	cfg.MaxMessage = cmp.Or(cfg.MaxMessage, 16<<20)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.LookupEnv == nil {
		cfg.LookupEnv = os.LookupEnv
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &Client{cfg: cfg}
	if err := c.openAccounts(); err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(cfg.Servers)) {
		s, err := newServer(c.cfg, name, cfg.Servers[name])
		errs = append(errs, err)
		c.servers = append(c.servers, s)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, nil
}

// Groups returns the group of each server, sorted by name, with the tools of its last list, even
// if it cannot be reached.
func (c *Client) Groups() []toolgroups.Group {
	servers := c.all()
	groups := make([]toolgroups.Group, len(servers))
	for i, s := range servers {
		groups[i] = s.snapshot()
	}
	return groups
}

// Bounds of Discover: servers at a time, and tries of each.
const (
	discoverers   = 2
	discoverTries = 5
)

// Discover contacts the servers whose tools are unknown, a few at a time, and ends them again.
// It tries unreachable ones a few more times. It returns when all is done or ctx ends, and is
// meant to run in the background.
func (c *Client) Discover(ctx context.Context) {
	slots := make(chan struct{}, discoverers)
	var wg sync.WaitGroup
	for _, s := range c.all() {
		if !s.unknown() || s.personal() {
			continue // no user could sign in
		}
		wg.Go(func() { s.discover(ctx, slots) })
	}
	wg.Wait()
}

// Status is the state of a server.
type Status struct {
	// Name is the server's name, Group its group's.
	Name, Group string
	// Server is its configuration; Added says that it was added in a chat.
	Server Server
	Added  bool
	// Connected says that it is running or connected.
	Connected bool
	// Tools is the number of tools in its group, 0 if unknown.
	Tools int
	// Problem is why it cannot be used now, or empty.
	Problem string
	// Retry is the time of the next try after a problem.
	Retry time.Time
	// Waiting are the changes since the server was allowed; its tools stay unchanged until
	// [Client.Allow] is called with Code.
	Waiting []Change
	Code    string
}

// Status returns the state of each server, sorted by name, without contacting them.
func (c *Client) Status() []Status {
	servers := c.all()
	out := make([]Status, len(servers))
	for i, s := range servers {
		out[i] = s.status()
	}
	return out
}

// Close ends all servers with all their processes, and waits for them. Later calls fail.
func (c *Client) Close() error {
	c.adding.Lock()
	defer c.adding.Unlock()
	c.closed = true
	var wg sync.WaitGroup
	for _, s := range c.all() {
		wg.Go(s.close)
	}
	wg.Wait()
	c.closing.Wait()
	return nil
}

// all returns the current servers.
func (c *Client) all() []*server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers
}
