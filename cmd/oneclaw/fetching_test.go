package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

// What was being fetched when the process was killed goes with the next start, and what another
// fetch is writing stays (B6).
func TestWhatAKilledProcessWasFetchingIsRemoved(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	behind, err := url.Parse(w.env["TELEGRAM_API_URL"])
	if err != nil {
		t.Fatal(err)
	}
	halves, rest := make(chan struct{}, 10), make(chan struct{})
	through := httputil.NewSingleHostReverseProxy(behind)
	proxy := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "/file/") {
			through.ServeHTTP(out, r)
			return
		}
		_, _ = io.WriteString(out, "half ")
		_ = http.NewResponseController(out).Flush()
		halves <- struct{}{}
		select {
		case <-rest:
			_, _ = io.WriteString(out, "and half")
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(proxy.Close)
	w.env["TELEGRAM_API_URL"] = proxy.URL
	ann, bob := w.person("Ann"), w.person("Bob")
	hidden := func() []string {
		found, err := filepath.Glob(filepath.Join(w.env["ONECLAW_DATA_DIR"], "workspaces", "*", "inbox", ".*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}

	bot := w.run()
	w.say(ann, "look", &telegram.Attachment{Name: "a.txt", Data: []byte("half and half")})
	<-halves
	bot.kill(syscall.SIGKILL)
	left := hidden()
	if len(left) != 1 {
		t.Fatalf("the killed process has left %q", left)
	}
	bot = w.run()
	w.say(bob, "look", &telegram.Attachment{Name: "b.txt", Data: []byte("half and half")})
	<-halves
	<-halves
	// Both are being fetched.
	if _, err := os.Stat(left[0]); err == nil || len(hidden()) != 2 {
		t.Errorf("beside what is being fetched there is %q", hidden())
	}
	close(rest)
	for _, who := range []int64{ann, bob} {
		w.until(bot, "an answer", func(s telegram.State) bool { return s.CountAnswers(who) > 0 })
	}
	if all := hidden(); len(all) > 0 {
		t.Errorf("left are %q", all)
	}
}
