package app

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneclaw/bridge"
	"oneclaw/internal/admin/signin"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/doctor"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
)

// A page that is open while the bot starts asks before it is known who was made an administrator in a chat:
// it waits, and its administrator stays signed in.
func TestARestartSignsNobodyOut(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	quiet := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-ctx.Done():
		}
	}))
	defer quiet.Close()
	cfg, log := config.Default(), slog.New(slog.NewTextHandler(t.Output(), nil))
	cfg.DataDir, cfg.Telegram.Token, cfg.Telegram.APIURL = t.TempDir(), "1:x", quiet.URL
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(cfg.DataDir, database.Name), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	const ann = "telegram:1"
	if _, err := store.Put(ctx, "access/"+ann, []byte(`{"user":"`+ann+`","standing":"admin"}`), storage.Absent); err != nil {
		t.Fatal(err)
	}
	before, err := signin.New(signin.Config{Now: time.Now, Store: store, Listen: cfg.Listen, IsAdmin: func(string) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	ticket, err := before.Commands()[0].Secret(ctx, bridge.CommandCall{Scope: toolgroups.Scope{User: ann}})
	if err != nil {
		t.Fatal(err)
	}
	form := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://"+cfg.Listen+"/admin/enter", strings.NewReader(url.Values{"token": {ticket}}.Encode()))
	form.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	before.Handler(http.NotFoundHandler()).ServeHTTP(w, form)
	cookies := w.Result().Cookies()
	if len(cookies) != 1 {
		t.Fatalf("the link is answered with %d, %s", w.Code, w.Body)
	}

	b, err := New(ctx, cfg, &database.Store{Store: store}, log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	look := func(ctx context.Context) int {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://"+cfg.Listen+"/admin/", nil)
		r.AddCookie(cookies[0])
		w := httptest.NewRecorder()
		b.Handler().ServeHTTP(w, r)
		return w.Code
	}
	early, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if status := look(early); status != http.StatusServiceUnavailable {
		t.Errorf("before the start: %d", status)
	}
	running := make(chan error, 1)
	go func() { running <- b.bridge.Run(ctx) }()
	if status := look(ctx); status != http.StatusOK {
		t.Errorf("after the start: %d", status)
	}
	end()
	if err := <-running; err != nil {
		t.Error(err)
	}
}

// The time of a page bounds the checks that it makes; a part of them is not shown as if it were all.
func TestChecksThatWereNotMadeAreNamed(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	found := runChecks(ctx, cfg)
	if len(found) == 0 {
		t.Fatal("nothing is found")
	}
	if last := found[len(found)-1]; last.Status != doctor.VerdictFail || !strings.Contains(last.Text, "oneclaw doctor") {
		t.Errorf("the last finding is %+v", last)
	}
}

// newTestBot returns a bot that does not run yet, with a database in its data directory. Both are closed when the
// test ends.
func newTestBot(t *testing.T, cfg config.Config) *Bot {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(cfg.DataDir, database.Name), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	b, err := New(t.Context(), cfg, &database.Store{Store: store}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func TestABotThatRunsDeletesWhatARestoreLeft(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	b := newTestBot(t, cfg)
	left, then := filepath.Join(cfg.DataDir, ".restore-1"), time.Now().Add(-2*time.Hour)
	if err := errors.Join(os.WriteFile(left, nil, 0o600), os.Chtimes(left, then, then)); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := b.Run(ended); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the copy is there (%v)", err)
	}
}
