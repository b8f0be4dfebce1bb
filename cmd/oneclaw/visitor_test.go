package main

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

var adminLinks = regexp.MustCompile(`(https?://[a-z0-9.]+(?::[0-9]+)?)/admin/enter/(oclink_\S+)`)

// balanced is where a browser is whose requests come through a load balancer.
const balanced = "203.0.113.7"

// visitor is a browser that is signed in to the pages of administrators.
type visitor struct {
	t testing.TB
	// at is where its requests go, and host the name that they are for.
	at, host string
	// link is what signed it in, and offer what was shown for it; cookie is what it has since.
	link, offer string
	cookie      *http.Cookie
	// token is what its forms carry.
	token string
}

// visit signs somebody in who asks for a link, at an address; empty for that of the link.
func (w *harness) visit(bot *process, who int64, at string) *visitor {
	w.t.Helper()
	link := adminLinks.FindStringSubmatch(w.ask(bot, who, "/admin", nil))
	if link == nil {
		w.t.Fatal("/admin has no link")
	}
	base, err := url.Parse(link[1])
	if err != nil {
		w.t.Fatal(err)
	}
	v := &visitor{t: w.t, at: link[1], host: base.Host}
	if at != "" {
		v.at = at
	}
	v.link = link[2]
	v.offer = v.see("/admin/enter/" + v.link)
	answer := v.ask(w.t.Context(), v.request(http.MethodPost, "/admin/enter", url.Values{"token": {v.link}}))
	if answer.status != http.StatusSeeOther || len(answer.cookies) != 1 {
		w.t.Fatalf("the link is answered with %+v", answer)
	}
	v.cookie = answer.cookies[0]
	token := formTokens.FindStringSubmatch(v.see("/admin/"))
	if token == nil {
		w.t.Fatal("the first page has no form")
	}
	v.token = token[1]
	return v
}

func (v *visitor) request(method, path string, form url.Values) *http.Request {
	r, err := http.NewRequest(method, v.at+path, strings.NewReader(form.Encode())) //nolint:noctx // ask has it
	if err != nil {
		v.t.Fatal(err)
	}
	if v.at != "http://"+v.host { // a load balancer stands before it
		r.Host = v.host
		r.Header.Set("X-Forwarded-For", balanced)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if v.cookie != nil {
		r.AddCookie(v.cookie)
	}
	return r
}

// reply is how a request was answered; the zero value is not at all.
type reply struct {
	status  int
	header  http.Header
	cookies []*http.Cookie
	body    string
}

func (v *visitor) ask(ctx context.Context, r *http.Request) reply {
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r.WithContext(ctx))
	if err != nil {
		return reply{}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{}
	}
	return reply{response.StatusCode, response.Header, response.Cookies(), string(body)}
}

// see returns a page, which has to be there.
func (v *visitor) see(path string) string {
	v.t.Helper()
	answer := v.ask(v.t.Context(), v.request(http.MethodGet, path, nil))
	if answer.status != http.StatusOK {
		v.t.Fatalf("%s: %d\n%.500s", path, answer.status, answer.body)
	}
	return answer.body
}

var formTokens = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// send sends a form.
func (v *visitor) send(path string, form url.Values) reply {
	form.Set("csrf", v.token)
	return v.ask(v.t.Context(), v.request(http.MethodPost, path, form))
}
