package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"oneclaw/bridge/platformtest"
	"oneclaw/internal/emulator/dns"
	"oneclaw/internal/emulator/openai"
)

// twoSites are a public site and an inner one on the same port, which have one name.
type twoSites struct {
	port  string
	inner atomic.Int64 // connections to the inner one
}

// newTwoSites serves the site where it may be reached, which redirects from /again to
// its own name, and another where it may not.
func newTwoSites(t *testing.T) *twoSites {
	t.Helper()
	s := &twoSites{}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // every request asks for the name anew
		switch r.URL.Path {
		case "/again":
			http.Redirect(w, r, "http://"+r.Host+"/", http.StatusFound)
		case "/page":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, `<body><p>public page</p><script>
				fetch("/").then(r => r.text()).then(t => document.body.append(t), () => document.body.append("not reached"))</script>`)
		default:
			_, _ = io.WriteString(w, "<p>public page</p>")
		}
	}))
	t.Cleanup(site.Close)
	_, port, err := net.SplitHostPort(site.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s.port = port
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Skipf("127.0.0.2 cannot be listened on: %v", err)
	}
	inner := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "INNER SECRET")
	}))
	_ = inner.Listener.Close()
	inner.Listener = l
	inner.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.inner.Add(1)
		}
	}
	inner.Start()
	t.Cleanup(inner.Close)
	return s
}

// calling is a model that makes the call that it is told, and tells what came of it.
func calling(_ context.Context, req openai.Request) (openai.Reply, error) {
	last := req.Messages[len(req.Messages)-1]
	if name, arguments, ok := strings.Cut(last.Content, " "); last.Role == "user" && ok {
		return openai.Reply{Calls: []openai.ToolCall{{ID: fmt.Sprint("call_", len(req.Messages)), Name: name, Arguments: arguments}}}, nil
	}
	return openai.Reply{Text: "Then: " + last.Content}, nil
}

// TestTrialRebindingReachesNothingInside lets the real program ask a name server that
// answers with a site that may be reached, and at the next question with one that may
// not: between two calls, between a page and its redirect or its script, and with both
// addresses in one answer.
func TestTrialRebindingReachesNothingInside(t *testing.T) {
	platformtest.OnlyNightly(t)
	t.Parallel()
	names, err := dns.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = names.Close() })
	sites := newTwoSites(t)
	w := newHarness(t, openai.ResponderFunc(calling))
	// The site stands for a public one.
	w.env["ONECLAW_TOOLS_ALLOW_PRIVATE"], w.env[namesVariable] = "127.0.0.1/32", names.Addr()
	ann := w.person("Ann")
	bot := w.run()
	outer, inner := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	answers := map[string][][]netip.Addr{
		"later":    {{outer}, {inner}},
		"mapped":   {{outer}, {netip.MustParseAddr("::ffff:127.0.0.2")}},
		"six":      {{outer}, {netip.MustParseAddr("::1"), inner}},
		"nowhere":  {{outer}, {netip.MustParseAddr("0.0.0.0")}},
		"metadata": {{outer}, {netip.MustParseAddr("169.254.169.254")}},
	}
	tools := map[string]func(url string) any{
		"http_request": func(url string) any { return map[string]any{"url": url} },
		"webfetch":     func(url string) any { return map[string]any{"url": url} },
		"js_eval": func(url string) any {
			return map[string]any{"code": fmt.Sprintf(`await fetch(%q).then(r => r.text(), e => "refused: " + e)`, url)}
		},
	}
	if _, err := exec.LookPath("chromium"); err == nil {
		tools["browser"] = func(url string) any { return map[string]any{"url": url, "mode": "extract", "wait_seconds": 1} }
	}
	for tool, arguments := range tools {
		ask := func(url string) string {
			t.Helper()
			data, err := json.Marshal(arguments(url))
			if err != nil {
				t.Fatal(err)
			}
			return w.ask(bot, ann, tool+" "+string(data), nil)
		}
		for how, turns := range answers {
			host := strings.ReplaceAll(tool, "_", "-") + "." + how + ".example"
			address := "http://" + net.JoinHostPort(host, sites.port)
			names.SetAnswers(host, turns...)
			if got := ask(address + "/"); !strings.Contains(got, "public page") {
				t.Errorf("%s %s: the public site gave %q", tool, how, got)
			}
			for _, path := range []string{"/", "/again", "/page"} {
				if path != "/" {
					names.SetAnswers(host, turns...) // the redirect and the script ask again
				}
				if got := ask(address + path); strings.Contains(got, "INNER SECRET") || path == "/" && !strings.Contains(got, "internal or reserved") {
					t.Errorf("%s %s: %s gave %q", tool, how, path, got)
				}
			}
		}
		host := strings.ReplaceAll(tool, "_", "-") + ".both.example"
		names.SetAnswers(host, []netip.Addr{inner, outer})
		if got := ask("http://" + net.JoinHostPort(host, sites.port) + "/"); strings.Contains(got, "INNER SECRET") {
			t.Errorf("%s: of both addresses it took the inner one", tool)
		}
		if names.QueryCount(host) == 0 {
			t.Errorf("%s does not ask the name server of this test", tool)
		}
	}
	if n := sites.inner.Load(); n > 0 {
		t.Errorf("the inner site was reached %d times", n)
	}
}
