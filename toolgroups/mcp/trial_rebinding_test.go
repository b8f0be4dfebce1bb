package mcp_test

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"oneclaw/internal/emulator/dns"
	"oneclaw/toolgroups/mcp"
)

// TestTrialRebindingOfAServer gives the name of a server another address once its tools
// are known: one that no server may have. Nothing is connected to.
func TestTrialRebindingOfAServer(t *testing.T) {
	names, err := dns.Start(t.Context())
	must(t, err)
	t.Cleanup(func() { must(t, names.Close()) })
	srv, s := served(t, newFake(), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Host = "localhost" // the library's servers on the loopback want that
			next.ServeHTTP(w, r)
		})
	}, nil)
	at, err := url.Parse(srv.URL)
	must(t, err)
	s.AllowPrivate = true
	outer := []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	for _, inner := range []string{"169.254.169.254", "0.0.0.0", "::", "fe80::1"} {
		names.Set("mcp.example", outer)
		s.URL = "http://" + net.JoinHostPort("mcp.example", at.Port()) + "/mcp"
		var now clock
		c := discovered(t, mcp.Config{Resolver: dns.Resolver(names.Addr()), Retry: time.Minute, MaxRetry: time.Minute, Now: now.now}, s)
		call(t, c, "x_echo", nil)
		names.Set("mcp.example", []netip.Addr{netip.MustParseAddr(inner)})
		srv.CloseClientConnections() // those that were made before are to where they were
		for tries := 0; names.Asked("mcp.example") == 0 && tries < 10; tries++ {
			if res, fault := run(t, t.Context(), c, "x_echo", nil, t.TempDir()); fault == nil {
				t.Errorf("%s: the call gave %q", inner, res.Text)
			}
			now.pass(time.Minute) // for which it is left alone
		}
		if names.Asked("mcp.example") == 0 {
			t.Errorf("%s: the name was not asked for again", inner)
		}
		must(t, c.Close())
	}
	// Without allow_private the loopback is no address for it either.
	s.AllowPrivate = false
	names.Set("mcp.example", outer)
	c := client(t, mcp.Config{Resolver: dns.Resolver(names.Addr()), Servers: map[string]mcp.Server{"x": s}})
	fails(t, c, "x_connect", mcp.CodeUnavailable, "internal or reserved")
}
