package core_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/core"
)

func loopback() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} }

// site serves what a test needs.
func site(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func TestHTTPRequest(t *testing.T) {
	server := site(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/plain")
		switch r.URL.Path {
		case "/missing":
			http.NotFound(w, r)
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/moved":
			http.Redirect(w, r, "/echo", http.StatusFound)
		case "/large":
			_, _ = io.WriteString(w, strings.Repeat("x", 200<<10))
		case "/cp1251":
			w.Header().Set("Content-Type", "text/plain; charset=windows-1251")
			_, _ = w.Write([]byte{0xcf, 0xf0, 0xe8})
		case "/report":
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = io.WriteString(w, "%PDF-1.4\n1 0 obj\n")
		case "/archive":
			w.Header().Set("Content-Type", "application/zip")
			_, _ = io.WriteString(w, "PK")
		case "/tool":
			w.Header().Set("Content-Type", "application/x-sh")
			_, _ = io.WriteString(w, "BM=1")
		case "/picture":
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte{0x89, 'P', 'N', 'G'})
		default:
			_, _ = io.WriteString(w, r.Method+" "+r.Header.Get("Content-Type")+" "+r.Header.Get("X-Test")+" "+string(body))
		}
	})
	d := newDesk(t, core.Config{AllowPrivate: loopback()})
	for _, tc := range []struct {
		name string
		args args
		want string
	}{
		{"get", args{"url": server.URL + "/echo"}, "HTTP 200 OK\nContent-Type: text/plain\nContent-Length: 6\n\nGET   "},
		{
			"headers",
			args{"url": server.URL, "headers": args{"x-test": "yes"}},
			"HTTP 200 OK\nContent-Type: text/plain\nContent-Length: 9\n\nGET  yes ",
		},
		{
			"json",
			args{"url": server.URL, "method": "POST", "body": `{"a":1}`},
			"HTTP 200 OK\nContent-Type: text/plain\nContent-Length: 30\n\nPOST application/json  {\"a\":1}",
		},
		{
			"content type of the caller",
			args{
				"url": server.URL, "method": "PUT", "body": "a=1",
				"headers": args{"Content-Type": "application/x-www-form-urlencoded"},
			},
			"HTTP 200 OK\nContent-Type: text/plain\nContent-Length: 42\n\nPUT application/x-www-form-urlencoded  a=1",
		},
		{"delete", args{"url": server.URL, "method": "DELETE"}, "HTTP 200 OK\nContent-Type: text/plain\nContent-Length: 9\n\nDELETE   "},
		{"redirect", args{"url": server.URL + "/moved"}, "HTTP 200 OK\nContent-Type: text/plain\nContent-Length: 6\n\nGET   "},
		{
			"not found",
			args{"url": server.URL + "/missing"},
			"HTTP 404 Not Found\nContent-Type: text/plain; charset=utf-8\nContent-Length: 19\n\n404 page not found\n",
		},
		{"no body", args{"url": server.URL + "/empty"}, "HTTP 204 No Content\nContent-Type: text/plain\n\n"},
		{
			"charset",
			args{"url": server.URL + "/cp1251"},
			"HTTP 200 OK\nContent-Type: text/plain; charset=windows-1251\nContent-Length: 3\n\nПри",
		},
		{"binary", args{"url": server.URL + "/picture"}, "HTTP 200 OK\nContent-Type: image/png\nContent-Length: 4\n\n[4 bytes that are not text]"},
		{"pdf", args{"url": server.URL + "/report"}, "HTTP 200 OK\nContent-Type: application/octet-stream\nContent-Length: 17\n\n[17 bytes that are not text]"},
		{"archive", args{"url": server.URL + "/archive"}, "HTTP 200 OK\nContent-Type: application/zip\nContent-Length: 2\n\n[2 bytes that are not text]"},
		{"text that begins like a picture", args{"url": server.URL + "/tool"}, "HTTP 200 OK\nContent-Type: application/x-sh\nContent-Length: 4\n\nBM=1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := d.must(t, "http_request", tc.args); got != tc.want {
				t.Errorf("got\n%q\nwant\n%q", got, tc.want)
			}
		})
	}
	large := d.must(t, "http_request", args{"url": server.URL + "/large"})
	if len(large) > 30_000 || !strings.Contains(large, "only the first 102400 bytes") || !strings.Contains(large, "tool-output/http-") {
		t.Errorf("large body: %d characters, ends %q", len(large), large[len(large)-200:])
	}
}

func TestHTTPRequestErrors(t *testing.T) {
	d := newDesk(t, core.Config{})
	for _, tc := range []struct {
		args args
		code string
		text string
	}{
		{args{}, "validation_error", "'url'"},
		{args{"url": "http://example.org", "method": "PATCH"}, "validation_error", "'method'"},
		{args{"url": "http://example.org", "body": "x"}, "validation_error", "A GET request has no body"},
		{args{"url": "http://example.org", "method": "DELETE", "body": "x"}, "validation_error", "A DELETE request has no body"},
		{args{"url": "http://example.org", "headers": args{"Host": "inner"}}, "validation_error", "'Host' cannot be set"},
		{args{"url": "http://example.org", "headers": args{"a": strings.Repeat("x", 20_000)}}, "validation_error", "16384"},
		{args{"url": "example.org"}, "execution_error", "http://"},
		{args{"url": "file:///etc/passwd"}, "execution_error", "http://"},
		{args{"url": "http://u:p@example.org"}, "execution_error", "user name or password"},
		{args{"url": "http://127.0.0.1:1/?key=secret"}, "execution_error", "internal"},
	} {
		d.fails(t, "http_request", tc.args, tc.code, tc.text)
		if _, err := d.run(t, "http_request", tc.args); err != nil && strings.Contains(err.Message, "secret") {
			t.Errorf("the URL is repeated: %s", err.Message)
		}
	}
}

// Webfetch and http_request refuse internal addresses, also behind redirects.
func TestInternalAddressesAreRefused(t *testing.T) {
	d := newDesk(t, core.Config{})
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::1]", "0.0.0.0", "10.1.2.3", "192.168.0.1", "172.20.0.1", "169.254.169.254",
		"[fe80::1]", "[fd00:ec2::254]", "[::ffff:10.0.0.1]", "[64:ff9b::a00:1]", "100.100.100.200", "2130706433", "0x7f.1",
	} {
		for _, tool := range []string{"webfetch", "http_request"} {
			if res, err := d.run(t, tool, args{"url": "http://" + host + "/"}); err == nil {
				t.Errorf("%s reached %s: %q", tool, host, res.Text)
			}
		}
	}
	server := site(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
	})
	d = newDesk(t, core.Config{AllowPrivate: loopback()})
	d.fails(t, "http_request", args{"url": server.URL}, "execution_error", "internal")
	d.fails(t, "webfetch", args{"url": server.URL}, "network_error", "internal")
}

// A page is never read by a request that a server would take for another one.
func TestWebfetchOnlyReads(t *testing.T) {
	d := newDesk(t, core.Config{AllowPrivate: loopback()})
	server := site(t, func(http.ResponseWriter, *http.Request) { t.Error("the request was made") })
	d.fails(t, "webfetch", args{"url": server.URL + "/items/1?_method=DELETE"}, "invalid_url", "Use http_request")
}

// TestRequestsThatChangeAsk: a request that may change something at the other end asks, and
// so does one that cannot be read.
func TestRequestsThatChangeAsk(t *testing.T) {
	basics, err := core.New(core.Config{})
	if err != nil {
		t.Fatal(err)
	}
	request := basics[slices.IndexFunc(basics, func(b toolgroups.Tool) bool { return b.Name == "http_request" })]
	for arguments, want := range map[string]bool{
		`{"url":"x"}`:                      false,
		`{"method":"GET"}`:                 false,
		`{"method":"POST"}`:                true,
		`{"method":"DELETE"}`:              true,
		`{"Method":"PUT"}`:                 true,
		`{"method":["GET"]}`:               true,
		`"method"`:                         true,
		`{"method":"GET","METHOD":"POST"}`: true,

		`{"url":"https://x.org/a?page=2","headers":{"Accept":"application/json"}}`:              false,
		`{"url":"https://x.org/a?page=2","headers":{"Accept":"text/html, application/json"}}`:   true,
		`{"url":"https://x.org/a","headers":{"Accept":"text/html","accept":"text/csv"}}`:        true,
		`{"url":"https://x.org/a?page=2","headers":{"Accept":"text/html","Authorization":"x"}}`: true,
		`{"headers":{"Accept":"text/what-I-know"}}`:                                             true,
		`{"url":"https://x.org/a?method=flickr.photos.search"}`:                                 false,
		`{"headers":{"X-HTTP-Method-Override":"DELETE"}}`:                                       true,
		`{"headers":{"x-http-method":"PUT"},"method":"GET"}`:                                    true,
		`{"Headers":{"X-Method-Override":"PATCH"}}`:                                             true,
		`{"headers":{"X-METHOD":"PATCH"}}`:                                                      true,
		`{"headers":"X-HTTP-Method-Override: DELETE"}`:                                          true,
		`{"url":"https://x.org/a?b=1&_method=DELETE"}`:                                          true,
		`{"url":"https://x.org/a?%5FMethod=delete"}`:                                            true,
		`{"url":"https://x.org/a?b;_method=delete"}`:                                            true,
		`{"URL":"https://x.org/a?x-http-method-override=DELETE"}`:                               true,
		`{"url":"https://x.org/a?$httpMethod=DELETE"}`:                                          true,
		`{"url":["https://x.org"]}`:                                                             true,
	} {
		if got := request.NeedsApproval(toolgroups.Call{Arguments: json.RawMessage(arguments)}); got != want || request.Effect == toolgroups.ReadOnly {
			t.Errorf("%s: asks %t, want %t", arguments, got, want)
		}
	}
}

// What decides whether a request is asked about reads the headers that are sent, however many arguments a call has.
func TestHugeArgumentsKeepNoRepeatedHeaders(t *testing.T) {
	t.Parallel()
	basics, err := core.New(core.Config{})
	if err != nil {
		t.Fatal(err)
	}
	tool := basics[slices.IndexFunc(basics, func(b toolgroups.Tool) bool { return b.Name == "http_request" })]
	var b strings.Builder
	b.WriteString(`{"url":"https://example.com/","headers":{"X-Data":"my PIN is 4711"},"headers":{}`)
	for i := range 300_000 {
		fmt.Fprintf(&b, `,"%x":1`, i)
	}
	b.WriteString("}")
	got, fault := toolgroups.ValidateArguments(tool, json.RawMessage(b.String()))
	if fault != nil || string(got) != `{"headers":{},"url":"https://example.com/"}` {
		t.Errorf("%.100s, %v", got, fault)
	}
}
