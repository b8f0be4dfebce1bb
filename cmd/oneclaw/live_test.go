package main

import (
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/internal/emulator/wire"
)

// proxy takes connections to hosts that nobody else finds, and counts them.
type proxy struct {
	*httptest.Server
	routes map[string]string // from host:port to an address

	mu   sync.Mutex
	used map[string]int
}

func newProxy(t *testing.T, routes map[string]string) *proxy {
	p := &proxy{routes: routes, used: map[string]int{}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// ServeHTTP connects both ends until one of them closes.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	address, known := p.routes[r.Host]
	if r.Method != http.MethodConnect || !known {
		http.Error(w, "not here", http.StatusForbidden)
		return
	}
	p.mu.Lock()
	p.used[r.Host]++
	p.mu.Unlock()
	there, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", address)
	if err != nil {
		http.Error(w, "not there", http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusOK)
	here, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = there.Close()
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{here, there}, {there, here}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = way[0].Close() // which ends the other way too
		})
	}
	both.Wait()
}

// Both platforms are reached through a proxy, with a certificate of one's own, and calls
// and sockets take the same way.
func TestThroughAProxyWithACertificateOfOnesOwn(t *testing.T) {
	t.Parallel()
	config, root, err := wire.NewCertificate("telegram.test", "slack.test")
	if err != nil {
		t.Fatal(err)
	}
	w := newHarness(t, openai.Offline{})
	tg, err := telegram.New(telegram.Config{TLS: config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tg.Close() })
	tgURL, err := tg.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	workspace, err := slack.New(slack.Config{TLS: config, PublicURL: "https://slack.test", Delivery: slack.Delivery{AckTimeout: patience}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = workspace.Close() })
	slackURL, err := workspace.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	install(t, workspace)
	between := newProxy(t, map[string]string{
		"telegram.test:443": strings.TrimPrefix(tgURL, "https://"),
		"slack.test:443":    strings.TrimSuffix(strings.TrimPrefix(slackURL, "https://"), "/api/"),
	})
	trusted := filepath.Join(t.TempDir(), "root.pem")
	if err := os.WriteFile(trusted, root, 0o600); err != nil {
		t.Fatal(err)
	}
	maps.Copy(w.env, map[string]string{
		"TELEGRAM_API_URL": "https://telegram.test", "TELEGRAM_BOT_TOKEN": tg.Token(),
		"SLACK_API_URL": "https://slack.test/api/", "SLACK_BOT_TOKEN": workspace.BotToken(), "SLACK_APP_TOKEN": workspace.AppToken(),
		"ONECLAW_ALLOW": "*", "HTTPS_PROXY": between.URL, "SSL_CERT_FILE": trusted,
	})
	w.telegram = tg
	ann := w.person("Ann")
	bob := workspace.AddUser(slack.User{Name: "bob"}).ID
	dm, err := workspace.AddChannel(slack.ChannelSpec{Kind: slack.DM, Members: []string{bob}})
	if err != nil {
		t.Fatal(err)
	}
	bot := w.run()
	if answer := w.ask(bot, ann, "hello", nil); answer == "" {
		t.Error("nothing is answered on Telegram")
	}
	said := sayTo(t, workspace, dm, bob, "hello", "")
	waitSlack(t, workspace, "answer in the thread", func(s slack.State) bool { return len(s.Thread(dm, said.TS)) == 2 })
	between.mu.Lock()
	defer between.mu.Unlock()
	if between.used["telegram.test:443"] == 0 || between.used["slack.test:443"] < 2 {
		t.Errorf("through the proxy went %v", between.used)
	}
}
