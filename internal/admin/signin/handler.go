package signin

import (
	"context"
	"crypto/subtle"
	"errors"
	"mime"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"oneclaw/internal/cache"
)

const (
	enterPath = "/admin/enter"
	leavePath = "/admin/leave"
	stylePath = "/admin/enter.css"
)

// policy is what browsers may do with the pages: run and show what comes from here, in no
// frame, and send forms to here.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Handler serves all addresses that begin with [Path], and /admin itself. It lets requests of
// administrators who are signed in through to inside, with their [Session] in the context.
//
// What comes through is a GET or a HEAD, or a POST of a form of at most [MaxForm] bytes, which
// is parsed, from a page of ours, with the token of the session in its field "csrf". All
// answers bear the headers of the door; inside may replace Cache-Control.
func (d *SignIn) Handler(inside http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+enterPath+"/{token}", d.offer)
	mux.HandleFunc("POST "+enterPath, d.enter)
	mux.HandleFunc("POST "+leavePath, d.out)
	mux.HandleFunc("GET "+stylePath, showStyle)
	mux.HandleFunc("GET /admin", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, Path, http.StatusSeeOther) })
	mux.Handle(Path, d.within(inside))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			// Not no-referrer, with which browsers leave out where a form comes from.
			"Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			header.Set(name, value)
		}
		switch {
		case d.site.closed != "":
			http.NotFound(w, r)
		case !d.site.knows(r):
			d.show(w, http.StatusMisdirectedRequest, view{Title: "Not here", Text: "These pages are at another address."})
		case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
			w.Header().Set("Allow", "GET, HEAD, POST")
			d.show(w, http.StatusMethodNotAllowed, view{Title: "Request not accepted"})
		case d.cross.Check(r) != nil:
			d.show(w, http.StatusForbidden, view{Title: "Request from another page", Text: "This came from a page that is not mine, so I did nothing."})
		default:
			if d.form(w, r) {
				mux.ServeHTTP(w, r)
			}
		}
	})
}

// form reads the form of a POST, which has to be one, and bounded.
func (d *SignIn) form(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPost {
		return true
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		d.show(w, http.StatusUnsupportedMediaType, view{Title: "Request not accepted", Text: "I only accept forms of my own pages."})
		return false
	}
	r.Body = http.MaxBytesReader(w, r.Body, MaxForm)
	err = r.ParseForm()
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		d.show(w, http.StatusRequestEntityTooLarge, view{Title: "Too much", Text: "That form is too large."})
	case err != nil:
		d.show(w, http.StatusBadRequest, view{Title: "Request not accepted", Text: "I could not read that form."})
	}
	return err == nil
}

// within lets those through who are signed in.
func (d *SignIn) within(inside http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := d.of(r)
		switch {
		case errors.Is(err, errNo):
			d.show(w, http.StatusUnauthorized, view{Title: "Sign in", Text: "Send /admin to the bot in a direct chat. It gives you a link to these pages. (Slack: !admin.)"})
		case err != nil:
			d.fail(w, err)
		case r.Method == http.MethodPost && !s.made(r):
			d.show(w, http.StatusForbidden, view{Title: "Outdated page", Text: "This form does not belong to your session, so I did nothing. Please reload the page."})
		default:
			inside.ServeHTTP(w, r.WithContext(With(r.Context(), s)))
		}
	})
}

// made reports whether a form is of a page of this session.
func (s Session) made(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.PostForm.Get("csrf")), []byte(s.CSRF)) == 1
}

// of returns the session of a request.
func (d *SignIn) of(r *http.Request) (Session, error) {
	cookie, err := r.Cookie(d.cookie())
	if err != nil {
		return Session{}, errNo
	}
	live := r.Method != http.MethodPost && r.Header.Get(Live) != ""
	return d.session(r.Context(), cookie.Value, !live)
}

// cookie is the name of the one with the session. That with the prefix is taken by browsers
// from this very host alone, and over https.
func (d *SignIn) cookie() string {
	if d.site.secure {
		return "__Host-oneclaw-admin"
	}
	return "oneclaw-admin"
}

// give sets the cookie; an age below 0 takes it away. It is Strict: the first request of a
// session comes from a page of ours, so that no request from elsewhere needs it.
func (d *SignIn) give(w http.ResponseWriter, token string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: d.cookie(), Value: token, Path: "/", MaxAge: int(age / time.Second), HttpOnly: true, Secure: d.site.secure, SameSite: http.SameSiteStrictMode,
	})
}

// Bounds of links that do not count.
const (
	wrongEvery = 6 * time.Second
	wrongMost  = 10
)

// attempt does something with a link. One that does not count is shown as such; where too many
// from there did not, that is all that is said. A link that counts is never held up by others.
func (d *SignIn) attempt(w http.ResponseWriter, r *http.Request, try func(ctx context.Context) error) bool {
	from, now := d.site.from(r), d.cfg.Now()
	limiter, ok := d.wrong.Get(from)
	if !ok {
		limiter = rate.NewLimiter(rate.Every(wrongEvery), wrongMost)
	}
	err := try(r.Context())
	switch {
	case errors.Is(err, errNo) && limiter.TokensAt(now) < 1:
		w.Header().Set("Retry-After", "60")
		d.show(w, http.StatusTooManyRequests, view{Title: "Too often", Text: "Too many wrong links came from your address. Please wait a minute."})
	case errors.Is(err, errNo):
		if r.Header.Get("Sec-Fetch-Site") != "cross-site" { // else another site makes the browser ask
			limiter.AllowN(now, 1)
			d.wrong.Put(from, limiter, cache.Forever)
		}
		d.show(w, http.StatusNotFound, view{Title: "This link no longer works", Text: "This link has been used, is older than five minutes, or is wrong. Send /admin to the bot in a direct chat for a new one. If someone else has used it, /admin out ends all sessions in your name."})
	case err != nil:
		d.fail(w, err)
	}
	return err == nil
}

// offer shows what a link does, and does it not yet: a preview that a chat service makes of
// the link presses no button.
func (d *SignIn) offer(w http.ResponseWriter, r *http.Request) {
	var one browserSession
	link := r.PathValue("token")
	ok := d.attempt(w, r, func(ctx context.Context) (err error) {
		one, _, err = d.peek(ctx, link)
		return err
	})
	if ok {
		d.show(w, http.StatusOK, view{Title: "Sign in", Token: link, User: one.User, Name: one.Name})
	}
}

// enter signs the browser in that presses the button.
func (d *SignIn) enter(w http.ResponseWriter, r *http.Request) {
	if _, err := d.of(r); err == nil { // the button was pressed twice
		http.Redirect(w, r, Path, http.StatusSeeOther)
		return
	}
	var token string
	ok := d.attempt(w, r, func(ctx context.Context) (err error) {
		token, err = d.signIn(ctx, r.PostForm.Get("token"), d.site.from(r))
		return err
	})
	if ok {
		d.give(w, token, SessionAge)
		http.Redirect(w, r, Path, http.StatusSeeOther)
	}
}

// out ends the session of a browser.
func (d *SignIn) out(w http.ResponseWriter, r *http.Request) {
	s, err := d.of(r)
	if err == nil && !s.made(r) {
		d.show(w, http.StatusForbidden, view{Title: "Outdated page", Text: "This form does not belong to your session, so I did nothing. Please reload the page."})
		return
	}
	if cookie, missing := r.Cookie(d.cookie()); err == nil && missing == nil {
		err = d.leave(r.Context(), cookie.Value, d.site.from(r))
	}
	if err != nil && !errors.Is(err, errNo) {
		d.fail(w, err)
		return
	}
	d.give(w, "", -time.Second)
	d.show(w, http.StatusOK, view{Title: "Signed out", Text: "Send /admin to the bot to come back."})
}

func (d *SignIn) fail(w http.ResponseWriter, err error) {
	d.cfg.Logger.Error("the page of administrators fails at the door", "err", err)
	d.show(w, http.StatusServiceUnavailable, view{Title: "Not now", Text: "Something went wrong here. Please try again."})
}
