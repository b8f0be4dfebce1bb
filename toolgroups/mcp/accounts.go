package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"oneclaw/internal/guard"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp/oauth"
)

// openAccounts creates the store of users' tokens.
func (c *Client) openAccounts() (err error) {
	if c.cfg.Accounts.KV == nil {
		return nil
	}
	c.cfg.accounts, err = oauth.New(oauth.Config{
		KV: c.cfg.Accounts.KV, SecretKey: c.cfg.Accounts.SecretKey, PublicURL: c.cfg.Accounts.PublicURL, LocalURL: c.cfg.Accounts.LocalURL,
		Server: c.oauthServer, Now: c.cfg.Now, Logger: c.cfg.Logger,
	})
	return err
}

// oauthServer returns a server to which users sign in, by its name.
func (c *Client) oauthServer(name string) (oauth.Server, bool) {
	s, ok := c.find(name)
	if !ok || !s.isPersonal() {
		return oauth.Server{}, false
	}
	return s.oauthServer(), true
}

// find returns a server by its name, ignoring case.
func (c *Client) find(name string) (*server, bool) {
	servers := c.currentServers()
	i := slices.IndexFunc(servers, func(s *server) bool { return strings.EqualFold(s.name, name) })
	if i < 0 {
		return nil, false
	}
	return servers[i], true
}

// Pages serves the pages of sign-ins, under /mcp/.
func (c *Client) Pages() http.Handler {
	if c.cfg.accounts == nil {
		return http.NotFoundHandler()
	}
	return c.cfg.accounts.Pages()
}

// learnTime bounds connecting to a server to read its tools.
const learnTime = 20 * time.Second

// AwaitsCode is [oauth.Accounts.AwaitsCode]. It returns false where no accounts can be connected.
func (c *Client) AwaitsCode(ctx context.Context, server, user, chat, code string) (waits, matches bool, err error) {
	if c.cfg.accounts == nil {
		return false, false, nil
	}
	return c.cfg.accounts.AwaitsCode(ctx, server, user, chat, code)
}

// ConnectAccount answers /connect for a server in Markdown.
func (c *Client) ConnectAccount(ctx context.Context, name string, role toolgroups.Role, req oauth.Request) (string, error) {
	s, ok := c.find(name)
	switch {
	case !ok:
		return "", fmt.Errorf("mcp: there is no server %q", name)
	case role < s.role:
		return fmt.Sprintf("Sorry, %s is not for everybody here: ask an administrator.", s.name), nil
	case !s.isPersonal():
		return fmt.Sprintf("%s needs no account of yours: it is used with the one that it was set up with, if any.", s.name), nil
	case c.cfg.accounts == nil:
		return fmt.Sprintf("Accounts at %s cannot be connected here.", s.name), nil
	}
	target := s.oauthServer()
	target.Others = c.cfg.Accounts.KnownAddresses
	for _, other := range c.currentServers() {
		if other != s {
			target.Others = append(slices.Clip(target.Others), other.cfg.URL, other.cfg.Issuer)
		}
	}
	text, done, err := c.cfg.accounts.Connect(ctx, target, req)
	if err != nil || !done {
		return text, err
	}
	s.userServers.closeUser(req.User) // close the connection with the previous account
	ctx, cancel := context.WithTimeout(ctx, learnTime)
	defer cancel()
	if err := s.connectOnce(ctx, req.User); err != nil {
		return text + "\n\nBut its tools cannot be read yet: " + quoteFault(s.callError("list", err)) + ".", nil
	}
	return fmt.Sprintf("%s It has %s.", text, s.status().CountTools()), nil
}

// Disconnect answers /disconnect for a server in Markdown, even if the server has been removed.
func (c *Client) Disconnect(ctx context.Context, name, user string) (string, error) {
	if c.cfg.accounts == nil {
		return fmt.Sprintf("You have no account connected at %s.", name), nil
	}
	s, ok := c.find(name)
	if !ok {
		return c.cfg.accounts.Disconnect(ctx, c.removedServer(name), user)
	}
	defer s.userServers.closeUser(user)
	target := s.oauthServer()
	target.HTTP = cmp.Or(target.HTTP, c.removedServer(name).HTTP)
	if err := s.forgetWords(ctx); err != nil {
		return "", err
	}
	return c.cfg.accounts.Disconnect(ctx, target, user)
}

// removedServer returns a removed server, for revoking the consents given to it.
func (c *Client) removedServer(name string) oauth.Server {
	return oauth.Server{Name: name, HTTP: guard.NewClient(guard.Config{AllowPrivate: c.cfg.AllowPrivate, Resolver: c.cfg.Resolver})}
}

// PruneSignIns deletes the sign-ins that were not confirmed in time, and revokes their tokens.
func (c *Client) PruneSignIns(ctx context.Context) error {
	if c.cfg.accounts == nil {
		return nil
	}
	return c.cfg.accounts.PruneSignIns(ctx, c.removedServer("").HTTP)
}

// Forget revokes and deletes the accounts of all users at a server. It returns their number.
func (c *Client) Forget(ctx context.Context, name string) (int, error) {
	if c.cfg.accounts == nil {
		return 0, nil
	}
	if err := c.cfg.Accounts.KV.Delete(ctx, RecordPrefix+name, storage.Any); err != nil {
		return 0, fmt.Errorf("mcp: delete the record: %w", err)
	}
	target := c.removedServer(name)
	if s, ok := c.find(name); ok && s.authClient != nil {
		target = s.oauthServer()
	}
	return c.cfg.accounts.Forget(ctx, target)
}

// IsConnected reports whether a user has connected an account at a server.
func (c *Client) IsConnected(ctx context.Context, name, user string) (bool, error) {
	target, ok := c.oauthServer(name)
	if !ok || c.cfg.accounts == nil {
		return false, nil
	}
	return c.cfg.accounts.IsConnected(ctx, target, user)
}

// ValidName reports whether a name is valid for a server.
func ValidName(name string) bool { return serverNamePattern.MatchString(name) }

// Check contacts a server and describes its state in Markdown, for an administrator.
func (c *Client) Check(ctx context.Context, name, user string) (string, error) {
	s, ok := c.find(name)
	if !ok {
		return "", fmt.Errorf("mcp: there is no server %q", name)
	}
	ctx, cancel := context.WithTimeout(ctx, learnTime)
	defer cancel()
	err := s.connectOnce(ctx, user)
	var known *toolgroups.Error
	switch {
	case err == nil:
		st := s.status()
		return strings.TrimSpace(fmt.Sprintf("%s works: it has %s. %s\n\n%s", s.name, st.CountTools(), st.DescribeLine(), st.describeLeftOut())), nil
	case s.isPersonal() && errors.As(err, &known) && known.Code == oauth.CodeNotConnected:
		wants, err := oauth.RequiresSignIn(ctx, s.oauthServer())
		if err != nil {
			return fmt.Sprintf("%s does not work: %s.", s.name, err), nil
		}
		if !wants {
			return fmt.Sprintf("%s can be reached, but requires no sign-in, although it is set up with one.", s.name), nil
		}
		return fmt.Sprintf("%s can be reached and asks people to sign in. You have no account connected there: `/connect %s`.", s.name, s.name), nil
	}
	return fmt.Sprintf("%s does not work: %s.", s.name, quoteFault(s.contactError(err))), nil
}

// contactError returns the error that tells an administrator why a server could not be contacted.
func (s *server) contactError(err error) error {
	if problem := s.status().Problem; problem != "" {
		return errors.New(problem)
	}
	return s.callError("list", err)
}

// quoteFault returns an error with a server's own words for an answer in Markdown, without a full stop.
func quoteFault(err error) string {
	return wording.InlineCode(strings.TrimSuffix(err.Error(), "."))
}

// HasServer reports whether there is a server of that name.
func (c *Client) HasServer(name string) bool {
	_, ok := c.find(name)
	return ok
}

// Trial is the result of trying a server before it is added.
type Trial struct {
	// Server is the configuration to add.
	Server Server
	// Tools is the number of tools, 0 if the server shows them only after a sign-in. LeftOut are those that
	// cannot be offered.
	Tools   int
	LeftOut []toolgroups.LeftOut
	// Line will be the group's line in the prompt.
	Line string

	record record
}

// Try contacts a server that an administrator wants to add, without adding it. It finds out whether
// users have to sign in, and otherwise reads the tools. The error is for the administrator.
func (c *Client) Try(ctx context.Context, name string, cfg Server) (Trial, error) {
	if err := c.checkAddedServer(name, cfg); err != nil {
		return Trial{}, err
	}
	cfg.addedInChat = true
	family := c.cfg
	family.OnChange, family.Accounts.KV = nil, nil
	s, err := newServer(family, name, cfg)
	if err != nil {
		return Trial{}, err
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(ctx, learnTime)
	defer cancel()
	if cfg.Auth == "" {
		wants, err := oauth.RequiresSignIn(ctx, oauth.Server{Name: name, URL: cfg.URL, HTTP: signInClient(family.AllowPrivate, family)})
		if err != nil {
			return Trial{}, err
		}
		if wants {
			cfg.Auth = AuthOAuth
		}
	}
	if cfg.Auth == AuthOAuth {
		return Trial{Server: cfg, Line: s.line(s.record)}, nil // the server shows its tools only after a sign-in
	}
	if err := s.connectOnce(ctx, ""); err != nil {
		return Trial{}, errors.New(quoteFault(s.contactError(err)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.group.Tools) == 0 {
		return Trial{}, errors.New("it lists no tool that can be used")
	}
	r := s.newRecord(s.record.Listed)
	return Trial{Server: cfg, Tools: len(s.group.Tools), LeftOut: s.group.LeftOut, Line: s.line(r), record: r}, nil
}

// Pin pins the descriptions of a tried server's tools: later changes need approval. If the server
// shows its tools only after a sign-in, the first user's list is pinned, without permissions.
func (c *Client) Pin(ctx context.Context, name string, tried Trial) (err error) {
	switch {
	case c.cfg.Accounts.KV == nil:
	case tried.Tools == 0:
		err = c.cfg.Accounts.KV.Delete(ctx, RecordPrefix+name, storage.Any)
	default:
		_, err = c.cfg.Accounts.KV.Put(ctx, RecordPrefix+name, tried.record.encode(), storage.Any)
	}
	if err != nil {
		return fmt.Errorf("mcp: pin the descriptions: %w", err)
	}
	return nil
}

// checkAddedServer checks a server to be added. Its tools must not take the names of other tools.
func (c *Client) checkAddedServer(name string, cfg Server) error {
	if !serverNamePattern.MatchString(name) {
		return errors.New("the name has letters, digits, - and _, at most 32, and begins with a letter")
	}
	if cfg.Command != "" || len(cfg.Headers) > 0 || cfg.ClientSecret != "" || cfg.AllowPrivate {
		return errors.New("only an address can be added in a chat; what needs more stands in the settings")
	}
	if faults := cfg.faults(); len(faults) > 0 {
		return errors.Join(faults...)
	}
	lower := strings.ToLower(name)
	for _, s := range c.currentServers() {
		other := strings.ToLower(s.name)
		if other == lower || strings.HasPrefix(other, lower+"_") || strings.HasPrefix(lower, other+"_") {
			return fmt.Errorf("the name is too close to that of the server %s", s.name)
		}
	}
	if slices.ContainsFunc(c.cfg.TakenNames, func(taken string) bool { return taken == groupPrefix+name || taken == name+"_connect" }) {
		return errors.New("the name is taken by a tool")
	}
	return nil
}

// SetAddedServers sets the servers that were added in chats, besides those of the configuration. The
// error names the servers that are left out, and why; the others are used.
func (c *Client) SetAddedServers(servers map[string]Server) error {
	c.addMu.Lock()
	defer c.addMu.Unlock()
	if c.closed {
		return errClosed
	}
	c.mu.Lock()
	var errs []error
	var now, old []*server
	kept := map[string]bool{}
	for _, s := range c.servers {
		want, ok := servers[s.name]
		want.addedInChat = true
		if s.cfg.addedInChat && (!ok || !reflect.DeepEqual(withDefaults(want), s.cfg)) {
			old = append(old, s)
			continue
		}
		kept[s.name] = s.cfg.addedInChat
		now = append(now, s)
	}
	c.servers = now
	c.mu.Unlock()
	changed := len(old) > 0
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		if kept[name] {
			continue
		}
		s, err := c.newAddedServer(name, servers[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("server %q: %w", name, err))
			continue
		}
		now, changed = append(slices.Clone(now), s), true
		slices.SortFunc(now, func(a, b *server) int { return strings.Compare(a.name, b.name) })
		c.mu.Lock()
		c.servers = now
		c.mu.Unlock()
	}
	for _, s := range old {
		c.closing.Go(s.close)
	}
	if changed && c.cfg.OnChange != nil {
		c.cfg.OnChange()
	}
	return errors.Join(errs...)
}

// newAddedServer creates a server that was added in a chat.
func (c *Client) newAddedServer(name string, cfg Server) (*server, error) {
	if err := c.checkAddedServer(name, cfg); err != nil {
		return nil, err
	}
	cfg.addedInChat = true
	return newServer(c.cfg, name, cfg)
}
