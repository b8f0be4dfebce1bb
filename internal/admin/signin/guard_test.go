package signin_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"oneclaw/bridge"
	"oneclaw/internal/admin/signin"
	"oneclaw/toolgroups"
)

// What other pages, other hosts and damaged requests bring does nothing, and no page can be
// framed, kept or told to others.
func TestTheDoorIsGuarded(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "", local)
	ann := h.signedIn("telegram:1")
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	good := url.Values{"csrf": {ann.csrf}, "said": {"this"}}
	ann.sees(http.StatusOK, "said=this", "/admin/people", good)
	for name, c := range map[string]struct {
		status int
		path   string
		form   url.Values
		change func(*http.Request)
	}{
		"another origin":         {http.StatusForbidden, "/admin/people", good, header("Origin", "https://evil.example")},
		"no origin at all":       {http.StatusForbidden, "/admin/people", good, header("Origin", "null")},
		"another site":           {http.StatusForbidden, "/admin/people", good, header("Sec-Fetch-Site", "cross-site")},
		"a site beside":          {http.StatusForbidden, "/admin/people", good, header("Sec-Fetch-Site", "same-site")},
		"a link from elsewhere":  {http.StatusForbidden, "/admin/enter", url.Values{"token": {h.link("telegram:1")}}, header("Origin", "https://evil.example")},
		"no token":               {http.StatusForbidden, "/admin/people", url.Values{}, header("X", "")},
		"a wrong token":          {http.StatusForbidden, "/admin/people", url.Values{"csrf": {ann.csrf + "x"}}, header("X", "")},
		"a token in the address": {http.StatusForbidden, "/admin/people?csrf=" + ann.csrf, url.Values{}, header("X", "")},
		"a foreign host":         {http.StatusMisdirectedRequest, "/admin/", nil, host("evil.example")},
		"a host that looks so":   {http.StatusMisdirectedRequest, "/admin/", nil, host("127.0.0.1.evil.example")},
		"a proxy":                {http.StatusMisdirectedRequest, "/admin/", nil, header("X-Forwarded-For", "203.0.113.7")},
		"JSON":                   {http.StatusUnsupportedMediaType, "/admin/people", good, header("Content-Type", "application/json")},
		"another method":         {http.StatusMethodNotAllowed, "/admin/people", nil, func(r *http.Request) { r.Method = http.MethodDelete }},
		"too much":               {http.StatusRequestEntityTooLarge, "/admin/people", url.Values{"csrf": {ann.csrf}, "said": {strings.Repeat("x", signin.MaxForm)}}, header("X", "")},
		"no form":                {http.StatusBadRequest, "/admin/people", good, func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("a=%zz")); r.ContentLength = -1 }},
		"outside":                {http.StatusNotFound, "/admin/../healthz", nil, header("X", "")},
	} {
		response, page := ann.do(c.path, c.form, c.change)
		if response.StatusCode != c.status || strings.Contains(page, "inside") {
			t.Errorf("%s: %d %s", name, response.StatusCode, page)
		}
	}
	for _, response := range []*http.Response{ann.sees(http.StatusOK, "inside", "/admin/", nil), h.browser().sees(http.StatusUnauthorized, "", "/admin/x", nil)} {
		for name, part := range map[string]string{
			"Content-Security-Policy": "frame-ancestors 'none'", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "same-origin",
		} {
			if !strings.Contains(response.Header.Get(name), part) {
				t.Errorf("%s: %q", name, response.Header.Get(name))
			}
		}
		if csp := response.Header.Get("Content-Security-Policy"); strings.Contains(csp, "script-src") || strings.Contains(csp, "unsafe") || !strings.Contains(csp, "default-src 'none'") {
			t.Errorf("the policy is %q", csp)
		}
	}
}

// Beyond this machine the pages need an https address of their own; the cookie is bound to it.
func TestPagesNeedAnAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ publicURL, listen, told, host string }{
		{"", "127.0.0.1:8787", "http://127.0.0.1:8787/admin/enter/ONECLAW-VEIL", "localhost:9"},
		{"", "[::1]:8787", "http://[::1]:8787/admin/enter/", "[::1]:8787"},
		{"", "0.0.0.0:8787", "ONECLAW_PUBLIC_URL", ""},
		{"", "[::]:8787", "ONECLAW_PUBLIC_URL", ""},
		{"http://bot.example", "127.0.0.1:8787", "encrypted", ""},
		{"https://bot.example/path", "127.0.0.1:8787", "without a path", ""},
		{"https://u:p@bot.example", "127.0.0.1:8787", "do not understand", ""},
		{"https://Bot.example/", "0.0.0.0:8787", "https://bot.example/admin/enter/", "bot.example"},
		{"https://bot.example:443", "0.0.0.0:8787", "https://bot.example/admin/enter/", "bot.example"},
		{"https://bot.example:8443", "0.0.0.0:8787", "https://bot.example:8443/admin/enter/", "bot.example:8443"},
		{"http://localhost:80", "0.0.0.0:8787", "http://localhost:80/admin/enter/", "127.0.0.1"},
	} {
		h := newHouse(t, c.publicURL, c.listen)
		one := h.Commands()[0]
		call := bridge.CommandCall{Scope: toolgroups.Scope{User: "telegram:1", Direct: true, Role: toolgroups.RoleAdmin}}
		text, err := one.Run(t.Context(), call)
		if err != nil || !strings.Contains(text, c.told) {
			t.Errorf("%s, %s: %q, %v", c.publicURL, c.listen, text, err)
		}
		if c.host == "" {
			h.browser().sees(http.StatusNotFound, "", "/admin/", nil)
			continue
		}
		at := func(r *http.Request) {
			r.Host = c.host
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		}
		b := h.browser()
		b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		response := b.sees(http.StatusSeeOther, "", "/admin/enter", url.Values{"token": {h.link("telegram:1")}}, at)
		cookie, secure := response.Header.Get("Set-Cookie"), strings.HasPrefix(c.publicURL, "https")
		if !strings.Contains(cookie, "HttpOnly; ") || !strings.Contains(cookie, "SameSite=Strict") || strings.Contains(cookie, "Secure") != secure || strings.HasPrefix(cookie, "__Host-") != secure {
			t.Errorf("%s: the cookie is %s", c.publicURL, cookie)
		}
		call.Direct = false
		if text, err = one.Run(t.Context(), call); err != nil || strings.Contains(text, "/enter/") {
			t.Errorf("in a shared chat: %q, %v", text, err)
		}
	}
}
