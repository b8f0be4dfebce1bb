// Package mcp offers the tools of MCP servers (Model Context Protocol) as groups, one group
// mcp_<server> for each configured server.
//
// Unused servers do not run. The groups are built from the last lists of tools, each stored in a
// file. A server is started, or contacted over HTTP, by the first call of one of its tools, and
// ended when it has been idle for a while. The list is read again with each connection, and when the
// server notifies the client of a change. If the list has changed, [Config].OnChange is called, and
// the owner of the registry builds the next one from [Client.Groups]. [Client.Discover] contacts
// servers whose tools are unknown, in the background after the start. Until that succeeds, the group
// has a single tool, <server>_connect, which tries again.
//
// After a failure a server is not contacted for a time that doubles with each failure. Until then
// its tools return at once an error that says why the server is unavailable. Only calls of its own
// tools wait for a server, with a time limit.
//
// A server uses one configured identity for all users whose role permits loading its group. With
// auth: oauth it acts for each user with a personal account instead, over a personal connection
// (package oauth); its tools are those shown to the user who connected last,
// with the permissions that they have for all who are connected.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp/oauth"
)

// CodeUnavailable is the error code while the server cannot be reached.
const CodeUnavailable = "server_unavailable"

// groupPrefix begins the name of a server's group.
const groupPrefix = "mcp_"

// Config configures the servers. The program sets the fields without a YAML key.
type Config struct {
	// Servers are the servers by name: letters, digits, "-" and "_", at most 32.
	Servers map[string]Server `yaml:"servers"`
	// Catalogue is the file of the servers that administrators can switch on. Empty means the built-in one,
	// "off" none.
	Catalogue string `yaml:"catalogue" env:"ONECLAW_MCP_CATALOGUE"`
	// IdleTimeout is how long an unused server is kept. 0 means five minutes.
	IdleTimeout time.Duration `yaml:"-"`
	// RetryDelay is how long a server is not contacted after its first failure. The delay doubles with
	// each further failure up to MaxRetryDelay. 0 means a second and five minutes.
	RetryDelay, MaxRetryDelay time.Duration `yaml:"-"`
	// MaxMessage bounds a message from a server, in bytes. 0 means 16 MiB.
	MaxMessage int `yaml:"-"`
	// Accounts configures users' accounts for servers with auth: oauth.
	Accounts AccountsConfig `yaml:"-"`
	// AllowPrivate are the private addresses permitted for servers added in a chat, and for
	// authorization servers.
	AllowPrivate []netip.Prefix `yaml:"-"`
	// TakenNames are the names of other tools.
	TakenNames []string `yaml:"-"`
	// OnChange, if not nil, is called when the result of Groups has changed. It may call Groups: no
	// lock is held.
	OnChange func() `yaml:"-"`
	// Resolver looks up host names. nil means the system's resolver.
	Resolver *net.Resolver `yaml:"-"`
	// LookupEnv finds variables of the environment. nil means [os.LookupEnv].
	LookupEnv func(name string) (string, bool) `yaml:"-"`
	// Now is the clock. nil means time.Now.
	Now func() time.Time `yaml:"-"`
	// Logger gets the details that the model does not see. nil discards them.
	Logger *slog.Logger `yaml:"-"`

	accounts *oauth.Accounts // nil if there is no store for accounts
}

// AccountsConfig configures users' accounts.
type AccountsConfig struct {
	// KV stores the accounts, encrypted with SecretKey. nil means that there are no accounts.
	KV        storage.KV
	SecretKey []byte
	// PublicURL and LocalURL are as in oauth.Config.
	PublicURL, LocalURL string
	// KnownAddresses are those of services, and of their sign-ins, at which people do not sign in for another server.
	KnownAddresses []string
}

// Client manages the servers. It must be closed.
//
// A client has goroutines for each connecting or connected server, and for calls of Discover. Close
// waits for them.
type Client struct {
	cfg Config

	addMu   sync.Mutex // held while servers are added, and by Close; guards closed
	closed  bool
	mu      sync.Mutex
	servers []*server      // sorted by name; replaced, never changed
	closing sync.WaitGroup // removed servers being closed
}

// New checks the configuration and reads the records. It starts nothing.
func New(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.IdleTimeout = cmp.Or(cfg.IdleTimeout, 5*time.Minute)
	cfg.RetryDelay = cmp.Or(cfg.RetryDelay, time.Second)
	cfg.MaxRetryDelay = max(cmp.Or(cfg.MaxRetryDelay, 5*time.Minute), cfg.RetryDelay)
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

// Groups returns the group of each server, sorted by name, with the tools in its last list, even if
// the server cannot be reached.
func (c *Client) Groups() []toolgroups.Group {
	servers := c.currentServers()
	groups := make([]toolgroups.Group, len(servers))
	for i, s := range servers {
		groups[i] = s.snapshot()
	}
	return groups
}

// Bounds of Discover: the servers contacted at a time, and the attempts for each.
const (
	maxDiscoverers = 2
	discoverTries  = 5
)

// Discover contacts the servers whose tools are unknown, a few at a time, and closes the connections.
// It retries unreachable servers a few times. It returns when all servers have been tried or ctx
// ends, and is meant to run in the background.
func (c *Client) Discover(ctx context.Context) {
	slots := make(chan struct{}, maxDiscoverers)
	var wg sync.WaitGroup
	for _, s := range c.currentServers() {
		if !s.lacksList() || s.isPersonal() {
			continue // no user could sign in
		}
		wg.Go(func() { s.discover(ctx, slots) })
	}
	wg.Wait()
}

// Status is the state of a server.
type Status struct {
	// Name is the name of the server, Group the name of its group.
	Name, Group string
	// Line is the group's line in the prompt.
	Line string
	// Server is the configuration; Added is true for a server that was added in a chat.
	Server Server
	Added  bool
	// Connected is true if the server is running or connected. LastAsked is when it was last used or tried: the
	// state is that of then.
	Connected bool
	LastAsked time.Time
	// Tools is the number of tools in the group, 0 if unknown. LeftOut are the server's tools that cannot be
	// offered.
	Tools   int
	LeftOut []toolgroups.LeftOut
	// Problem says why the server cannot be used now; empty if it can.
	Problem string
	// NextRetry is the time of the next attempt after a problem.
	NextRetry time.Time
	// PendingChanges are the changes since the server was allowed, as many as can be shown at once. They take
	// effect when [Client.AllowChanges] is called with ChangesCode; then ChangesLeft more are pending.
	PendingChanges []Change
	ChangesLeft    int
	ChangesCode    string
	firstWords     bool
}

// HasNews reports whether pending changes are worth a notice: those are not that only say, of a server with accounts, what
// nobody was shown yet.
func (st Status) HasNews() bool { return len(st.PendingChanges) > 0 && !st.firstWords }

// Identity tells the server from others that get its name later, by its address or command line.
func (st Status) Identity() string { return fingerprint(st.Server) }

// CountTools returns how many tools a server has, as in "184 of 188 tools".
func (st Status) CountTools() string {
	text := wording.Plural(st.Tools, "tool", "tools")
	if n := len(st.LeftOut); n > 0 {
		return fmt.Sprintf("%d of %s", st.Tools, wording.Plural(st.Tools+n, "tool", "tools"))
	}
	return text
}

// DescribeLine returns a sentence with the group's line in the prompt, in Markdown.
func (st Status) DescribeLine() string {
	return "The prompt of every conversation has the line " + wording.InlineCode(st.Line) + "."
}

// maxNamed bounds the tools left out that people are shown.
const maxNamed = 20

// describeLeftOut returns which tools are left out and why, in Markdown; "" if none is.
func (st Status) describeLeftOut() string {
	if len(st.LeftOut) == 0 {
		return ""
	}
	var out strings.Builder
	out.WriteString("Left out:\n")
	for i, t := range st.LeftOut {
		if i == maxNamed {
			fmt.Fprintf(&out, "- and %d more\n", len(st.LeftOut)-i)
			break
		}
		fmt.Fprintf(&out, "- %s: %s\n", wording.InlineCode(t.Name), wording.EscapeMarkdown(t.Reason))
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// Status returns the state of each server, sorted by name, without contacting them.
func (c *Client) Status() []Status {
	servers := c.currentServers()
	out := make([]Status, len(servers))
	for i, s := range servers {
		out[i] = s.status()
	}
	return out
}

// Probe contacts all servers that need no account of a user, at once, and returns their states.
func (c *Client) Probe(ctx context.Context) []Status {
	var probed []*server
	var wg sync.WaitGroup
	for _, s := range c.currentServers() {
		if !s.isPersonal() {
			probed = append(probed, s)
		}
	}
	all := make([]Status, len(probed))
	for i, s := range probed {
		wg.Go(func() {
			err := s.connectOnce(ctx, "")
			if all[i] = s.status(); err != nil {
				all[i].Problem = s.contactError(err).Error()
			}
		})
	}
	wg.Wait()
	return all
}

// Close ends all servers and their processes, and waits for them. Later calls fail.
func (c *Client) Close() error {
	c.addMu.Lock()
	defer c.addMu.Unlock()
	c.closed = true
	var wg sync.WaitGroup
	for _, s := range c.currentServers() {
		wg.Go(s.close)
	}
	wg.Wait()
	c.closing.Wait()
	return nil
}

// currentServers returns the current servers.
func (c *Client) currentServers() []*server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers
}
