// Package mcp brings the tools of MCP servers (Model Context Protocol) into groups,
// one group mcp_<server> for each server of the configuration.
//
// Nothing runs for a server that is not used. The groups are built from the tool
// lists that the servers gave when they were last connected, kept in a file for
// each; a server is started, or reached over HTTP, by the first call of one of its
// tools, and ended when it has been idle for a while. Each connection reads the
// list again, as does a server's word that it has changed; where the list differs,
// [Config].Changed says so, and the owner of the registry builds the next one from
// [Client.Groups]. A server whose tools have never been seen is contacted by
// [Client.Discover], in the background after the start; until that has worked its
// group has one tool, <server>_connect, which tries again.
//
// A server that dies or cannot be reached is left alone for a time that doubles
// with each failure; until then its tools answer at once that it is unavailable,
// and why. Only the calls of its own tools wait for a server, and those have
// a time limit.
//
// A server acts with the one identity that the configuration gives it, for
// everybody who may load its group: Role says who may. One with auth: oauth acts for
// each person with an account of their own instead, over a connection of their own
// (package oauth); its tools are those that it showed to the user who connected last.
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

// CodeUnavailable is the code of an error while the server cannot be reached.
const CodeUnavailable = "server_unavailable"

// GroupPrefix stands in front of a server's name in the name of its group.
const GroupPrefix = "mcp_"

// Config names the servers. The fields without a YAML key are set by the program.
type Config struct {
	// Servers are the servers by name: letters, digits, "-" and "_", at most 32.
	Servers map[string]Server `yaml:"servers"`
	// DataDir is the folder for the tool lists. Empty keeps them in memory alone.
	DataDir string `yaml:"-"`
	// Idle is how long a server is kept after its last call. 0 means five minutes.
	Idle time.Duration `yaml:"-"`
	// Retry is how long a server is left alone after its first failure; the time
	// doubles with each further one up to MaxRetry. 0 means a second and five
	// minutes.
	Retry, MaxRetry time.Duration `yaml:"-"`
	// MaxMessage is the size in bytes of the largest message of a server. 0 means 16 MiB.
	MaxMessage int `yaml:"-"`
	// Accounts keeps the tokens of people for servers with auth: oauth.
	Accounts AccountsConfig `yaml:"-"`
	// AllowPrivate are the addresses besides the public ones that a server which was added
	// in a chat, and every authorisation server, may have.
	AllowPrivate []netip.Prefix `yaml:"-"`
	// Taken are names of tools that others have.
	Taken []string `yaml:"-"`
	// Changed is called when what Groups returns has changed. It may call Groups,
	// and nothing of this package waits for a lock meanwhile. nil means that no question is asked.
	Changed func() `yaml:"-"`
	// Resolver looks up the names of hosts. nil means the host's.
	Resolver *net.Resolver `yaml:"-"`
	// LookupEnv finds variables of the environment. nil means [os.LookupEnv].
	LookupEnv func(name string) (string, bool) `yaml:"-"`
	// Now is the clock. nil means time.Now.
	Now func() time.Time `yaml:"-"`
	// Logger gets what the model is not told. nil discards it.
	Logger *slog.Logger `yaml:"-"`

	accounts *oauth.Accounts // nil where nothing keeps them
}

// AccountsConfig is what the accounts of people need.
type AccountsConfig struct {
	// KV keeps them, encrypted with SecretKey. nil means that there are none.
	KV        storage.KV
	SecretKey []byte
	// PublicURL and LocalURL are as in oauth.Config.
	PublicURL, LocalURL string
}

// Client is the family. It must be closed.
//
// It has goroutines for each server that is connected or being connected, and for
// calls of Discover; Close waits for them.
type Client struct {
	cfg Config

	adding  sync.Mutex // held while servers are added, and by Close; guards closed
	closed  bool
	mu      sync.Mutex
	servers []*server      // sorted by name; never changed, only replaced
	closing sync.WaitGroup // of servers that were removed
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

// Groups returns the group of each server, sorted by name: the tools that its last
// list has, also while it cannot be reached.
func (c *Client) Groups() []toolgroups.Group {
	servers := c.all()
	groups := make([]toolgroups.Group, len(servers))
	for i, s := range servers {
		groups[i] = s.snapshot()
	}
	return groups
}

// Discover contacts two servers at once, and tries each so often.
const (
	discoverers   = 2
	discoverTries = 5
)

// Discover contacts the servers whose tools have never been seen, a few at a time,
// and ends them again. One that cannot be reached is tried a few times more. It
// returns when all is done or ctx ends, and is meant to run beside everything else.
func (c *Client) Discover(ctx context.Context) {
	slots := make(chan struct{}, discoverers)
	var wg sync.WaitGroup
	for _, s := range c.all() {
		if !s.unknown() || s.personal() {
			continue // No user is there to sign in.
		}
		wg.Go(func() { s.discover(ctx, slots) })
	}
	wg.Wait()
}

// Status is the state of a server.
type Status struct {
	// Name is that of the configuration, Group that of its group.
	Name, Group string
	// Server is how it is configured; Added says that this was done in a chat.
	Server Server
	Added  bool
	// Connected says that it runs, or is reached, at this moment.
	Connected bool
	// Tools is how many tools its group has, 0 where they have never been seen.
	Tools int
	// Problem is why it cannot be used now, empty if nothing is known against it.
	Problem string
	// Retry is when it is tried again after a problem.
	Retry time.Time
	// Waiting is what the server says otherwise than when it was allowed; until [Client.Allow]
	// is called with Code its tools stay as they were.
	Waiting []Change
	Code    string
}

// Status returns the state of each server, sorted by name. It contacts none.
func (c *Client) Status() []Status {
	servers := c.all()
	out := make([]Status, len(servers))
	for i, s := range servers {
		out[i] = s.status()
	}
	return out
}

// Close ends all servers with every process they have started, and waits until
// they have ended. Later calls fail.
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

// all are the servers at this moment.
func (c *Client) all() []*server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers
}
