package google

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"oneclaw/internal/emulator/google"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
	"oneclaw/toolgroups/signin"
)

// list runs a tool that only reads.
func (r *harness) list(t *testing.T, user string) *toolgroups.Error {
	t.Helper()
	_, fault := r.run(t.Context(), user, t.TempDir(), "tasks_list_tasklists", json.RawMessage(`{}`))
	return fault
}

func TestConnectByCallback(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{PublicURL: "https://bot.example/"})
	start := r.ask(t, ada, "tasks")
	if !strings.HasPrefix(start, "https://bot.example/google/connect?") || strings.Contains(start, "telegram") {
		t.Errorf("the link is %s", start)
	}
	_, first := r.visit(t, start)
	page := html.UnescapeString(regexp.MustCompile(`href="([^"]+)"`).FindStringSubmatch(first)[1])
	u, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if q.Get("redirect_uri") != "https://bot.example/google/callback" || q.Get("code_challenge_method") != "S256" || q.Get("access_type") != "offline" {
		t.Errorf("the link is %s", page)
	}
	if strings.Contains(page, "telegram") || strings.Contains(page, "top-secret") {
		t.Errorf("the link shows what it should not: %s", page)
	}
	back := r.consent(t, page, adaMail)
	proof := r.proof(t, back)
	for _, again := range []string{start, back, r.consent(t, page, adaMail)} {
		if status, body := r.visit(t, again); status != http.StatusBadRequest || !strings.Contains(body, "used already") {
			t.Errorf("the second time: %d %s", status, body)
		}
	}
	if text := r.send(t, ada, strings.ToLower(proof)); !strings.Contains(text, adaMail+" is connected") {
		t.Errorf("confirmed: %q", text)
	}
	if text := r.send(t, ada, proof); !strings.Contains(text, "used already") {
		t.Errorf("confirmed again: %q", text)
	}
	if fault := r.list(t, ada); fault != nil {
		t.Errorf("after the connection: %+v", fault)
	}
}

// A user forwards the link, and somebody else consents: the pages say whom the account
// is for, before and after, and nothing is connected without the code that only that
// browser was shown.
//
// Somebody else's consent connects no account.
func TestSomebodyElseConsents(t *testing.T) {
	r := newRig(t, Config{PublicURL: "https://bot.example"})
	text, err := r.g.Connect(t.Context(), ConnectRequest{User: ada, UserName: "A<b>d\u202ea\u200b", Chat: ada, Direct: true, Args: "gmail"})
	if err != nil {
		t.Fatal(err)
	}
	start := link.FindStringSubmatch(text)[1]
	send := func(user, chat, args string) string {
		t.Helper()
		text, err := r.g.Connect(t.Context(), ConnectRequest{User: user, Chat: chat, Direct: true, Args: args})
		if err != nil || strings.Contains(text, "is connected") {
			t.Fatalf("%s sends %q: %q, %v", user, args, text, err)
		}
		return text
	}
	named := func(page string) {
		t.Helper()
		if !strings.Contains(page, "<bdi>A&lt;b&gt;da</bdi></b> (<bdi>telegram:1</bdi>), in the direct chat <bdi>telegram:1</bdi>") {
			t.Errorf("the page does not say whom it is for: %s", page)
		}
	}
	_, first := r.visit(t, start)
	named(first)
	if text := send(ada, ada, "BBBB-BBBB"); !strings.Contains(text, "permission first") {
		t.Errorf("a code before the consent: %q", text)
	}
	back := r.consent(t, start, graceMail)
	_, second := r.visit(t, back)
	named(second)
	proof := proof.FindStringSubmatch(second)[1]
	if r.em.IssuedTokens() != 0 {
		t.Error("tokens were fetched before the code was sent")
	}
	// Not with the address of the page, in another chat, by somebody else, nor by guessing.
	send(ada, ada, back)
	send(ada, "another", proof)
	send(grace, ada, proof)
	send(ada, ada, "BBBB-BBBB")
	send(ada, ada, "BBBB-BBBC")
	if text := send(ada, ada, "BBBB-BBBD"); !strings.Contains(text, "too often") {
		t.Errorf("the third wrong code: %q", text)
	}
	send(ada, ada, proof)
	for _, user := range []string{ada, grace} {
		if fault := r.list(t, user); codeOf(fault) != service.CodeNotConnected {
			t.Errorf("%s: %+v", user, fault)
		}
	}
	if r.em.IssuedTokens() != 0 {
		t.Error("tokens were fetched")
	}
}

// What arrives for a link that was used already takes the place of nothing: else a user
// could be shown the code first, and somebody else's consent follow.
//
// Somebody else's consent connects no account.
func TestALinkTakesOneConsent(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := newRig(t, Config{PublicURL: "https://bot.example", Now: func() time.Time { return now }})
	start := r.ask(t, ada, "tasks")
	back := r.consent(t, start, graceMail)
	state := regexp.MustCompile(`state=([^&]+)`).FindStringSubmatch(start)[1]
	seen := r.proof(t, "https://bot.example/google/callback?code=4/0invented&state="+state)
	if status, _ := r.visit(t, back); status != http.StatusBadRequest {
		t.Errorf("the second consent: %d", status)
	}
	if text := r.send(t, ada, seen); strings.Contains(text, "is connected") {
		t.Errorf("confirmed: %q", text)
	}
	// A code that nobody sends is void after ten minutes.
	late := r.proof(t, r.consent(t, r.ask(t, ada, "tasks"), adaMail))
	now = now.Add(signin.Lifetime)
	if text := r.send(t, ada, late); !strings.Contains(text, "older than ten minutes") {
		t.Errorf("too late: %q", text)
	}
	if fault := r.list(t, ada); codeOf(fault) != service.CodeNotConnected {
		t.Errorf("%+v", fault)
	}
}

// Without a public address the paste comes from the chat. What somebody else consented to
// by a link of their own is of no use there, and no more is the link of the user in
// somebody else's chat.
//
// Somebody else's consent connects no account.
func TestPastesOfOthersConnectNothing(t *testing.T) {
	r := newRig(t, Config{})
	r.ask(t, ada, "tasks")
	hers, err := url.Parse(r.consent(t, r.ask(t, grace, "tasks"), graceMail))
	if err != nil {
		t.Fatal(err)
	}
	for _, paste := range []string{hers.String(), hers.Query().Get("code"), "code=" + url.QueryEscape(hers.Query().Get("code"))} {
		back := r.consent(t, r.ask(t, ada, "tasks"), graceMail)
		if text := r.send(t, ada, paste); strings.Contains(text, "is connected") {
			t.Errorf("ada pastes %q: %q", paste, text)
		}
		if text := r.send(t, grace, back); strings.Contains(text, "is connected") {
			t.Errorf("grace pastes what ada's link led to: %q", text)
		}
	}
	for _, user := range []string{ada, grace} {
		if fault := r.list(t, user); codeOf(fault) != service.CodeNotConnected {
			t.Errorf("%s: %+v", user, fault)
		}
	}
}

// A state is of one user, is used once, lives ten minutes, and cannot be made.
func TestStateIsBound(t *testing.T) {
	now := time.Now()
	r := newRig(t, Config{Now: func() time.Time { return now }})
	swap := func(back, state string) string {
		u, err := url.Parse(back)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set("state", state)
		u.RawQuery = q.Encode()
		return u.String()
	}
	stateOf := func(page string) string {
		u, err := url.Parse(page)
		if err != nil {
			t.Fatal(err)
		}
		return u.Query().Get("state")
	}
	first := r.ask(t, ada, "")
	hers := r.ask(t, grace, "")
	second := r.ask(t, ada, "")
	// Everything fits but the state.
	if status, _ := r.visit(t, swap(r.consent(t, second, adaMail), stateOf(first))); status != http.StatusBadRequest {
		t.Errorf("an older state: %d", status)
	}
	for name, back := range map[string]string{
		"an older link":     r.consent(t, first, adaMail),
		"invented":          swap(r.consent(t, second, adaMail), "AAAA"),
		"none":              swap(r.consent(t, second, adaMail), ""),
		"damaged at an end": swap(r.consent(t, second, adaMail), stateOf(second)[1:]),
	} {
		if status, _ := r.visit(t, back); status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, status)
		}
	}
	// With the state of someone else it is kept for her, and of no use to her either.
	if text := r.send(t, grace, r.proof(t, swap(r.consent(t, second, adaMail), stateOf(hers)))); strings.Contains(text, "is connected") {
		t.Errorf("of someone else: %q", text)
	}
	now = now.Add(signin.Lifetime)
	back := r.consent(t, second, adaMail) // With a fresh code, so that only the link is old.
	if status, _ := r.visit(t, back); status != http.StatusBadRequest {
		t.Errorf("after ten minutes: %d", status)
	}
	if fault := r.list(t, ada); codeOf(fault) != service.CodeNotConnected {
		t.Errorf("ada: %+v", fault)
	}
	if fault := r.list(t, grace); codeOf(fault) != service.CodeNotConnected {
		t.Errorf("grace: %+v", fault)
	}
}

func TestDeniedConsent(t *testing.T) {
	r := newRig(t, Config{})
	if status, body := r.visit(t, r.consent(t, r.ask(t, ada, ""), "")); status != http.StatusBadRequest || !strings.Contains(body, "nothing was connected") {
		t.Errorf("%d %s", status, body)
	}
}

// The code is decoded, whichever way it is pasted.
//
// A sign-in code is decoded, and its exchange is not repeated.
func TestAPastedCodeConnects(t *testing.T) {
	r := newRig(t, Config{})
	for _, tc := range []struct {
		name string
		args func(back *url.URL) string
	}{
		{"address", (*url.URL).String},
		{"query", func(u *url.URL) string { return "<" + u.RawQuery + ">" }},
		{"code", func(u *url.URL) string { return u.Query().Get("code") }},
		{"encoded code", func(u *url.URL) string { return url.QueryEscape(u.Query().Get("code")) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			back, err := url.Parse(r.consent(t, r.ask(t, ada, "tasks"), adaMail))
			if err != nil || !strings.Contains(back.RawQuery, "%2F") {
				t.Fatalf("%s, %v", back, err)
			}
			before := r.em.IssuedTokens()
			text, err := r.g.Connect(t.Context(), ConnectRequest{User: ada, Chat: "chat of " + ada, Direct: true, Args: tc.args(back)})
			if err != nil || !strings.Contains(text, adaMail+" is connected") {
				t.Errorf("%q, %v", text, err)
			}
			if n := r.em.IssuedTokens() - before; n != 1 {
				t.Errorf("the code was exchanged %d times", n)
			}
			if _, err := r.g.Disconnect(t.Context(), ada); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// What is pasted by someone else or elsewhere connects nothing.
func TestPasteIsBound(t *testing.T) {
	r := newRig(t, Config{})
	back := r.consent(t, r.ask(t, ada, "tasks"), adaMail)
	for _, req := range []ConnectRequest{
		{User: grace, Chat: "chat of " + grace, Direct: true, Args: back},
		{User: ada, Chat: "another", Direct: true, Args: back},
		{User: ada, Chat: "chat of " + ada, Args: back},
	} {
		if text, err := r.g.Connect(t.Context(), req); err != nil || strings.Contains(text, "is connected") {
			t.Errorf("%+v: %q, %v", req, text, err)
		}
	}
}

// An address that cannot be looked up keeps nobody from being connected.
//
// A sign-in code is decoded, and its exchange is not repeated.
func TestAddressIsOptional(t *testing.T) {
	r := newRig(t, Config{})
	r.em.Inject(google.Fault{Method: "oauth2.userinfo.get", Status: 500})
	r.connect(t, ada, adaMail, "tasks")
	r.em.Reset()
	if fault := r.list(t, ada); fault != nil {
		t.Errorf("%+v", fault)
	}
}

// The exchange survives a moment of trouble, but a code that was refused is not
// tried again.
func TestExchangeIsRetried(t *testing.T) {
	r := newRig(t, Config{})
	r.em.Inject(google.Fault{Method: "auth.token", Status: 503, Times: 2})
	r.connect(t, ada, adaMail, "tasks")
	if n := r.em.IssuedTokens(); n != 1 {
		t.Errorf("%d tokens", n)
	}
}

// Scopes are asked for when a group is first used, and are not lost later.
func TestScopesStepByStep(t *testing.T) {
	r := newRig(t, Config{})
	if fault := r.list(t, ada); codeOf(fault) != service.CodeNotConnected {
		t.Fatalf("%+v", fault)
	}
	page := r.ask(t, ada, "")
	if !strings.Contains(page, url.QueryEscape(scopePrefix+"tasks")) || strings.Contains(page, "gmail") {
		t.Errorf("the first link asks for other things: %s", page)
	}
	r.confirm(t, ada, r.consent(t, page, adaMail))
	_, fault := r.run(t.Context(), ada, t.TempDir(), "gmail_search", json.RawMessage(`{"query":"x"}`))
	if codeOf(fault) != toolgroups.CodeDenied || !strings.Contains(fault.Message, "gmail.modify") || !strings.Contains(fault.Message, "/connect google") {
		t.Errorf("%+v", fault)
	}
	r.confirm(t, ada, r.consent(t, r.ask(t, ada, ""), adaMail))
	if _, fault := r.run(t.Context(), ada, t.TempDir(), "gmail_search", json.RawMessage(`{"query":"x"}`)); fault != nil {
		t.Errorf("after the second link: %+v", fault)
	}
	if fault := r.list(t, ada); fault != nil {
		t.Errorf("what was granted first: %+v", fault)
	}
	text, err := r.g.Connect(t.Context(), ConnectRequest{User: ada, Chat: "c", Direct: true})
	if err != nil || !strings.Contains(text, adaMail+" is connected") {
		t.Errorf("%q, %v", text, err)
	}
	_, fault = r.run(t.Context(), ada, t.TempDir(), "gmail_settings_add_forwarding", json.RawMessage(`{"forwarding_email":"a@b.example"}`))
	if codeOf(fault) != toolgroups.CodeDenied || !strings.Contains(fault.Message, "domain-wide delegation") {
		t.Errorf("%+v", fault)
	}
}

func TestDisconnect(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "tasks")
	text, err := r.g.Disconnect(t.Context(), ada)
	if err != nil || !strings.Contains(text, "withdrawn") || r.em.HasConsent(adaMail) {
		t.Errorf("%q, %v, still granted: %v", text, err, r.em.HasConsent(adaMail))
	}
	if fault := r.list(t, ada); codeOf(fault) != service.CodeNotConnected {
		t.Errorf("%+v", fault)
	}
	if text, err := r.g.Disconnect(t.Context(), ada); err != nil || !strings.Contains(text, "No Google account") {
		t.Errorf("again: %q, %v", text, err)
	}
	r.connect(t, ada, adaMail, "tasks")
	r.em.Inject(google.Fault{Method: "auth.revoke", Status: 503})
	text, err = r.g.Disconnect(t.Context(), ada)
	if err != nil || !strings.Contains(text, "myaccount.google.com/permissions") {
		t.Errorf("with trouble: %q, %v", text, err)
	}
	if fault := r.list(t, ada); codeOf(fault) != service.CodeNotConnected {
		t.Errorf("%+v", fault)
	}
}

func TestConnectNeedsADirectChatAndAClient(t *testing.T) {
	r := newRig(t, Config{})
	if text, err := r.g.Connect(t.Context(), ConnectRequest{User: ada, Chat: "c"}); err != nil || !strings.Contains(text, "direct chat") {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := r.g.Connect(t.Context(), ConnectRequest{User: ada, Chat: "c", Direct: true, Args: "fax"}); err != nil || !strings.Contains(text, "calendar") {
		t.Errorf("%q, %v", text, err)
	}
	bare, err := New(Config{KV: openKV(t), SecretKey: []byte("0123456789abcdef")})
	if err != nil {
		t.Fatal(err)
	}
	for admin, want := range map[bool]string{true: "3. Start me with `GOOGLE_CLIENT_ID` and `GOOGLE_CLIENT_SECRET`.", false: "An administrator can do that: /connect google tells them how."} {
		if text, err := bare.Connect(t.Context(), ConnectRequest{User: ada, Chat: "c", Direct: true, Admin: admin}); err != nil || !strings.Contains(text, want) {
			t.Errorf("%q, %v", text, err)
		}
	}
}

// The operator connects an account on the bot's own machine.
func TestLogin(t *testing.T) {
	r := newRig(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	visited := make(chan error, 1)
	email, err := r.g.Login(ctx, ada, []string{"tasks"}, func(page string) {
		back := r.consent(t, page, adaMail)
		go func() { visited <- r.get(ctx, back) }()
	})
	if err != nil || email != adaMail {
		t.Errorf("%q, %v", email, err)
	}
	if err := <-visited; err != nil {
		t.Error(err)
	}
	if fault := r.list(t, ada); fault != nil {
		t.Errorf("%+v", fault)
	}
	_, err = r.g.Login(ctx, grace, nil, func(string) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}

// get fetches a page as a browser does.
func (r *harness) get(ctx context.Context, page string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return err
	}
	resp, err := r.client.RoundTrip(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}

// newServiceAccount returns the key file of a service account and its key.
func newServiceAccount(t *testing.T) ([]byte, *rsa.PublicKey) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	file, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "bot@project.example", "private_key_id": "1", "token_uri": tokenURL,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return file, &key.PublicKey
}

// A service account acts only for the users that the operator names.
func TestServiceAccount(t *testing.T) {
	file, key := newServiceAccount(t)
	r := newRig(t, Config{ServiceAccount: file, Subjects: map[string]string{ada: adaMail}})
	if fault := r.list(t, ada); codeOf(fault) != toolgroups.CodeDenied || !strings.Contains(fault.Message, "administrator of the domain has to allow its client the scopes: tasks") {
		t.Errorf("before the domain trusts it: %+v", fault)
	}
	r.em.TrustServiceAccount("bot@project.example", key)
	for range 3 {
		if fault := r.list(t, ada); fault != nil {
			t.Errorf("%+v", fault)
		}
	}
	if n := r.em.IssuedTokens(); n != 1 {
		t.Errorf("%d tokens for three calls", n)
	}
	_, fault := r.run(t.Context(), ada, t.TempDir(), "gmail_settings_add_forwarding", json.RawMessage(`{"forwarding_email":"a@b.example"}`))
	if fault != nil {
		t.Errorf("what only delegation allows: %+v", fault)
	}
	if token, err := r.g.AccessToken(t.Context(), toolgroups.Scope{User: ada}); err != nil || token == "" {
		t.Errorf("a token for a user's own tool: %v", err)
	}
	if fault := r.list(t, grace); codeOf(fault) != service.CodeNotConnected {
		t.Errorf("grace: %+v", fault)
	}
	if _, err := New(Config{KV: openKV(t), SecretKey: []byte("0123456789abcdef"), ServiceAccount: []byte("{")}); err == nil {
		t.Error("a key file that is none was accepted")
	}
}

// What only the service account may do happens in the mailbox that all other tools show, or not at all: mail
// of another mailbox would be forwarded.
func TestDelegationStaysInTheConnectedMailbox(t *testing.T) {
	file, key := newServiceAccount(t)
	r := newRig(t, Config{ServiceAccount: file, Subjects: map[string]string{ada: adaMail}})
	r.em.TrustServiceAccount("bot@project.example", key)
	forward := func() *toolgroups.Error {
		t.Helper()
		r.em.ClearRequests()
		_, fault := r.run(t.Context(), ada, t.TempDir(), "gmail_settings_add_forwarding", json.RawMessage(`{"forwarding_email":"a@b.example"}`))
		return fault
	}
	r.connect(t, ada, graceMail, "gmail_settings")
	fault := forward()
	if codeOf(fault) != toolgroups.CodeDenied || !strings.Contains(fault.Message, adaMail) || !strings.Contains(fault.Message, graceMail) {
		t.Errorf("with another account: %+v", fault)
	}
	if n := len(r.em.Requests()); n > 0 {
		t.Errorf("%d requests", n)
	}
	if _, err := r.g.Disconnect(t.Context(), ada); err != nil {
		t.Fatal(err)
	}
	r.connect(t, ada, adaMail, "gmail_settings")
	if fault := forward(); fault != nil || r.em.Requests()[0].Account != adaMail {
		t.Errorf("with the same account: %+v", fault)
	}
}

// What a sign-in asks for is said in words.
func TestScopesAreSaidInWords(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	text := r.send(t, ada, strings.Join(serviceNames(), " "))
	if !strings.Contains(text, "read, send and change your mail; ") || !strings.Contains(text, "read and change your spreadsheets") {
		t.Errorf("the link comes with %q", text)
	}
	for _, group := range groups() {
		for _, scope := range group.AllScopes() {
			if words := service.ScopeWords([]string{scope}); strings.HasPrefix(words, "use ") {
				t.Errorf("%s has no words", scope)
			}
		}
	}
}

// The last page has a button that copies the code; the browser runs this script and no other.
func TestTheLastPageRunsOnlyTheScriptThatCopies(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	u, err := url.Parse(r.consent(t, r.ask(t, ada, "gmail"), adaMail))
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r.g.Pages().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, u.Path+"?"+u.RawQuery, nil))
	script := regexp.MustCompile(`(?s)<script>(.*)</script>`).FindStringSubmatch(w.Body.String())
	if script == nil || !strings.Contains(w.Body.String(), "Copy</button>") {
		t.Fatalf("no button: %s", w.Body)
	}
	sum := sha256.Sum256([]byte(script[1]))
	if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "script-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"';") {
		t.Errorf("the policy is %q", csp)
	}
}
