package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	emulator "oneclaw/internal/emulator/mcp"
	"oneclaw/storage"
	"oneclaw/toolgroups/mcp"
	"oneclaw/toolgroups/mcp/oauth"
)

// Where the server points after consent was given is no matter for the tokens there are,
// and is shown before new ones are asked for.
func theIssuerChanges(t *testing.T, em *emulator.Server) {
	d := openDesk(t, em, nil, nil)
	d.connect(t, ada, emulator.Ada)
	var reached atomic.Int64
	var other *httptest.Server
	other = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/.well-known/oauth-authorization-server" && r.URL.Path != "/register" {
			reached.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": other.URL, "authorization_endpoint": other.URL + "/a", "token_endpoint": other.URL + "/t", "client_id": "c",
			"registration_endpoint": other.URL + "/register", "code_challenge_methods_supported": []string{"S256"},
		})
	}))
	t.Cleanup(other.Close)
	em.Misbehave(emulator.Misbehavior{Resource: func(said map[string]any) { said["authorization_servers"] = []string{other.URL} }})
	d.offset.Add(int64(10 * time.Minute))
	d.is(t, ada, emulator.Ada)
	said(t, d.send(t, ada, "again"), "was at `"+em.Issuer+"` before and is at `"+other.URL+"` now")
	d.is(t, ada, emulator.Ada)
	if text, err := d.c.Disconnect(t.Context(), "notes", ada); err != nil || !strings.Contains(text, "withdrawn") {
		t.Errorf("%q, %v", text, err)
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("the other issuer got %d requests", n)
	}
	// An answer that says it comes from elsewhere, or does not say where from.
	for _, issuer := range []string{other.URL, "-"} {
		em.Misbehave(emulator.Misbehavior{Issuer: issuer})
		start := part(t, linkPattern, d.send(t, ada, ""))
		before := em.Count("token")
		_, body := d.visit(t, d.consent(t, start, emulator.Ada))
		said(t, body, "from another sign-in")
		if em.Count("token") != before {
			t.Error("the code was sent")
		}
	}
	// It calls itself something else than what the server calls it.
	em.Misbehave(emulator.Misbehavior{Metadata: func(said map[string]any) { said["issuer"] = other.URL }})
	said(t, d.send(t, ada, ""), "cannot be trusted", "nothing was connected")
}

// Tokens do not follow a name to another address.
func theAddressChanges(t *testing.T, em *emulator.Server) {
	d := openDesk(t, em, nil, nil)
	d.connect(t, ada, emulator.Ada)
	start := part(t, linkPattern, d.send(t, grace, ""))
	proof := d.proof(t, d.consent(t, start, emulator.Grace))
	var tokens atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			tokens.Add(1)
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(other.Close)
	moved := openDesk(t, em, d.cfg.Accounts.KV, func(_ *mcp.Config, s *mcp.Server) { s.URL = other.URL + "/mcp" })
	moved.refuses(t, ada, oauth.CodeNotConnected, "has not connected")
	said(t, moved.send(t, grace, proof), "not known")
	moved.refuses(t, grace, oauth.CodeNotConnected, "has not connected")
	if tokens.Load() != 0 {
		t.Error("the other address got a token")
	}
	d.is(t, ada, emulator.Ada)
}

// A resource that covers the address of the server is its own, however it is written. The sign-in is on
// another host.
func theAddressOfTheResource(t *testing.T, em *emulator.Server) {
	origin := strings.TrimSuffix(em.URL, "/mcp")
	for _, resource := range []string{origin + "/", origin, em.URL + "/", strings.Replace(em.URL, "http", "HTTP", 1)} {
		d := openDesk(t, em, nil, nil)
		em.Misbehave(emulator.Misbehavior{Resource: func(said map[string]any) { said["resource"] = resource }})
		d.connect(t, ada, emulator.Ada)
		d.is(t, ada, emulator.Ada)
		d.offset.Add(int64(10 * time.Minute))
		d.is(t, ada, emulator.Ada)
	}
	for _, resource := range []string{"http://other.example/mcp", origin + "/mcpx", origin + "/mcp/more", strings.Replace(em.URL, "127.0.0.1", "me@127.0.0.1", 1), ""} {
		d := openDesk(t, em, nil, nil)
		em.Misbehave(emulator.Misbehavior{Resource: func(said map[string]any) { said["resource"] = resource }})
		said(t, d.send(t, ada, ""), "cannot be used")
	}
}

func timesThatAreNoIntegers(t *testing.T, em *emulator.Server) {
	for _, life := range []any{299.5, "299.50", "300", 3e2, 1e300, -1, "soon", nil, true, []any{}} {
		d := openDesk(t, em, nil, nil)
		em.Misbehave(emulator.Misbehavior{Token: func(said map[string]any) { said["expires_in"] = life }})
		d.connect(t, ada, emulator.Ada)
		d.is(t, ada, emulator.Ada)
	}
}

func aPermissionIsMissing(t *testing.T, em *emulator.Server) {
	d := openDesk(t, em, nil, nil)
	d.connect(t, ada, emulator.Ada)
	em.Misbehave(emulator.Misbehavior{MissingScope: "profile phone"})
	d.refuses(t, ada, "permission_denied", "has not granted notes the permission `profile phone`")
	em.Misbehave(emulator.Misbehavior{})
	d.is(t, ada, emulator.Ada)
	_, body := d.visit(t, part(t, linkPattern, d.send(t, ada, "")))
	if got := param(t, part(t, nextPattern, body), "scope"); got != "openid email profile phone offline_access" {
		t.Errorf("the link asks for %q", got)
	}
}

func theSignInIsOutOfOrder(t *testing.T, em *emulator.Server) {
	d := openDesk(t, em, nil, nil)
	d.connect(t, ada, emulator.Ada)
	d.offset.Add(int64(10 * time.Minute))
	em.Misbehave(emulator.Misbehavior{TokenEndpointDown: true})
	d.refuses(t, ada, oauth.CodeSignIn, "stays connected")
	em.Misbehave(emulator.Misbehavior{RejectTokens: true})
	d.refuses(t, ada, oauth.CodeNotConnected, "does not take the user's sign-in any more")
	em.Misbehave(emulator.Misbehavior{}) // Nobody waits for a pause: no fault of the server was noted.
	d.is(t, ada, emulator.Ada)
}

// Two replicas fetch one new token: a token that lasts is good for one.
func replicasShareAToken(t *testing.T, em *emulator.Server) {
	one := openDesk(t, em, nil, nil)
	one.connect(t, ada, emulator.Ada)
	two := openDesk(t, em, one.cfg.Accounts.KV, nil)
	if _, fault := two.run(t, t.Context(), ada); fault != nil {
		t.Errorf("%+v", fault)
	}
	one.offset.Add(int64(10 * time.Minute))
	two.offset.Add(int64(10 * time.Minute))
	before := em.Count("token")
	var wg sync.WaitGroup
	for _, d := range []*harness{one, two} {
		for range 3 {
			wg.Go(func() { d.is(t, ada, emulator.Ada) })
		}
	}
	wg.Wait()
	if n := em.Count("token") - before; n != 1 {
		t.Errorf("%d new tokens", n)
	}
	// The other uses the account that one connects, also where it has a session with the account before.
	said(t, one.send(t, ada, one.proof(t, one.consent(t, part(t, linkPattern, one.send(t, ada, "again")), emulator.Grace))), "is connected")
	one.is(t, ada, emulator.Grace)
	two.is(t, ada, emulator.Grace)
	// What one disconnects the other cannot use.
	_, err := one.c.Disconnect(t.Context(), "notes", ada)
	must(t, err)
	two.refuses(t, ada, oauth.CodeNotConnected, "has not connected")
}

// failing is a store that refuses to delete sign-ins for a while.
type failing struct {
	storage.KV
	broken atomic.Bool
}

func (f *failing) Delete(ctx context.Context, key string, rev storage.Revision) error {
	if f.broken.Load() && strings.HasPrefix(key, "mcp/pending/") {
		return errors.New("the disk is gone")
	}
	return f.KV.Delete(ctx, key, rev)
}

// hooked is a store whose accounts are read and written through functions, if they are set.
type hooked struct {
	storage.KV
	get func() error
	put func(write func() (storage.Revision, error)) (storage.Revision, error)
}

func (h *hooked) Get(ctx context.Context, key string) (storage.Entry, error) {
	if h.get != nil && strings.HasPrefix(key, "mcp/account/") {
		if err := h.get(); err != nil {
			return storage.Entry{}, err
		}
	}
	return h.KV.Get(ctx, key)
}

func (h *hooked) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	write := func() (storage.Revision, error) { return h.KV.Put(ctx, key, value, rev) }
	if h.put != nil && strings.HasPrefix(key, "mcp/account/") {
		return h.put(write)
	}
	return write()
}

// A refresh token works once: the new one is stored although the store fails, and not revoked because
// it cannot be read.
func theStoreFailsDuringARefresh(t *testing.T, em *emulator.Server) {
	broken := errors.New("the disk is gone")
	for name, fail := range map[string]func(t *testing.T, kv *hooked, puts int, write func() (storage.Revision, error)) error{
		"nothing is written": func(_ *testing.T, _ *hooked, puts int, _ func() (storage.Revision, error)) error {
			if puts < 4 {
				return broken
			}
			return nil
		},
		"it was written": func(t *testing.T, _ *hooked, puts int, write func() (storage.Revision, error)) error {
			if puts > 2 {
				t.Error("it is written twice")
			}
			_, err := write()
			must(t, err)
			return broken
		},
		"a conflict, and it cannot be read": func(t *testing.T, kv *hooked, puts int, _ func() (storage.Revision, error)) error {
			if puts > 2 {
				return nil
			}
			const key = "mcp/account/notes/" + ada
			found, err := kv.KV.Get(t.Context(), key)
			must(t, err)
			_, err = kv.KV.Put(t.Context(), key, found.Value, storage.Any)
			must(t, err)
			fails := 2
			kv.get = func() error {
				if fails--; fails >= 0 {
					return broken
				}
				return nil
			}
			return storage.ErrConflict
		},
	} {
		t.Run(name, func(t *testing.T) {
			kv, puts := &hooked{}, 0
			d := openDesk(t, em, nil, func(cfg *mcp.Config, _ *mcp.Server) {
				kv.KV = cfg.Accounts.KV
				cfg.Accounts.KV = kv
			})
			d.connect(t, ada, emulator.Ada)
			kv.put = func(write func() (storage.Revision, error)) (storage.Revision, error) {
				if puts++; puts > 1 { // the first one claims the refresh
					if err := fail(t, kv, puts, write); err != nil {
						return 0, err
					}
				}
				return write()
			}
			before := em.Count("revoke")
			d.offset.Add(int64(10 * time.Minute))
			d.is(t, ada, emulator.Ada)
			kv.put, kv.get = nil, nil
			d.offset.Add(int64(10 * time.Minute))
			d.is(t, ada, emulator.Ada)
			if n := em.Count("revoke") - before; n != 0 {
				t.Errorf("%d tokens were revoked", n)
			}
		})
	}
}

// The clock of one replica is two minutes ahead of the other's, which waits for it nevertheless.
func aReplicaIsAhead(t *testing.T, em *emulator.Server) {
	var mu sync.Mutex // of reads
	kv, reads := &hooked{}, 0
	one := openDesk(t, em, nil, func(cfg *mcp.Config, _ *mcp.Server) {
		kv.KV = cfg.Accounts.KV
		cfg.Accounts.KV = kv
	})
	one.connect(t, ada, emulator.Ada)
	watched := &hooked{KV: kv.KV}
	two := openDesk(t, em, watched, nil)
	_, _ = two.run(t, t.Context(), ada) // learns the tools
	claimed, waits, puts := make(chan struct{}), make(chan struct{}), 0
	kv.put = func(write func() (storage.Revision, error)) (storage.Revision, error) {
		if puts++; puts == 2 { // the new token
			close(claimed)
			<-waits
		}
		return write()
	}
	watched.get = func() error {
		mu.Lock()
		defer mu.Unlock()
		if reads++; reads == 3 {
			close(waits)
		}
		return nil
	}
	one.offset.Add(int64(12 * time.Minute))
	two.offset.Add(int64(10 * time.Minute))
	before := em.Count("token")
	var both sync.WaitGroup
	both.Go(func() { one.is(t, ada, emulator.Ada) })
	<-claimed
	two.is(t, ada, emulator.Ada)
	both.Wait()
	if n := em.Count("token") - before; n != 1 {
		t.Errorf("%d new tokens", n)
	}
}

// The tokens of a sign-in whose code the user does not send are neither kept nor left valid. Those of a person
// who is connected already are only forgotten: some services would revoke their other consent with them.
func aCodeIsNeverSent(t *testing.T, em *emulator.Server) {
	for name, tc := range map[string]struct {
		end     func(t *testing.T, d *harness)
		before  func(t *testing.T, d *harness)
		revoked int
	}{
		"it expires": {end: func(t *testing.T, d *harness) {
			must(t, d.c.PruneSignIns(t.Context())) // too early
			d.offset.Add(int64(10 * time.Minute))
			must(t, d.c.PruneSignIns(t.Context()))
		}, revoked: 2},
		"it begins anew": {end: func(t *testing.T, d *harness) {
			d.send(t, ada, "")
			d.offset.Add(int64(10 * time.Minute))
			must(t, d.c.PruneSignIns(t.Context()))
		}, revoked: 2},
		"it is disconnected": {end: func(t *testing.T, d *harness) {
			_, err := d.c.Disconnect(t.Context(), "notes", ada)
			must(t, err)
		}, revoked: 2},
		"the server is removed": {end: func(t *testing.T, d *harness) {
			_, err := d.c.Forget(t.Context(), "notes")
			must(t, err)
		}, revoked: 2},
		"the person is connected": {before: func(t *testing.T, d *harness) { d.connect(t, ada, emulator.Ada) }, end: func(t *testing.T, d *harness) {
			d.offset.Add(int64(10 * time.Minute))
			must(t, d.c.PruneSignIns(t.Context()))
			d.is(t, ada, emulator.Ada)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := openDesk(t, em, nil, nil)
			if tc.before != nil {
				tc.before(t, d)
			}
			d.proof(t, d.consent(t, part(t, linkPattern, d.send(t, ada, "again")), emulator.Ada))
			before := em.Count("revoke")
			tc.end(t, d)
			if n := em.Count("revoke") - before; n != tc.revoked {
				t.Errorf("%d tokens were revoked, want %d", n, tc.revoked)
			}
			for entry, err := range d.cfg.Accounts.KV.List(t.Context(), storage.Range{Prefix: "mcp/pending/"}) {
				must(t, err)
				t.Errorf("%s is kept", entry.Key)
			}
		})
	}
}

func aCrashAfterTheTokens(t *testing.T, em *emulator.Server) {
	kv := &failing{}
	d := openDesk(t, em, nil, func(cfg *mcp.Config, _ *mcp.Server) {
		kv.KV = cfg.Accounts.KV
		cfg.Accounts.KV = kv
	})
	proof := d.proof(t, d.consent(t, part(t, linkPattern, d.send(t, ada, "")), emulator.Ada))
	kv.broken.Store(true)
	_, err := d.c.ConnectAccount(t.Context(), "notes", 1, oauth.Request{User: ada, Chat: ada, Direct: true, Args: proof})
	if err == nil {
		t.Fatal("it says that it worked")
	}
	kv.broken.Store(false)
	d.offset.Add(int64(8 * time.Minute)) // A new token is needed by now.
	_, _ = d.run(t, t.Context(), ada)
	said(t, d.send(t, ada, proof), "is connected") // The command runs again after a crash.
	d.is(t, ada, emulator.Ada)
}

func noPagesOfItsOwn(t *testing.T, em *emulator.Server) {
	d := openDesk(t, em, nil, func(cfg *mcp.Config, _ *mcp.Server) { cfg.Accounts.PublicURL = "" })
	said(t, d.sendIn(t, ada, "telegram:-5", ""), "direct chat")
	consent := func(user, person string) string {
		back, err := em.Consent(t.Context(), part(t, linkPattern, d.send(t, user, "")), person)
		must(t, err)
		return back
	}
	hers, his := consent(ada, emulator.Ada), consent(grace, emulator.Grace)
	if !strings.HasPrefix(hers, "http://127.0.0.1:8787/mcp/callback/notes?") {
		t.Errorf("the browser ends on %s", hers)
	}
	said(t, d.send(t, ada, his), "not known")
	said(t, d.send(t, ada, strings.Replace(hers, "/notes", "/other", 1)), "whole address")
	said(t, d.send(t, ada, changed(t, hers, "state", "")), "not known")
	said(t, d.send(t, ada, "<"+hers+">"), "is connected")
	said(t, d.send(t, ada, hers), "not known")
	d.is(t, ada, emulator.Ada)
	d.refuses(t, grace, oauth.CodeNotConnected, "has not connected")
}

// The bot is one client for all people, and registers where it is let.
func clients(t *testing.T, em *emulator.Server) {
	d := openDesk(t, em, nil, nil)
	confidential := func(said map[string]any) {
		said["token_endpoint_auth_methods_supported"] = []string{"client_secret_basic"}
	}
	em.Misbehave(emulator.Misbehavior{Metadata: confidential})
	before := em.Count("register")
	d.connect(t, ada, emulator.Ada)
	d.connect(t, grace, emulator.Grace)
	if n := em.Count("register") - before; n != 1 {
		t.Errorf("%d clients were registered", n)
	}
	d.offset.Add(int64(10 * time.Minute))
	d.is(t, ada, emulator.Ada)
	text, err := d.c.Disconnect(t.Context(), "notes", ada)
	must(t, err)
	said(t, text, "is withdrawn")
	id := param(t, func() string {
		_, body := d.visit(t, part(t, linkPattern, d.send(t, ada, "")))
		return part(t, nextPattern, body)
	}(), "client_id")
	// One that was registered by hand.
	byHand := openDesk(t, em, nil, func(cfg *mcp.Config, s *mcp.Server) {
		cfg.LookupEnv = func(string) (string, bool) { return "secret of " + id, true }
		s.ClientID, s.ClientSecret, s.Scopes = id, "${NOTES_SECRET}", []string{"openid"}
	})
	em.Misbehave(emulator.Misbehavior{Metadata: confidential})
	before = em.Count("register")
	byHand.connect(t, ada, emulator.Ada)
	if em.Count("register") != before {
		t.Error("a client was registered beside the one of the settings")
	}
	// A description at an address of the bot, where the sign-in reads those.
	em.Misbehave(emulator.Misbehavior{Metadata: func(said map[string]any) { said["client_id_metadata_document_supported"] = true }})
	_, body := d.visit(t, part(t, linkPattern, d.send(t, ada, "")))
	document := param(t, part(t, nextPattern, body), "client_id")
	status, about := d.visit(t, document)
	if document != publicURL+"/mcp/client/notes" || status != http.StatusOK {
		t.Errorf("the client is %s, %d", document, status)
	}
	said(t, about, `"client_id":"`+document+`"`, publicURL+"/mcp/callback/notes")
	// None of all that.
	fresh := openDesk(t, em, nil, nil)
	em.Misbehave(emulator.Misbehavior{Metadata: func(said map[string]any) { delete(said, "registration_endpoint") }})
	said(t, fresh.send(t, ada, ""), "client_id", publicURL+"/mcp/callback/notes")
}

// The operator replaces the secret at the service, and then in the settings.
func theSecretIsReplaced(t *testing.T, em *emulator.Server) {
	kv := &failing{}
	first := openDesk(t, em, nil, func(cfg *mcp.Config, _ *mcp.Server) { kv.KV = cfg.Accounts.KV })
	confidential := emulator.Misbehavior{Metadata: func(said map[string]any) {
		said["token_endpoint_auth_methods_supported"] = []string{"client_secret_basic"}
	}}
	em.Misbehave(confidential)
	_, body := first.visit(t, part(t, linkPattern, first.send(t, ada, "")))
	id := param(t, part(t, nextPattern, body), "client_id")
	start := func(secret string) *harness {
		d := openDesk(t, em, kv, func(cfg *mcp.Config, s *mcp.Server) {
			cfg.LookupEnv = func(string) (string, bool) { return secret, true }
			s.ClientID, s.ClientSecret = id, "${NOTES_SECRET}"
		})
		em.Misbehave(confidential)
		return d
	}
	d := start("secret of " + id)
	d.connect(t, ada, emulator.Ada)
	em.ReplaceSecret(id, "another secret")
	d.offset.Add(int64(10 * time.Minute))
	d.refuses(t, ada, oauth.CodeSignIn, "an administrator has to check the client_secret")
	d = start("another secret")
	d.offset.Add(int64(10 * time.Minute))
	_, _ = d.run(t, t.Context(), ada) // learns the tools
	d.is(t, ada, emulator.Ada)
	text, err := d.c.Disconnect(t.Context(), "notes", ada)
	must(t, err)
	said(t, text, "is withdrawn")
}

func metadataThatIsNoGood(t *testing.T, em *emulator.Server) {
	d := openDesk(t, em, nil, nil)
	for name, c := range map[string]struct {
		lies emulator.Misbehavior
		want string
	}{
		"no PKCE":      {emulator.Misbehavior{Metadata: func(m map[string]any) { m["code_challenge_methods_supported"] = []string{"plain"} }}, "PKCE"},
		"a script":     {emulator.Misbehavior{Metadata: func(m map[string]any) { m["authorization_endpoint"] = "javascript:alert(1)" }}, "cannot be trusted"},
		"in the clear": {emulator.Misbehavior{Metadata: func(m map[string]any) { m["token_endpoint"] = "http://notes.example/token" }}, "cannot be trusted"},
		"inside":       {emulator.Misbehavior{Resource: func(m map[string]any) { m["authorization_servers"] = []string{"https://10.0.0.1"} }}, "does not say how it works"},
		"nobody":       {emulator.Misbehavior{Resource: func(m map[string]any) { m["authorization_servers"] = []string{} }}, "names no place"},
		"another":      {emulator.Misbehavior{Resource: func(m map[string]any) { m["resource"] = "https://bank.example/mcp" }}, "does not say how it works"},
		"open":         {emulator.Misbehavior{NoSignIn: true}, "does not ask anybody to sign in"},
		"no client":    {emulator.Misbehavior{Metadata: func(m map[string]any) { m["registration_endpoint"] = em.Issuer + "/nowhere" }}, "does not take this bot as a client"},
	} {
		em.Misbehave(c.lies)
		if text := d.send(t, ada, ""); !strings.Contains(text, c.want) || strings.Contains(text, "](") {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
	em.Misbehave(emulator.Misbehavior{})
	d.connect(t, ada, emulator.Ada)
}

func aServerIsAddedAndLeaves(t *testing.T, em *emulator.Server) {
	changes := atomic.Int64{}
	d := openDesk(t, em, nil, func(cfg *mcp.Config, _ *mcp.Server) {
		cfg.OnChange = func() { changes.Add(1) }
	})
	// An administrator's address reaches what the operator lets it reach, and this is inside.
	if _, err := d.c.Try(t.Context(), "more", mcp.Server{URL: em.URL}); err == nil || !strings.Contains(err.Error(), "internal or reserved") {
		t.Errorf("an address inside: %v", err)
	}
	for name, want := range map[string]string{"notes": "too close", "NOTES_x": "too close", "9": "begins with a letter"} {
		if _, err := d.c.Try(t.Context(), name, mcp.Server{URL: "https://notes.example/mcp"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := d.c.Try(t.Context(), "sh", mcp.Server{Command: "sh"}); err == nil || !strings.Contains(err.Error(), "only an address") {
		t.Errorf("a program: %v", err)
	}
	before := changes.Load()
	more := map[string]mcp.Server{"more": {URL: "https://more.example/mcp", Role: "admin"}}
	for range 2 {
		must(t, d.c.SetAddedServers(more))
	}
	if n := changes.Load() - before; n != 1 || !d.c.HasServer("more") || len(d.c.Groups()) != 2 {
		t.Errorf("%d changes, groups %d", n, len(d.c.Groups()))
	}
	if text, err := d.c.ConnectAccount(t.Context(), "more", 1, oauth.Request{}); err != nil || !strings.Contains(text, "not for everybody") {
		t.Errorf("%q, %v", text, err)
	}
	if err := d.c.SetAddedServers(map[string]mcp.Server{"notes": {URL: "https://evil.example/mcp"}}); err == nil || d.c.HasServer("more") {
		t.Errorf("the place of one from the settings was taken: %v", err)
	}
	if st := d.c.Status(); len(st) != 1 || st[0].Server.URL != em.URL {
		t.Errorf("%+v", st)
	}
}
