package signin_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oneclaw/bridge"
	"oneclaw/bridge/audit"
	"oneclaw/internal/admin/signin"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
)

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// house is a door with a page behind it, a clock and a list of administrators.
type house struct {
	*signin.Service
	t      *testing.T
	store  storage.Store
	server *httptest.Server

	mu     sync.Mutex
	now    time.Time
	admins map[string]bool
}

func newHouse(t *testing.T, publicURL, listen string) *house {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "test.db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	h := &house{t: t, store: store, now: began, admins: map[string]bool{"telegram:1": true}}
	h.Service = h.door(publicURL, listen)
	h.server = httptest.NewServer(h.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, ok := signin.FromContext(r.Context())
		if !ok {
			t.Error("the page is shown without a session")
		}
		_, _ = io.WriteString(w, "inside: "+s.User+" "+s.Name+" csrf="+s.CSRF+" said="+r.PostForm.Get("said"))
	})))
	t.Cleanup(h.server.Close)
	return h
}

// door makes one more process at the same store.
func (h *house) door(publicURL, listen string) *signin.Service {
	h.t.Helper()
	d, err := signin.New(signin.Config{
		Store: h.store, PublicURL: publicURL, Listen: listen,
		IsAdmin: func(user string) bool { h.mu.Lock(); defer h.mu.Unlock(); return h.admins[user] },
		Now:     func() time.Time { h.mu.Lock(); defer h.mu.Unlock(); return h.now },
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return d
}

func (h *house) pass(by time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(by)
}

func (h *house) admin(user string, is bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.admins[user] = is
}

// browser keeps cookies and follows redirects.
type browser struct {
	t      *testing.T
	house  *house
	client *http.Client
	csrf   string
}

func (h *house) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return &browser{t: h.t, house: h, client: &http.Client{Jar: jar}}
}

var csrfOf = regexp.MustCompile(`csrf=(\S+)`)

// do makes a request and returns the status and the page. A form makes it a POST.
func (b *browser) do(path string, form url.Values, change ...func(*http.Request)) (*http.Response, string) {
	b.t.Helper()
	method, body := http.MethodGet, ""
	if form != nil {
		method, body = http.MethodPost, form.Encode()
	}
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.house.server.URL+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", b.house.server.URL)
	}
	for _, f := range change {
		f(r)
	}
	response, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if found := csrfOf.FindSubmatch(page); found != nil {
		b.csrf = string(found[1])
	}
	return response, string(page)
}

// sees checks the status and a part of the page.
func (b *browser) sees(status int, part, path string, form url.Values, change ...func(*http.Request)) *http.Response {
	b.t.Helper()
	response, page := b.do(path, form, change...)
	if response.StatusCode != status || !strings.Contains(page, part) {
		b.t.Errorf("%s: %d %s; want %d with %q", path, response.StatusCode, page, status, part)
	}
	return response
}

// link asks for one and returns its token.
func (h *house) link(user string) string {
	h.t.Helper()
	token, err := h.Commands()[0].Secret(h.t.Context(), bridge.CommandCall{Scope: toolgroups.Scope{User: user}, UserName: "Ann"})
	if err != nil {
		h.t.Fatal(err)
	}
	return token
}

// signedIn is a browser with a session.
func (h *house) signedIn(user string) *browser {
	h.t.Helper()
	b := h.browser()
	b.sees(http.StatusOK, "inside: "+user, "/admin/enter", url.Values{"token": {h.link(user)}})
	return b
}

func (h *house) entries() string {
	h.t.Helper()
	all, err := audit.List(h.t.Context(), h.store, 100)
	if err != nil {
		h.t.Fatal(err)
	}
	var entries []string
	for _, e := range all {
		entries = append(entries, e.By+" "+e.Action+" "+e.Chat)
	}
	return strings.Join(entries, ", ")
}

const local = "127.0.0.1:8787"

// A link lets one browser in, once; looking at it uses nothing up.
func TestALinkMakesOneSession(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "", local)
	link, ann, bob := h.link("telegram:1"), h.browser(), h.browser()
	ann.sees(http.StatusUnauthorized, "Send /admin to the bot", "/admin/", nil)
	bob.sees(http.StatusOK, "telegram:1", "/admin/enter/"+link, nil)
	ann.sees(http.StatusOK, "Sign in</button>", "/admin/enter/"+link, nil)
	ann.sees(http.StatusOK, "inside: telegram:1 Ann", "/admin/enter", url.Values{"token": {link}})
	ann.sees(http.StatusOK, "inside: telegram:1 Ann", "/admin", nil)
	ann.sees(http.StatusOK, "inside", "/admin/enter", url.Values{"token": {link}}) // the button, twice
	next := h.link("telegram:1")
	ann.sees(http.StatusOK, "inside", "/admin/enter", url.Values{"token": {next}}) // is signed in already
	bob.sees(http.StatusNotFound, "This link has been used", "/admin/enter", url.Values{"token": {next}})
	bob.sees(http.StatusNotFound, "This link has been used", "/admin/enter/"+link, nil)
	bob.sees(http.StatusNotFound, "This link has been used", "/admin/enter", url.Values{"token": {link}})
	bob.sees(http.StatusUnauthorized, "Sign in", "/admin/", nil)
	ann.sees(http.StatusForbidden, "not belong to your session", "/admin/leave", url.Values{})
	ann.sees(http.StatusOK, "Signed out", "/admin/leave", url.Values{"csrf": {ann.csrf}})
	ann.sees(http.StatusUnauthorized, "Sign in", "/admin/", nil)
	if got := h.entries(); got != "telegram:1 sign-out page, telegram:1 sign-in page" && got != "telegram:1 sign-in page, telegram:1 sign-out page" {
		t.Errorf("the audit has %s", got)
	}
}

// A link signs in its own administrator, also where another one is signed in.
func TestALinkReplacesTheSessionOfAnother(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "", local)
	h.admin("telegram:2", true)
	b, link := h.signedIn("telegram:1"), h.link("telegram:2")
	b.sees(http.StatusOK, "telegram:2", "/admin/enter/"+link, nil)
	b.sees(http.StatusOK, "inside: telegram:2", "/admin/enter", url.Values{"token": {link}})
	b.sees(http.StatusOK, "inside: telegram:2", "/admin/", nil)
	h.browser().sees(http.StatusNotFound, "This link has been used", "/admin/enter/"+link, nil)
}

// A session ends with its time, with too long a pause, with the role, and with /admin out,
// also where another process learns of it.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "", local)
	login := func(b *browser, status int) { t.Helper(); b.sees(status, "", "/admin/", nil) }

	idle, busy := h.signedIn("telegram:1"), h.signedIn("telegram:1")
	for range 20 {
		h.pass(signin.IdleAge - time.Minute)
		login(busy, http.StatusOK)
		if h.now.Sub(began) > 2*signin.IdleAge {
			login(idle, http.StatusUnauthorized)
		}
		if h.now.Sub(began)+signin.IdleAge > signin.SessionAge {
			break
		}
	}
	h.pass(signin.IdleAge - time.Second)
	login(busy, http.StatusUnauthorized)

	ann := h.signedIn("telegram:1")
	h.admin("telegram:1", false)
	login(ann, http.StatusUnauthorized)
	h.admin("telegram:1", true) // the session does not come back with the role
	login(ann, http.StatusUnauthorized)

	first := h.signedIn("telegram:1")
	var others []*browser
	for range signin.MaxSessions {
		others = append(others, h.signedIn("telegram:1"))
	}
	login(first, http.StatusUnauthorized)
	login(others[0], http.StatusOK)
	h.admin("telegram:2", true)
	two := h.signedIn("telegram:2")
	if err := h.door("", local).SignOut(t.Context(), "telegram:1", "sign-out everywhere"); err != nil {
		t.Fatal(err)
	}
	login(others[0], http.StatusUnauthorized)
	login(two, http.StatusOK)
	if entries := h.entries(); !strings.Contains(entries, "no administrator any more") || !strings.Contains(entries, "everywhere") {
		t.Errorf("the audit has %s", entries)
	}
}

// Links that do not count let nobody in: old ones, replaced ones, those of others, forged ones.
func TestLinksThatDoNotCount(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "", local)
	refused := func(status int, token string) {
		t.Helper()
		h.browser().sees(status, "", "/admin/enter/"+url.PathEscape(token), nil)
		h.browser().sees(status, "", "/admin/enter", url.Values{"token": {token}})
	}
	late := h.link("telegram:1")
	h.pass(signin.LinkAge)
	refused(http.StatusNotFound, late)
	replaced := h.link("telegram:1")
	valid := h.link("telegram:1")
	refused(http.StatusNotFound, replaced)
	_, secret, _ := strings.Cut(valid, ".")
	refused(http.StatusNotFound, "oclink_dGVsZWdyYW06Mg."+secret) // telegram:2
	h.pass(time.Hour)
	refused(http.StatusNotFound, strings.ToLower(h.link("telegram:1")))
	h.admin("telegram:1", false)
	refused(http.StatusNotFound, h.link("telegram:1"))
	h.admin("telegram:1", true)
	valid = h.link("telegram:1")
	for range 20 {
		h.browser().do("/admin/enter", url.Values{"token": {"x"}})
	}
	refused(http.StatusTooManyRequests, "y")
	h.browser().sees(http.StatusOK, "inside", "/admin/enter", url.Values{"token": {valid}})
}

// The store has the hashes of links and sessions alone.
func TestTheStoreHasNoTokens(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "", local)
	h.signedIn("telegram:1")
	link := h.link("telegram:1")
	_, secret, _ := strings.Cut(link, ".")
	n := 0
	for e, err := range h.store.List(t.Context(), storage.Range{}) {
		if n++; err != nil || strings.Contains(string(e.Value), secret) || strings.Contains(string(e.Value), "ocseat_") {
			t.Errorf("%s: %s, %v", e.Key, e.Value, err)
		}
	}
	if n == 0 {
		t.Error("the store has no records")
	}
}

// A visitor who is signed in reads which part does not work, because no page is shown without the store.
func TestAnOutageOfTheStoreIsNamed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "", local)
	b := h.signedIn("telegram:1")
	if err := h.store.Close(); err != nil {
		t.Fatal(err)
	}
	b.sees(http.StatusServiceUnavailable, "The database cannot be read or written", "/admin/", nil)
}

// Pressed at once in many browsers, also at several processes, a link makes one session.
func TestOneOfManyComesIn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "", local)
	other := httptest.NewServer(h.door("", local).Handler(http.NotFoundHandler()))
	t.Cleanup(other.Close)
	link := h.link("telegram:1")
	var in atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		b := h.browser()
		b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		at := func(r *http.Request) {
			if i%2 == 0 {
				r.URL.Host = strings.TrimPrefix(other.URL, "http://")
				r.Host = ""
				r.Header.Set("Origin", other.URL)
			}
		}
		all.Go(func() {
			if response, _ := b.do("/admin/enter", url.Values{"token": {link}}, at); response.StatusCode == http.StatusSeeOther {
				in.Add(1)
			}
		})
	}
	all.Wait()
	if in.Load() != 1 {
		t.Errorf("%d came in", in.Load())
	}
}

// What another site has the browser ask for is not counted, so it holds up nobody.
func TestAnotherSiteHoldsUpNoLink(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "", local)
	for range 30 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.server.URL+"/admin/enter/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusNotFound {
			t.Fatalf("status %d, %v", answer.StatusCode, err)
		}
	}
	h.browser().sees(http.StatusNotFound, "This link no longer works", "/admin/enter", url.Values{"token": {"y"}})
}
