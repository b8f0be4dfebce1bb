package slack

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
)

func TestFetch(t *testing.T) {
	f := start(t, quick(), nil)
	f.say(f.dm, "look", &emulator.SayOptions{Files: []emulator.Attachment{
		{Name: "a.txt", MIME: "text/plain", Data: []byte("content")},
		{Name: "shared.txt", MIME: "text/plain", Data: []byte("shared"), NeedsLookup: true},
		{Name: "page.html", MIME: "text/html", Data: []byte("<p>page</p>")},
	}})
	files := f.in.wait(t, 1)[0].Files
	if len(files) != 3 {
		t.Fatalf("got %+v", files)
	}
	for i, want := range []string{"content", "shared", "<p>page</p>"} {
		var got bytes.Buffer
		if err := f.p.FetchFile(t.Context(), files[i], &got); err != nil || got.String() != want {
			t.Errorf("%s: %q, %v", files[i].Name, got.String(), err)
		}
	}
	f.inject(emulator.Fault{Method: "file", Times: 1, Effect: emulator.CutAfter})
	if err := f.p.FetchFile(t.Context(), files[0], io.Discard); err == nil {
		t.Error("half a file is no file")
	}
	f.SetScopes("chat:write")
	err := f.p.FetchFile(t.Context(), files[0], io.Discard)
	if err == nil || !strings.Contains(err.Error(), "sign-in page") {
		t.Errorf("without the scope: %v", err)
	}
	if err := f.p.FetchFile(t.Context(), chats.Attachment{Ref: files[0].Ref, Size: chats.MaxFile + 1}, io.Discard); !errors.Is(err, chats.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

// TestFilesOfSharedChannelsAreLookedUp has Slack tell no more than the ids of files, as in
// channels that are shared with other workspaces.
func TestFilesOfSharedChannelsAreLookedUp(t *testing.T) {
	f := start(t, quick(), nil)
	sent := []emulator.Attachment{
		{Name: "report.pdf", MIME: "application/pdf", Data: []byte("%PDF-"), NeedsLookup: true},
		{Name: "note.m4a", MIME: "audio/mp4", Data: []byte("sound"), ClipSeconds: 3, NeedsLookup: true},
		{Name: "huge.bin", MIME: "application/octet-stream", Data: []byte("x"), Size: chats.MaxFile + 1, NeedsLookup: true},
	}
	f.say(f.dm, "look", &emulator.SayOptions{Files: sent})
	m := f.in.wait(t, 1)[0]
	if len(m.Files) != 2 || m.Files[0].Name != "report.pdf" || m.Files[0].Type != "application/pdf" || m.Files[0].Size != 5 {
		t.Fatalf("files: %+v", m.Files)
	}
	if got := m.Files[1]; got.Name != "note.m4a" || got.Sound.Kind == "" || got.Sound.Length != 3*time.Second {
		t.Errorf("a clip: %+v", got)
	}
	if len(m.Skipped) != 1 || !strings.HasPrefix(m.Skipped[0], "huge.bin") {
		t.Errorf("skipped: %q", m.Skipped)
	}
	// Where Slack does not tell now, the file is fetched all the same.
	f.inject(emulator.Fault{Method: "files.info", Times: 1, Effect: emulator.Refuse, Error: "internal_error"})
	f.say(f.dm, "again", &emulator.SayOptions{Files: sent[:1]})
	var got bytes.Buffer
	if err := f.p.FetchFile(t.Context(), f.in.wait(t, 2)[1].Files[0], &got); err != nil || got.String() != "%PDF-" {
		t.Errorf("fetched %q, %v", got.String(), err)
	}
}

func TestTheTokenGoesNowhereElse(t *testing.T) {
	var seen []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, elsewhere.URL+"/x", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/login":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
		default:
			_, _ = io.WriteString(w, "ok")
		}
	}))
	defer home.Close()
	p, err := newPlatform(config{Settings: Settings{BotToken: "xoxb-1-secret", AppToken: "xapp-1", APIURL: home.URL}, httpClient: home.Client()})
	if err != nil {
		t.Fatal(err)
	}
	for address, ok := range map[string]bool{
		home.URL + "/file": true, home.URL + "/away": false, home.URL + "/round": false, home.URL + "/login": false,
		elsewhere.URL + "/file": false, "": false, "http://slack.com/x": false, "file:///etc/passwd": false,
	} {
		if err := p.FetchFile(t.Context(), chats.Attachment{Ref: address}, io.Discard); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
	if len(seen) != 0 {
		t.Errorf("somebody else saw %q", seen)
	}
	for address, ok := range map[string]bool{
		"https://files.slack.com/x": true, "https://slack.com/x": true, "https://a.slack-gov.com/x": true,
		"https://slack.com.evil.test/x": false, "https://evilslack.com/x": false, "http://files.slack.com/x": false,
		"https://slack.com@evil.test/x": false, "https://user@slack.com/x": false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.api.mayHaveToken(u); got != ok {
			t.Errorf("%s: %t", address, got)
		}
	}
}
