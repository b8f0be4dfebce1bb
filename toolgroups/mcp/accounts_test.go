package mcp_test

import (
	"context"
	"errors"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	emulator "oneclaw/internal/emulator/mcp"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
	"oneclaw/toolgroups/mcp/oauth"
)

// Two people of the bot, with the accounts that they have at the server.
const (
	ada   = "telegram:1"
	grace = "slack:U2"
)

const publicURL = "https://bot.example"

// harness is a family with one server that wants people to sign in.
type harness struct {
	em     *emulator.Server
	c      *mcp.Client
	cfg    mcp.Config
	logs   *logs
	offset *atomic.Int64 // of the clock
}

// openDesk makes a desk on a store; nil means a new one.
func openDesk(t *testing.T, em *emulator.Server, kv storage.KV, change func(*mcp.Config, *mcp.Server)) *harness {
	t.Helper()
	em.Misbehave(emulator.Misbehavior{})
	if kv == nil {
		store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db")})
		must(t, err)
		t.Cleanup(func() { must(t, store.Close()) })
		kv = store
	}
	d := &harness{em: em, logs: &logs{}, offset: &atomic.Int64{}}
	server := mcp.Server{URL: em.URL, Auth: mcp.AuthOAuth}
	d.cfg = mcp.Config{
		Accounts: mcp.AccountsConfig{KV: kv, SecretKey: []byte("0123456789abcdef"), PublicURL: publicURL},
		Logger:   d.logs.logger(), RetryDelay: time.Hour, MaxRetryDelay: time.Hour,
		Now: func() time.Time { return time.Now().Add(time.Duration(d.offset.Load())) },
	}
	if change != nil {
		change(&d.cfg, &server)
	}
	d.cfg.Servers = map[string]mcp.Server{"notes": server}
	d.c = client(t, d.cfg)
	return d
}

// send sends /connect notes in a direct chat.
func (d *harness) send(t *testing.T, user, args string) string {
	t.Helper()
	return d.sendIn(t, user, user, args)
}

func (d *harness) sendIn(t *testing.T, user, chat, args string) string {
	t.Helper()
	text, err := d.c.ConnectAccount(t.Context(), "Notes", toolgroups.RoleUser, oauth.Request{
		User: user, UserName: "Somebody", Chat: chat, Direct: chat == user, Args: args,
	})
	must(t, err)
	return text
}

var (
	linkPattern  = regexp.MustCompile(`\]\((http[^)]+)\)`)
	nextPattern  = regexp.MustCompile(`href="([^"]+)"`)
	proofPattern = regexp.MustCompile(`<code>([A-Z2-7-]+)</code>`)
)

// part is what a pattern finds.
func part(t *testing.T, p *regexp.Regexp, text string) string {
	t.Helper()
	found := p.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no %s in %q", p, text)
	}
	return html.UnescapeString(found[1])
}

// visit opens a page of the bot.
func (d *harness) visit(t *testing.T, address string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	d.c.Pages().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimPrefix(address, publicURL), http.NoBody))
	return w.Code, w.Body.String()
}

// consent goes from a link to where the browser comes back to.
func (d *harness) consent(t *testing.T, start, person string) string {
	t.Helper()
	_, body := d.visit(t, start)
	back, err := d.em.Consent(t.Context(), part(t, nextPattern, body), person)
	must(t, err)
	return back
}

// proof is what the page at the end shows.
func (d *harness) proof(t *testing.T, back string) string {
	t.Helper()
	_, body := d.visit(t, back)
	return part(t, proofPattern, body)
}

// connect brings somebody through the whole of a sign-in.
func (d *harness) connect(t *testing.T, user, person string) {
	t.Helper()
	back := d.consent(t, part(t, linkPattern, d.send(t, user, "")), person)
	if text := d.send(t, user, d.proof(t, back)); !strings.Contains(text, "is connected") || !strings.Contains(text, "2 tools") {
		t.Fatalf("connected: %q", text)
	}
}

// run runs a tool for somebody.
func (d *harness) run(t *testing.T, ctx context.Context, user string) (string, *toolgroups.Error) {
	t.Helper()
	name := "notes_whoami"
	if d.c.Status()[0].Tools == 0 {
		name = "notes_connect"
	}
	res, fault := toolgroups.Run(ctx, nil, find(t, d.c, name), toolgroups.Call{
		ID: "1", Name: name, Scope: toolgroups.Scope{User: user, Role: toolgroups.RoleUser},
	})
	return res.Text, fault
}

// is fails unless the server takes somebody for a person.
func (d *harness) is(t *testing.T, user, person string) {
	t.Helper()
	if text, fault := d.run(t, t.Context(), user); fault != nil || text != "it is "+person {
		t.Errorf("%s is %q, %+v; want %s", user, text, fault, person)
	}
}

// refuses fails unless a call ends with a code and these words.
func (d *harness) refuses(t *testing.T, user, code, words string) {
	t.Helper()
	if text, fault := d.run(t, t.Context(), user); fault == nil || fault.Code != code || !strings.Contains(fault.Message, words) {
		t.Errorf("%s got %q, %+v; want %s with %q", user, text, fault, code, words)
	}
}

// said fails unless a text has all parts.
func said(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q does not say %q", text, p)
		}
	}
}

// changed is an address with other parameters.
func changed(t *testing.T, address string, pairs ...string) string {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	q := u.Query()
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	u.RawQuery = q.Encode()
	return u.String()
}

func param(t *testing.T, address, name string) string {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	return u.Query().Get(name)
}

// People connect accounts of their own at a server that wants that; everything between is
// a real authorization server.
func TestAccounts(t *testing.T) {
	t.Parallel()
	em, err := emulator.Start()
	must(t, err)
	t.Cleanup(func() { must(t, em.Close()) })
	for name, run := range map[string]func(*testing.T, *emulator.Server){
		"each has their own":           eachHasTheirOwn,
		"consent is refused":           consentIsRefused,
		"tokens run out":               tokensRunOut,
		"tokens live a minute":         tokensLiveAMinute,
		"consent is withdrawn":         consentIsWithdrawn,
		"somebody disconnects":         somebodyDisconnects,
		"another person's link":        anotherPersonsLink,
		"a shared chat":                aSharedChat,
		"a stolen code":                aStolenCode,
		"the issuer changes":           theIssuerChanges,
		"the address changes":          theAddressChanges,
		"a permission is missing":      aPermissionIsMissing,
		"the sign-in is out of order":  theSignInIsOutOfOrder,
		"replicas share a token":       replicasShareAToken,
		"a replica is ahead":           aReplicaIsAhead,
		"the store fails":              theStoreFailsDuringARefresh,
		"a crash after the tokens":     aCrashAfterTheTokens,
		"a code is never sent":         aCodeIsNeverSent,
		"no pages of its own":          noPagesOfItsOwn,
		"clients":                      clients,
		"the address of the resource":  theAddressOfTheResource,
		"times that are no integers":   timesThatAreNoIntegers,
		"the secret is replaced":       theSecretIsReplaced,
		"metadata that is no good":     metadataThatIsNoGood,
		"a server is added and leaves": aServerIsAddedAndLeaves,
		"what it tells of an account":  whatItTellsOfAnAccount,
	} {
		t.Run(name, func(t *testing.T) { run(t, em) })
	}
}

func eachHasTheirOwn(t *testing.T, em *emulator.Server) {
	d := openDesk(t, em, nil, nil)
	d.refuses(t, ada, oauth.CodeNotConnected, "/connect notes")
	text := d.send(t, ada, "")
	start := part(t, linkPattern, text)
	said(t, text, "for `Somebody` alone", "ten minutes", strings.TrimPrefix(em.Issuer, "http://"))
	_, body := d.visit(t, start)
	said(t, body, "in the direct chat <bdi>telegram:1</bdi>", "use your account")
	page := part(t, nextPattern, body)
	for name, want := range map[string]string{
		"resource": em.URL, "code_challenge_method": "S256", "redirect_uri": publicURL + "/mcp/callback/notes", "response_type": "code",
		"scope": "openid email offline_access",
	} {
		if got := param(t, page, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if strings.Contains(start+page, "telegram") {
		t.Errorf("the link shows who it is for: %s %s", start, page)
	}
	back := d.consent(t, start, emulator.Ada)
	proof := d.proof(t, back)
	for _, again := range []string{start, back} {
		if status, body := d.visit(t, again); status != http.StatusBadRequest || !strings.Contains(body, "used already") {
			t.Errorf("the second time: %d %s", status, body)
		}
	}
	said(t, d.send(t, ada, strings.ToLower(proof)), "Your account at notes is connected", "It has 2 tools")
	said(t, d.send(t, ada, proof), "used already")
	said(t, d.send(t, ada, ""), "is connected", "again")
	d.refuses(t, grace, oauth.CodeNotConnected, "/connect notes")
	// No person is asked to approve what cannot succeed.
	ready := func(user string) error {
		return find(t, d.c, "notes_erase").CheckReady(t.Context(), toolgroups.Call{Scope: toolgroups.Scope{User: user}})
	}
	if fault, ok := errors.AsType[*toolgroups.Error](ready(grace)); !ok || fault.Code != oauth.CodeNotConnected || ready(ada) != nil {
		t.Errorf("ready: %v for who has not connected, %v for who has", fault, ready(ada))
	}
	d.connect(t, grace, emulator.Grace)
	if err := ready(grace); err != nil {
		t.Error(err)
	}
	d.is(t, ada, emulator.Ada)
	d.is(t, grace, emulator.Grace)
	if tool := find(t, d.c, "notes_erase"); !tool.Personal || tool.Effect != toolgroups.Consequential || !tool.NeedsApproval(toolgroups.Call{}) {
		t.Errorf("the tool asks nobody, or everybody: %+v", tool)
	}
	if strings.Contains(d.logs.String(), param(t, back, "code")) {
		t.Error("the log has a code")
	}
}

// What a server says of itself to one person is told to everybody once an administrator has allowed it, and what it lets one
// person do unasked is asked of the others whom it lets do more.
func whatItTellsOfAnAccount(t *testing.T, em *emulator.Server) {
	d := openDesk(t, em, nil, nil)
	em.Misbehave(emulator.Misbehavior{ReadOnlyFor: emulator.Grace})
	d.connect(t, grace, emulator.Grace)
	group := func() string {
		g := d.c.Groups()[0]
		return g.DisplayName + "\n" + g.Description + "\n" + g.Notes
	}
	if text := group(); strings.Contains(text, emulator.Grace) {
		t.Errorf("everybody is told %q", text)
	}
	if _, err := d.c.Disconnect(t.Context(), "notes", grace); err != nil {
		t.Error(err)
	}
	for entry, err := range d.cfg.Accounts.KV.List(t.Context(), storage.Range{Prefix: mcp.RecordPrefix}) {
		if err != nil || strings.Contains(string(entry.Value), emulator.Grace) {
			t.Errorf("%s outlives the account: %s, %v", entry.Key, entry.Value, err)
		}
	}
	d.connect(t, grace, emulator.Grace)
	if allowed, err := d.c.AllowChanges(t.Context(), "notes", d.c.Status()[0].ChangesCode); err != nil || !allowed {
		t.Errorf("allowed: %t, %v", allowed, err)
	}
	said(t, group(), "Notes of "+emulator.Grace, "Keeps notes of "+emulator.Grace)
	if tool := find(t, d.c, "notes_erase"); tool.Effect != toolgroups.ReadOnly {
		t.Fatalf("effect %v", tool.Effect)
	}
	d.connect(t, ada, emulator.Ada)
	if tool := find(t, d.c, "notes_erase"); tool.Effect != toolgroups.Consequential {
		t.Errorf("effect %v after another list", tool.Effect)
	}
	d = openDesk(t, em, d.cfg.Accounts.KV, nil) // another process, which has no connection of theirs
	em.Misbehave(emulator.Misbehavior{ReadOnlyFor: emulator.Grace})
	d.is(t, grace, emulator.Grace)
	erase := func() (toolgroups.Effect, *toolgroups.Error) {
		tool := find(t, d.c, "notes_erase")
		_, fault := toolgroups.Run(t.Context(), nil, tool, toolgroups.Call{ID: "1", Name: tool.Name, Scope: toolgroups.Scope{User: ada, Role: toolgroups.RoleUser}})
		return tool.Effect, fault
	}
	if effect, fault := erase(); effect != toolgroups.ReadOnly || fault == nil || fault.Code != mcp.CodeUnavailable {
		t.Errorf("judged as %v: %+v", effect, fault)
	}
	if effect, fault := erase(); effect != toolgroups.Consequential || fault != nil {
		t.Errorf("judged as %v: %+v", effect, fault)
	}
}

func consentIsRefused(t *testing.T, em *emulator.Server) {
	d := openDesk(t, em, nil, nil)
	back := d.consent(t, part(t, linkPattern, d.send(t, ada, "")), "")
	_, body := d.visit(t, back)
	said(t, body, "was not given")
	_, body = d.visit(t, back)
	said(t, body, "used already")
	d.refuses(t, ada, oauth.CodeNotConnected, "/connect notes")
	back = d.consent(t, part(t, linkPattern, d.send(t, ada, "")), "")
	_, body = d.visit(t, changed(t, back, "error", "server_error"))
	said(t, body, "answered `server_error`")
}

func tokensRunOut(t *testing.T, em *emulator.Server) {
	d := openDesk(t, em, nil, nil)
	d.connect(t, ada, emulator.Ada)
	for name, trouble := range map[string]func(){
		"by the clock":  func() { d.offset.Add(int64(10 * time.Minute)) },
		"at the server": em.Expire,
	} {
		before := em.Count("token")
		trouble()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { d.is(t, ada, emulator.Ada) })
		}
		wg.Wait()
		if n := em.Count("token") - before; n != 1 {
			t.Errorf("%s: %d new tokens\n%s", name, n, d.logs)
		}
	}
}

// Tokens that live shorter than a minute are used for half of that, not renewed for each call.
func tokensLiveAMinute(t *testing.T, em *emulator.Server) {
	d := openDesk(t, em, nil, nil)
	em.Misbehave(emulator.Misbehavior{TokenLifetime: time.Minute})
	d.connect(t, ada, emulator.Ada)
	before := em.Count("token")
	for range 5 {
		d.is(t, ada, emulator.Ada)
	}
	if n := em.Count("token") - before; n != 0 {
		t.Errorf("%d new tokens for five calls", n)
	}
	d.offset.Add(int64(40 * time.Second))
	d.is(t, ada, emulator.Ada)
	if n := em.Count("token") - before; n != 1 {
		t.Errorf("%d new tokens near the end of the first", n)
	}
}

func consentIsWithdrawn(t *testing.T, em *emulator.Server) {
	d := openDesk(t, em, nil, nil)
	d.connect(t, ada, emulator.Ada)
	d.connect(t, grace, emulator.Grace)
	em.WithdrawConsents(emulator.Ada)
	for range 2 {
		d.refuses(t, ada, oauth.CodeNotConnected, "withdrawn")
	}
	d.is(t, grace, emulator.Grace)
	d.connect(t, ada, emulator.Ada)
	d.is(t, ada, emulator.Ada)
}

func somebodyDisconnects(t *testing.T, em *emulator.Server) {
	d := openDesk(t, em, nil, nil)
	d.connect(t, ada, emulator.Ada)
	d.connect(t, grace, emulator.Grace)
	before := em.Count("revoke")
	text, err := d.c.Disconnect(t.Context(), "notes", ada)
	must(t, err)
	said(t, text, "the permission is withdrawn")
	if n := em.Count("revoke") - before; n != 2 {
		t.Errorf("%d tokens were revoked", n)
	}
	d.refuses(t, ada, oauth.CodeNotConnected, "has not connected")
	d.is(t, grace, emulator.Grace)
	text, err = d.c.Disconnect(t.Context(), "notes", ada)
	must(t, err)
	said(t, text, "You have no account connected")
}

func anotherPersonsLink(t *testing.T, em *emulator.Server) {
	d := openDesk(t, em, nil, nil)
	start := part(t, linkPattern, d.send(t, ada, ""))
	said(t, d.send(t, ada, "BBBB-BBBB"), "permission first")
	back := d.consent(t, start, emulator.Grace)
	proof := d.proof(t, back)
	// Not by who gave the consent, in another chat, with the address, or by guessing.
	said(t, d.send(t, grace, proof), "not known")
	said(t, d.sendIn(t, ada, "telegram:-5", proof), "not known")
	said(t, d.send(t, ada, back), "not the address")
	before := em.Count("revoke")
	said(t, d.send(t, ada, "BBBB-BBBB"), "look again")
	said(t, d.send(t, ada, "BBBB-BBBC"), "look again")
	said(t, d.send(t, ada, "BBBB-BBBD"), "too often")
	if n := em.Count("revoke") - before; n != 2 {
		t.Errorf("%d tokens of a void sign-in were revoked", n)
	}
	said(t, d.send(t, ada, proof), "not known")
	for _, user := range []string{ada, grace} {
		d.refuses(t, user, oauth.CodeNotConnected, "has not connected")
	}
	// A code that nobody sends is void after ten minutes.
	late := d.proof(t, d.consent(t, part(t, linkPattern, d.send(t, ada, "")), emulator.Ada))
	d.offset.Add(int64(10 * time.Minute))
	said(t, d.send(t, ada, late), "older than ten minutes")
}

func aSharedChat(t *testing.T, em *emulator.Server) {
	const chat = "telegram:-5"
	d := openDesk(t, em, nil, nil)
	text := d.sendIn(t, ada, chat, "")
	said(t, text, "only from you")
	_, body := d.visit(t, part(t, linkPattern, text))
	said(t, body, "in the chat <bdi>telegram:-5</bdi>")
	proof := d.proof(t, d.consent(t, part(t, linkPattern, text), emulator.Ada))
	said(t, d.sendIn(t, grace, chat, proof), "not known")
	said(t, d.sendIn(t, ada, chat, proof), "is connected")
	d.is(t, ada, emulator.Ada)
	d.refuses(t, grace, oauth.CodeNotConnected, "has not connected")
}

func aStolenCode(t *testing.T, em *emulator.Server) {
	d := openDesk(t, em, nil, nil)
	stolen := param(t, d.consent(t, part(t, linkPattern, d.send(t, ada, "")), emulator.Ada), "code")
	start := part(t, linkPattern, d.send(t, grace, ""))
	own := publicURL + "/mcp/callback/notes?iss=" + url.QueryEscape(em.Issuer) + "&code=" + url.QueryEscape(stolen) + "&state=" + param(t, start, "state")
	status, body := d.visit(t, own)
	if status != http.StatusBadRequest || !strings.Contains(body, "did not take the code") {
		t.Errorf("a stolen code: %d %s", status, body)
	}
	// Nor with a state that was made up, cut, or is of another server's sign-in.
	for _, other := range []string{changed(t, own, "state", "AAAA"), changed(t, own, "state", param(t, start, "state")[:40]), strings.Replace(own, "/notes", "/other", 1)} {
		if status, body := d.visit(t, other); status != http.StatusBadRequest || !strings.Contains(body, "not known") {
			t.Errorf("%s: %d %s", other, status, body)
		}
	}
	d.refuses(t, grace, oauth.CodeNotConnected, "has not connected")
	// What did not fit has not used her link up, but it may be tried three times alone.
	said(t, d.send(t, grace, d.proof(t, d.consent(t, start, emulator.Grace))), "is connected")
}

// Until the tools of a server with sign-in are known, one tool connects to it with the account of who asks: that is
// personal as well, so that neither a webhook's run nor a group has it used unasked.
func TestTheToolThatConnectsWithAPersonsAccountIsPersonal(t *testing.T) {
	em, err := emulator.Start()
	must(t, err)
	t.Cleanup(func() { must(t, em.Close()) })
	if tool := find(t, openDesk(t, em, nil, nil).c, "notes_connect"); !tool.Personal {
		t.Errorf("%s acts with the account of who asks and is not personal", tool.Name)
	}
}
