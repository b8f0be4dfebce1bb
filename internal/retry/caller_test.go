package retry_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"oneclaw/internal/retry"
)

const secret = "s3cret"

func masked(text string) string { return strings.ReplaceAll(text, secret, "<token>") }

// serve answers with a body, and says how long it is where told is true. /moved leads away.
func serve(t *testing.T, body string, told bool) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		}
		if !told {
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, c *retry.Caller, address string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func TestSaveTakesNoMoreThanAsked(t *testing.T) {
	tooLong := errors.New("too long")
	for name, tt := range map[string]struct {
		body string
		told bool
		want error
	}{
		"nothing":               {"", true, nil},
		"as much as asked":      {"12345", true, nil},
		"the same, untold":      {"12345", false, nil},
		"too much":              {"123456", true, tooLong},
		"too much, and untold":  {"123456", false, tooLong},
		"far too much, untold":  {strings.Repeat("x", 1<<20), false, tooLong},
		"far too much and told": {strings.Repeat("x", 1<<20), true, tooLong},
	} {
		t.Run(name, func(t *testing.T) {
			c := retry.NewCaller(nil, masked)
			defer c.Close()
			var to strings.Builder
			err := c.CopyBody(&to, get(t, c, serve(t, tt.body, tt.told).URL), 5, tooLong) //nolint:bodyclose // get has it closed
			if !errors.Is(err, tt.want) || err == nil && to.String() != tt.body || to.Len() > 5 {
				t.Errorf("%v, %d bytes", err, to.Len())
			}
		})
	}
}

// What breaks off is no whole file, and the error tells no secret.
func TestSaveTellsOfWhatBreaksOff(t *testing.T) {
	c := retry.NewCaller(nil, masked)
	broken := &http.Response{ContentLength: -1, Body: io.NopCloser(io.MultiReader(strings.NewReader("12"), failing{}))}
	err := c.CopyBody(io.Discard, broken, 5, errors.New("too long"))
	if err == nil || err.Error() != "after 2 bytes: reset by <token>" {
		t.Errorf("got %v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("reset by " + secret) }

func TestCleanErrorsTellNoSecret(t *testing.T) {
	within := errors.New("dial " + secret)
	for name, tt := range map[string]struct {
		err  error
		want string
		same bool // what it wraps is still found
	}{
		"an address":          {&url.Error{Op: "Get", URL: "https://x/" + secret, Err: io.ErrUnexpectedEOF}, "unexpected EOF", true},
		"a secret":            {within, "dial <token>", false},
		"a secret underneath": {&hiding{within}, "hidden", false},
		"an address and one":  {&url.Error{Op: "Get", URL: "https://x/", Err: within}, "dial <token>", false},
		"neither":             {io.ErrUnexpectedEOF, "unexpected EOF", true},
	} {
		got := retry.NewCaller(nil, masked).CleanError(tt.err)
		if got.Error() != tt.want || errors.Is(got, io.ErrUnexpectedEOF) != tt.same || errors.Is(got, within) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// hiding wraps an error without its text.
type hiding struct{ error }

func (*hiding) Error() string { return "hidden" }

func (h *hiding) Unwrap() error { return h.error }

func TestRedirectsAreNotFollowed(t *testing.T) {
	s := serve(t, "", true)
	for name, given := range map[string]*http.Client{"its own client": nil, "a client given": s.Client()} {
		c := retry.NewCaller(given, masked)
		if resp := get(t, c, s.URL+"/moved"); resp.StatusCode != http.StatusFound { //nolint:bodyclose // get has it closed
			t.Errorf("%s: %s", name, resp.Status)
		}
		c.Close()
	}
}

// Renew takes new connections, and leaves those of a client that was given alone.
func TestRenewTakesNewConnections(t *testing.T) {
	for name, tt := range map[string]struct {
		given *http.Client
		want  int
	}{
		"its own client": {nil, 2},
		"a client given": {&http.Client{Transport: &http.Transport{}}, 1},
	} {
		from := map[string]bool{}
		s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { from[r.RemoteAddr] = true }))
		c := retry.NewCaller(tt.given, masked)
		for range 2 {
			resp := get(t, c, s.URL) //nolint:bodyclose // get has it closed
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Fatal(err)
			}
			c.RenewConnections()
		}
		if s.Close(); len(from) != tt.want {
			t.Errorf("%s: %d connections", name, len(from))
		}
		c.Close()
	}
}

func TestBoundedEndsABody(t *testing.T) {
	body := retry.LimitBody(io.NopCloser(strings.NewReader("123456")), 4)
	got, err := io.ReadAll(body)
	if string(got) != "1234" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := body.Close(); err != nil {
		t.Error(err)
	}
}

// tap counts the transports that it was given, and requests.
type tap struct {
	transports, requests int
}

func (p *tap) transport(next http.RoundTripper) http.RoundTripper {
	p.transports++
	return through(func(req *http.Request) (*http.Response, error) {
		p.requests++
		return next.RoundTrip(req)
	})
}

type through func(*http.Request) (*http.Response, error)

func (f through) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// A tap sees requests on new connections, too.
func TestATapSeesEverything(t *testing.T) {
	s, p := serve(t, "", true), &tap{}
	c := retry.NewCaller(nil, masked)
	c.SetTap(p.transport)
	get(t, c, s.URL) //nolint:bodyclose // get has it closed
	c.RenewConnections()
	get(t, c, s.URL) //nolint:bodyclose // get has it closed
	if p.transports != 2 || p.requests != 2 {
		t.Errorf("%+v", p)
	}
}
