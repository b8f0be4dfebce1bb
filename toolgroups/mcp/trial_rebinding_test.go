package mcp_test

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"oneclaw/internal/emulator/dns"
	"oneclaw/toolgroups"
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
	srv.Config.SetKeepAlivesEnabled(false) // each request connects
	at, err := url.Parse(srv.URL)
	must(t, err)
	s.AllowPrivate = true
	outer := []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	for _, inner := range []string{"169.254.169.254", "0.0.0.0", "::", "fe80::1"} {
		names.SetAnswers("mcp.example", outer)
		s.URL = "http://" + net.JoinHostPort("mcp.example", at.Port()) + "/mcp"
		c := discovered(t, mcp.Config{Resolver: dns.Resolver(names.Addr()), RetryDelay: time.Hour, MaxRetryDelay: time.Hour}, s)
		call(t, c, "x_echo", nil)
		names.SetAnswers("mcp.example", []netip.Addr{netip.MustParseAddr(inner)})
		var fault *toolgroups.Error
		for tries := 0; fault == nil && tries < 10; tries++ { // over connections to where it was, which are used up
			_, fault = run(t, t.Context(), c, "x_echo", nil, t.TempDir())
		}
		if fault == nil || !strings.Contains(fault.Message, "internal or reserved") || !strings.Contains(fault.Message, "The call of 'echo' did not reach it.") {
			t.Errorf("%s: %+v", inner, fault)
		}
		must(t, c.Close())
	}
	// Without allow_private the loopback is no address for it either.
	s.AllowPrivate = false
	names.SetAnswers("mcp.example", outer)
	c := client(t, mcp.Config{Resolver: dns.Resolver(names.Addr()), Servers: map[string]mcp.Server{"x": s}})
	fails(t, c, "x_connect", mcp.CodeUnavailable, "internal or reserved")
}
