package google

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"oneclaw/internal/emulator/google"
	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
)

// Only Google's word that the consent has ended signs out.
//
// A passing failure to refresh does not sign anybody out.
func TestTroubleWhileRefreshingSignsNobodyOut(t *testing.T) {
	broken := &breakable{base: &http.Transport{}}
	t.Cleanup(broken.base.CloseIdleConnections)
	r := newRig(t, Config{transport: broken})
	r.connect(t, ada, adaMail, "tasks")
	for name, trouble := range map[string]func(){
		"no network": func() { broken.down.Store(true) },
		"503":        func() { r.em.Inject(google.Fault{Method: "auth.token", Status: 503}) },
		"500":        func() { r.em.Inject(google.Fault{Method: "auth.token", Status: 500}) },
		"nonsense":   func() { r.em.Inject(google.Fault{Method: "auth.token", Status: 418}) },
	} {
		r.em.ExpireTokens()
		trouble()
		if fault := r.list(t, ada); fault == nil || fault.Code == service.CodeNotConnected {
			t.Errorf("%s: %+v", name, fault)
		}
		broken.down.Store(false)
		r.em.Reset()
		if fault := r.list(t, ada); fault != nil {
			t.Errorf("after %s: %+v", name, fault)
		}
	}
	r.em.RevokeConsent(adaMail)
	if fault := r.list(t, ada); codeOf(fault) != service.CodeNotConnected || !strings.Contains(fault.Message, "withdrawn") {
		t.Errorf("after the consent was withdrawn: %+v", fault)
	}
	if page := r.ask(t, ada, ""); !strings.Contains(page, url.QueryEscape(scopePrefix+"tasks")) {
		t.Errorf("the link forgot what was granted: %s", page)
	}
}

// breakable is a network that can go down.
type breakable struct {
	base *http.Transport
	down atomic.Bool
}

func (b *breakable) RoundTrip(req *http.Request) (*http.Response, error) {
	if b.down.Load() {
		return nil, io.ErrUnexpectedEOF
	}
	return b.base.RoundTrip(req)
}

// Many calls with an old token make one new one.
func TestRefreshIsShared(t *testing.T) {
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "tasks")
	r.em.ExpireTokens()
	before := r.em.IssuedTokens()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if fault := r.list(t, ada); fault != nil {
				t.Errorf("%+v", fault)
			}
		})
	}
	wg.Wait()
	if n := r.em.IssuedTokens() - before; n != 1 {
		t.Errorf("%d new tokens", n)
	}
}

// One user's token never serves another, in a shared chat or a scheduled task
// either.
func TestTokensStayWithTheirUser(t *testing.T) {
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "tasks")
	r.connect(t, grace, graceMail, "tasks")
	r.em.Reset()
	for user, account := range map[string]string{ada: adaMail, grace: graceMail} {
		for _, scope := range []toolgroups.Scope{
			{User: user, Owner: user, Direct: true},
			{User: user, Owner: "telegram:-100", Chat: "telegram:-100"},
			{User: user, Owner: "telegram:-100", Chat: "telegram:-100", Scheduled: true},
		} {
			if _, fault := toolgroups.Run(t.Context(), nil, r.tools["tasks_list_tasklists"], toolgroups.Call{Name: "tasks_list_tasklists", Scope: scope}); fault != nil {
				t.Errorf("%+v: %+v", scope, fault)
			}
			if seen := r.em.Requests(); seen[len(seen)-1].Account != account {
				t.Errorf("%+v was served by %s", scope, seen[len(seen)-1].Account)
			}
		}
	}
	for _, user := range []string{"", "telegram:3", "telegram:-100"} {
		_, fault := toolgroups.Run(t.Context(), nil, r.tools["tasks_list_tasklists"], toolgroups.Call{Scope: toolgroups.Scope{User: user, Owner: ada, Chat: "telegram:-100"}})
		if codeOf(fault) != service.CodeNotConnected {
			t.Errorf("user %q: %+v", user, fault)
		}
	}
}

// Tokens are unreadable in the store, and useless under another user's name.
func TestTokensAreEncrypted(t *testing.T) {
	kv := openKV(t)
	r := newRig(t, Config{KV: kv})
	r.connect(t, ada, adaMail, "tasks")
	r.ask(t, ada, "forms")
	var sealed []byte
	for entry, err := range kv.List(t.Context(), storage.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Key == accountPrefix+ada {
			sealed = entry.Value
		}
		for _, secret := range []string{"ya29", "1//", adaMail, "verifier"} {
			if strings.Contains(string(entry.Value), secret) {
				t.Errorf("%s shows %q", entry.Key, secret)
			}
		}
	}
	if _, err := kv.Put(t.Context(), accountPrefix+grace, sealed, storage.Any); err != nil {
		t.Fatal(err)
	}
	if fault := r.list(t, grace); codeOf(fault) != service.CodeNotConnected {
		t.Errorf("a copied token was used: %+v", fault)
	}
}

// Tokens never appear in logs or errors, whatever Google answers.
//
// Tokens appear in no log.
func TestTokensAreNotLogged(t *testing.T) {
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "tasks")
	a, _, err := r.g.load(t.Context(), ada)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, f := range []google.Fault{
		{Status: 403, Message: "token " + a.AccessToken + " is bad"}, {Status: 500, Message: a.RefreshToken}, {Method: "auth.token", Status: 400, Message: a.RefreshToken},
	} {
		r.em.Reset()
		r.em.ExpireTokens()
		r.em.Inject(f)
		fault := r.list(t, ada)
		if fault == nil {
			t.Errorf("%+v: no error", f)
			continue
		}
		said = append(said, fault.Message)
	}
	r.em.Reset()
	text, err := r.g.Disconnect(t.Context(), ada)
	if err != nil {
		t.Fatal(err)
	}
	all := r.logs.String() + strings.Join(said, "\n") + text
	for _, secret := range []string{a.AccessToken, a.RefreshToken, "top-secret", "ya29.", "4/0"} {
		if strings.Contains(all, secret) {
			t.Errorf("%q is shown in:\n%s", secret, all)
		}
	}
}

// shortLived is a sign-in whose tokens live for half a minute.
type shortLived struct{ base http.RoundTripper }

func (s shortLived) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := s.base.RoundTrip(req)
	if err != nil || !strings.HasSuffix(req.URL.Path, "/token") {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	said := strings.Replace(string(body), `"expires_in":3600`, `"expires_in":30`, 1)
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(said)), int64(len(said))
	return resp, nil
}

// Tokens that live shorter than a minute are used for half of that, not renewed for each call.
func TestShortLivedTokensAreUsedMoreThanOnce(t *testing.T) {
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	r := newRig(t, Config{transport: shortLived{base}})
	r.connect(t, ada, adaMail, "tasks")
	r.em.ExpireTokens()
	before := r.em.IssuedTokens()
	for range 5 {
		if fault := r.list(t, ada); fault != nil {
			t.Fatalf("%+v", fault)
		}
	}
	if n := r.em.IssuedTokens() - before; n != 1 {
		t.Errorf("%d new tokens for five calls", n)
	}
}
