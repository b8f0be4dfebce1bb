package hooks_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"oneclaw/bridge"
	"oneclaw/internal/hooks"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
)

var (
	ann   = toolgroups.Scope{User: "fake:1", Role: toolgroups.RoleUser, Chat: "fake:1", Direct: true, Owner: "fake:1"}
	group = toolgroups.Scope{User: "fake:1", Role: toolgroups.RoleAdmin, Chat: "fake:-7:3", Owner: "fake:-7"}
)

// harness is some hooks with a clock and a place for what they submit, which knows the keys that
// it has seen.
type harness struct {
	*hooks.Hooks
	t     testing.TB
	store *bolt.Store
	cfg   hooks.Config

	mu     sync.Mutex
	now    time.Time
	tasks  []bridge.Submission
	refuse error
}

func newDoor(t testing.TB, change ...func(*hooks.Config)) *harness {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	d := &harness{t: t, store: store, now: time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)}
	d.cfg = hooks.Config{
		Store: store, SecretKey: []byte("a secret of enough bytes"), PublicURL: "https://bot.example/", Submit: d.submit,
		ForgetFiles: func(context.Context, string) error { return nil },
		Redact:      func(text string) string { return strings.ReplaceAll(text, "hunter2", "••••") },
		Now: func() time.Time {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.now
		},
	}
	for _, c := range change {
		c(&d.cfg)
	}
	if d.Hooks, err = hooks.New(d.cfg); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *harness) submit(_ context.Context, s bridge.Submission) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuse != nil {
		return d.refuse
	}
	for _, known := range d.tasks {
		if known.Key == s.Key {
			return nil
		}
	}
	d.tasks = append(d.tasks, s)
	return nil
}

func (d *harness) pass(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(by)
}

func (d *harness) refuses(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse = err
}

// taken returns what was submitted since the last time.
func (d *harness) taken() []bridge.Submission {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.tasks
	d.tasks = nil
	return all
}

// say gives the command and returns the answer.
func (d *harness) say(scope toolgroups.Scope, args string) string {
	d.t.Helper()
	text, err := d.Commands()[0].Run(context.Background(), bridge.CommandCall{Scope: scope, Args: args})
	if err != nil {
		d.t.Fatal(err)
	}
	return text
}

// ask makes a request and returns the status and the answer.
func (d *harness) ask(method, path, body string, header map[string]string) (int, string) {
	d.t.Helper()
	r := httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body))
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	d.Handler().ServeHTTP(w, r)
	text, err := io.ReadAll(w.Result().Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return w.Code, string(text)
}

// made is a hook with what its page has shown.
type made struct{ path, page, secret string }

var (
	pathOf   = regexp.MustCompile(`https://bot\.example(/hook/[a-z0-9]+)(/secret/[a-z0-9]+)`)
	secretOf = regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`)
)

// link makes a hook and returns its addresses.
func (d *harness) link(scope toolgroups.Scope, args string) made {
	d.t.Helper()
	told := d.say(scope, "new "+args)
	found := pathOf.FindStringSubmatch(told)
	if found == nil || strings.Contains(told, "whsec_") {
		d.t.Fatalf("/hook new says %q", told)
	}
	return made{path: found[1], page: found[1] + found[2]}
}

// hook makes a hook and looks at its secret.
func (d *harness) hook(scope toolgroups.Scope, args string) made {
	d.t.Helper()
	one := d.link(scope, args)
	status, page := d.ask(http.MethodPost, one.page, "", nil)
	if one.secret = secretOf.FindString(html.UnescapeString(page)); status != http.StatusOK || one.secret == "" {
		d.t.Fatalf("the page of the secret: %d, %s", status, page)
	}
	return one
}

// forms are the ways to show that one knows the secret, with a name for the delivery.
func forms(secret, name, body string, now time.Time) map[string]map[string]string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		panic(err)
	}
	at := fmt.Sprint(now.Unix())
	signed := "v1," + base64.StdEncoding.EncodeToString(sum(key, name+"."+at+"."+body))
	return map[string]map[string]string{
		"standard": {"Webhook-Id": name, "Webhook-Timestamp": at, "Webhook-Signature": "v1a,other v1,AAAA " + signed},
		"svix":     {"Svix-Id": name, "Svix-Timestamp": at, "Svix-Signature": signed},
		"github":   {"X-GitHub-Delivery": name, "X-Hub-Signature-256": "sha256=" + hex.EncodeToString(sum([]byte(secret), body)), "X-GitHub-Event": "push"},
		"bearer":   {"Idempotency-Key": name, "Authorization": "Bearer " + secret},
		"gitlab":   {"Idempotency-Key": name, "X-Gitlab-Event-UUID": "one for all that a request caused", "X-Gitlab-Token": secret},
	}
}

func sum(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, text) // never fails
	return mac.Sum(nil)
}

// post posts a body in one of the forms.
func (d *harness) post(one made, form, name, body string) (int, string) {
	d.t.Helper()
	return d.ask(http.MethodPost, one.path, body, forms(one.secret, name, body, d.cfg.Now())[form])
}
