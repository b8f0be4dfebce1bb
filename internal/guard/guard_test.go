package guard_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"

	"oneclaw/internal/guard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loopback lets the clients of a test reach its servers.
func loopback() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} }

func get(t *testing.T, client *http.Client, address string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		return guard.Reason(err)
	}
	return res.Body.Close()
}

// inner are hosts that no one may reach through the bot.
func inner() []string {
	return []string{
		"127.0.0.1", "127.1.2.3", "[::1]", "0.0.0.0", "[::]", "10.0.0.1", "172.16.0.1", "192.168.1.1",
		"169.254.169.254", "100.64.0.1", "[fe80::1]", "[fc00::1]", "[fd00:ec2::254]", "[::ffff:127.0.0.1]",
		"[::ffff:169.254.169.254]", "[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::1]", "[2002:7f00:1::]",
		"[::127.0.0.1]", "224.0.0.1", "255.255.255.255", "[ff02::1]", "localhost", "168.63.129.16", "198.18.0.1", "192.0.0.192",
	}
}

func TestInnerAddressesAreRefused(t *testing.T) {
	client := guard.NewClient(guard.Config{})
	for _, host := range inner() {
		if err := get(t, client, "http://"+host+"/"); !errors.Is(err, guard.ErrAddress) {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestRedirectsToInnerAddressesAreRefused(t *testing.T) {
	var target atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target.Load().(string), http.StatusFound)
	}))
	defer server.Close()
	client := guard.NewClient(guard.Config{AllowPrivate: loopback()})
	for _, host := range inner() {
		if host == "127.0.0.1" || host == "localhost" || host == "[::ffff:127.0.0.1]" {
			continue // Allowed here, so that the server can be reached.
		}
		target.Store("http://" + host + "/")
		if err := get(t, client, server.URL); !errors.Is(err, guard.ErrAddress) {
			t.Errorf("redirect to %s: %v", host, err)
		}
	}
	for _, bad := range []string{"file:///etc/passwd", "gopher://127.0.0.1/", "http://user:secret@example.org/"} {
		target.Store(bad)
		err := get(t, client, server.URL)
		if !errors.Is(err, guard.ErrURL) || strings.Contains(err.Error(), "secret") {
			t.Errorf("redirect to %s: %v", bad, err)
		}
	}
	target.Store(server.URL)
	if err := get(t, client, server.URL); !errors.Is(err, guard.ErrRedirects) {
		t.Errorf("redirects without end: %v", err)
	}
}

// A name that resolves to an inner address is refused, also when it resolved to a
// public one a moment ago.
func TestRebindingIsRefused(t *testing.T) {
	names := newDNS(t, map[string][]string{
		"inner.example.":   {"127.0.0.1"},
		"several.example.": {"10.0.0.1", "169.254.169.254"},
	})
	client := guard.NewClient(guard.Config{Resolver: names.resolver()})
	for _, host := range []string{"inner.example", "several.example"} {
		if err := get(t, client, "http://"+host+":1/"); !errors.Is(err, guard.ErrAddress) {
			t.Errorf("%s: %v", host, err)
		}
	}
	// The same name is first allowed, then not.
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client = guard.NewClient(guard.Config{Resolver: names.resolver(), AllowPrivate: loopback()})
	address := "http://inner.example:" + port + "/"
	if err := get(t, client, address); err != nil {
		t.Fatalf("allowed address: %v", err)
	}
	names.set("inner.example.", "169.254.169.254")
	if err := get(t, client, address); !errors.Is(err, guard.ErrAddress) {
		t.Errorf("after rebinding: %v", err)
	}
	if err := get(t, client, "http://none.example/"); err == nil || !strings.Contains(err.Error(), `no host "none.example"`) {
		t.Errorf("unknown host: %v", err)
	}
}

// What a public page loads and sends reaches no private address, also one that pages may be opened at.
func TestAPublicPageReachesNoPrivateAddress(t *testing.T) {
	names := newDNS(t, map[string][]string{"public.example.": {"93.184.216.34"}, "inner.example.": {"127.0.0.1"}, "both.example.": {"93.184.216.34", "127.0.0.1"}})
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	cfg := guard.Config{Resolver: names.resolver(), AllowPrivate: loopback()}
	for host, want := range map[string]error{"public.example": guard.ErrAddress, "none.example": guard.ErrAddress, "both.example": guard.ErrAddress, "93.184.216.34": guard.ErrAddress, "inner.example": nil, "127.0.0.1": nil} {
		conn, err := guard.NewPageDialer(t.Context(), cfg, host).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err == nil {
			_ = conn.Close()
		} else {
			err = guard.Reason(err)
		}
		if !errors.Is(err, want) {
			t.Errorf("a page of %s: %v, want %v", host, err, want)
		}
	}
	// A private page comes from where its host was when it was opened.
	dialer := guard.NewPageDialer(t.Context(), cfg, "inner.example")
	names.set("inner.example.", "93.184.216.34")
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	conn, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort("inner.example", port))
	if err != nil {
		t.Fatalf("after rebinding: %v", err)
	}
	_ = conn.Close()
}

// A request that is limited to some hosts is led to no other, and a page reaches no other.
func TestALimitOfHostsHoldsForRedirectsAndPages(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
		}
	}))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	names := newDNS(t, map[string][]string{"named.example.": {"127.0.0.1"}, "other.example.": {"127.0.0.1"}})
	cfg := guard.Config{Resolver: names.resolver(), AllowPrivate: loopback()}
	client := guard.NewClient(cfg)
	limited := guard.WithHosts(t.Context(), func(host string) bool { return host == "named.example" })
	for host, want := range map[string]error{"named.example": nil, "other.example": guard.ErrHost} {
		at := net.JoinHostPort(host, port)
		req, err := http.NewRequestWithContext(limited, http.MethodGet, "http://"+net.JoinHostPort("named.example", port)+"/?to=http://"+at+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err == nil {
			_ = res.Body.Close()
		}
		if !errors.Is(err, want) {
			t.Errorf("a redirect to %s: %v, want %v", host, err, want)
		}
		conn, err := guard.NewPageDialer(limited, cfg, "named.example").DialContext(limited, "tcp", at)
		if err == nil {
			_ = conn.Close()
		}
		if !errors.Is(err, want) {
			t.Errorf("a page that asks %s: %v, want %v", host, err, want)
		}
	}
}

func TestSecretsStayWithTheirHost(t *testing.T) {
	var seen http.Header
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Clone() }))
	defer other.Close()
	first := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusFound))
	defer first.Close()
	client := guard.NewClient(guard.Config{AllowPrivate: loopback()})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, first.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "secret")
	req.Header.Set("Authorization", "secret")
	req.Header.Set("Accept", "text/plain")
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if seen.Get("X-Api-Key")+seen.Get("Authorization") != "" || seen.Get("Accept") != "text/plain" {
		t.Errorf("the other host saw %v", seen)
	}
}

func TestParseURL(t *testing.T) {
	for text, ok := range map[string]bool{
		"https://example.org/a?b=c": true, "http://example.org:8080": true, "HTTP://EXAMPLE.ORG": true,
		"": false, "example.org": false, "ftp://example.org": false, "file:///etc/passwd": false, "http://": false,
		"http:///path": false, "http://:80": false, "https://user:pw@example.org": false, "javascript:alert(1)": false,
		"http://a b/": false, "http://example.org/\x00": false, "http://" + strings.Repeat("a", 9000): false,
	} {
		_, err := guard.ParseURL(text)
		if (err == nil) != ok || err != nil && !errors.Is(err, guard.ErrURL) {
			t.Errorf("ParseURL(%.40q): %v", text, err)
		}
	}
}

func TestReasonHidesTheURL(t *testing.T) {
	err := &url.Error{Op: "Get", URL: "https://example.org/?key=secret", Err: errors.New("broken")}
	if got := guard.Reason(fmt.Errorf("x: %w", err)); strings.Contains(got.Error(), "secret") {
		t.Error(got)
	}
	timeout := &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
	if got := guard.Reason(timeout); !errors.Is(got, context.DeadlineExceeded) {
		t.Error(got)
	}
}

func FuzzParseURL(f *testing.F) {
	f.Add("https://example.org")
	f.Add("http://[::1%25eth0]:80/")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := guard.ParseURL(text)
		if err == nil && (u.Hostname() == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https") {
			t.Errorf("%q passed", text)
		}
	})
}

// dns is a name server for tests.
type dns struct {
	conn  net.PacketConn
	hosts chan map[string][]string // holds one map
}

func newDNS(t *testing.T, hosts map[string][]string) *dns {
	t.Helper()
	var lc net.ListenConfig
	conn, err := lc.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &dns{conn: conn, hosts: make(chan map[string][]string, 1)}
	d.hosts <- hosts
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.serve()
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return d
}

func (d *dns) set(name string, addrs ...string) {
	hosts := <-d.hosts
	hosts[name] = addrs
	d.hosts <- hosts
}

func (d *dns) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", d.conn.LocalAddr().String())
	}}
}

func (d *dns) serve() {
	buf := make([]byte, 1500)
	for {
		n, from, err := d.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if reply, err := d.answer(buf[:n]); err == nil {
			_, _ = d.conn.WriteTo(reply, from)
		}
	}
}

func (d *dns) answer(query []byte) ([]byte, error) {
	var msg dnsmessage.Message
	if err := msg.Unpack(query); err != nil {
		return nil, err
	}
	hosts := <-d.hosts
	defer func() { d.hosts <- hosts }()
	q := msg.Questions[0]
	addrs, known := hosts[q.Name.String()]
	msg.Response, msg.Additionals = true, nil
	if !known {
		msg.RCode = dnsmessage.RCodeNameError
	}
	for _, a := range addrs {
		if q.Type == dnsmessage.TypeA {
			msg.Answers = append(msg.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
				Body:   &dnsmessage.AResource{A: netip.MustParseAddr(a).As4()},
			})
		}
	}
	return msg.Pack()
}

// What somebody has approved for one host is not posted to another, whoever redirects there.
func TestWhatIsSentStaysWithItsHost(t *testing.T) {
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Method) }))
	defer other.Close()
	var status int
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, r.URL.Query().Get("to"), status)
		}
	}))
	defer first.Close()
	client := guard.NewClient(guard.Config{AllowPrivate: loopback()})
	send := func(method, to string) error {
		req, err := guard.NewRequest(t.Context(), method, first.URL+"/?to="+url.QueryEscape(to), "the minutes", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = guard.Fetch(client, req, guard.MaxReply)
		return err
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		status = http.StatusTemporaryRedirect
		if err := send(method, other.URL); !errors.Is(err, guard.ErrOtherHost) || len(got) > 0 {
			t.Errorf("%s: %v, and the other host got %v", method, err, got)
		}
		if err := send(method, first.URL+"/new"); err != nil {
			t.Errorf("%s to the same host: %v", method, err)
		}
	}
	status = http.StatusSeeOther
	if err := send(http.MethodPost, other.URL); err != nil || len(got) != 1 || got[0] != http.MethodGet {
		t.Errorf("to be read elsewhere: %v, %v", err, got)
	}
}
