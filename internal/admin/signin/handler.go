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

// policy restricts the pages in browsers: own scripts and content only, no frames, forms only to
// here.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Handler serves all addresses that begin with [Path], and /admin itself. It passes requests of
// signed-in administrators to inside, with their [Session] in the context.
//
// These are GET or HEAD requests, or POSTs of a parsed form of at most [MaxForm] bytes, from one
// of our pages, with the session's token in the field "csrf". All responses have the security
// headers; inside may replace Cache-Control.
func (d *SignIn) Handler(inside http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+enterPath+"/{token}", d.showLink)
	mux.HandleFunc("POST "+enterPath, d.useLink)
	mux.HandleFunc("POST "+leavePath, d.signOut)
	mux.HandleFunc("GET "+stylePath, showStyle)
	mux.HandleFunc("GET /admin", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, Path, http.StatusSeeOther) })
	mux.Handle(Path, d.requireSession(inside))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			// Not no-referrer, with which browsers leave out the origin of a form.
			"Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			header.Set(name, value)
		}
		switch {
		case d.site.closed != "":
			http.NotFound(w, r)
		case !d.site.isOwnHost(r):
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

// form parses the form of a POST, which is required and bounded.
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

// requireSession admits signed-in visitors.
func (d *SignIn) requireSession(inside http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := d.sessionOf(r)
		switch {
		case errors.Is(err, errInvalid):
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

// made reports whether a form comes from a page of this session.
func (s Session) made(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.PostForm.Get("csrf")), []byte(s.CSRF)) == 1
}

// sessionOf returns the session of a request.
func (d *SignIn) sessionOf(r *http.Request) (Session, error) {
	cookie, err := r.Cookie(d.cookie())
	if err != nil {
		return Session{}, errInvalid
	}
	live := r.Method != http.MethodPost && r.Header.Get(Live) != ""
	return d.session(r.Context(), cookie.Value, !live)
}

// cookie returns the name of the session's cookie. Browsers accept the prefixed one only from
// this very host, over https.
func (d *SignIn) cookie() string {
	if d.site.secure {
		return "__Host-oneclaw-admin"
	}
	return "oneclaw-admin"
}

// setCookie sets the cookie; a negative age deletes it. It is Strict: the first request of a session
// comes from one of our pages, so no request from elsewhere needs it.
func (d *SignIn) setCookie(w http.ResponseWriter, token string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: d.cookie(), Value: token, Path: "/", MaxAge: int(age / time.Second), HttpOnly: true, Secure: d.site.secure, SameSite: http.SameSiteStrictMode,
	})
}

// Bounds of invalid links.
const (
	wrongEvery = 6 * time.Second
	wrongMost  = 10
)

// attempt handles a link. An invalid one is reported as such; after too many invalid ones from
// an address only that is reported. A valid link is never held up by others.
func (d *SignIn) attempt(w http.ResponseWriter, r *http.Request, try func(ctx context.Context) error) bool {
	from, now := d.site.from(r), d.cfg.Now()
	limiter, ok := d.wrong.Get(from)
	if !ok {
		limiter = rate.NewLimiter(rate.Every(wrongEvery), wrongMost)
	}
	err := try(r.Context())
	switch {
	case errors.Is(err, errInvalid) && limiter.TokensAt(now) < 1:
		w.Header().Set("Retry-After", "60")
		d.show(w, http.StatusTooManyRequests, view{Title: "Too often", Text: "Too many wrong links came from your address. Please wait a minute."})
	case errors.Is(err, errInvalid):
		if r.Header.Get("Sec-Fetch-Site") != "cross-site" { // otherwise another site makes the browser ask
			limiter.AllowN(now, 1)
			d.wrong.Put(from, limiter, cache.Forever)
		}
		d.show(w, http.StatusNotFound, view{Title: "This link no longer works", Text: "This link has been used, is older than five minutes, or is wrong. Send /admin to the bot in a direct chat for a new one. If someone else has used it, /admin out ends all sessions in your name."})
	case err != nil:
		d.fail(w, err)
	}
	return err == nil
}

// showLink shows what a link does without doing it: a chat service that previews the link presses
// no button.
func (d *SignIn) showLink(w http.ResponseWriter, r *http.Request) {
	var one adminRecord
	link := r.PathValue("token")
	ok := d.attempt(w, r, func(ctx context.Context) (err error) {
		one, _, err = d.peek(ctx, link)
		return err
	})
	if ok {
		d.show(w, http.StatusOK, view{Title: "Sign in", Token: link, User: one.User, Name: one.Name})
	}
}

// useLink signs in the browser in which the button was pressed.
func (d *SignIn) useLink(w http.ResponseWriter, r *http.Request) {
	if _, err := d.sessionOf(r); err == nil { // the button was pressed twice
		http.Redirect(w, r, Path, http.StatusSeeOther)
		return
	}
	var token string
	ok := d.attempt(w, r, func(ctx context.Context) (err error) {
		token, err = d.signIn(ctx, r.PostForm.Get("token"), d.site.from(r))
		return err
	})
	if ok {
		d.setCookie(w, token, SessionAge)
		http.Redirect(w, r, Path, http.StatusSeeOther)
	}
}

// signOut ends the session of a browser.
func (d *SignIn) signOut(w http.ResponseWriter, r *http.Request) {
	s, err := d.sessionOf(r)
	if err == nil && !s.made(r) {
		d.show(w, http.StatusForbidden, view{Title: "Outdated page", Text: "This form does not belong to your session, so I did nothing. Please reload the page."})
		return
	}
	if cookie, missing := r.Cookie(d.cookie()); err == nil && missing == nil {
		err = d.leave(r.Context(), cookie.Value, d.site.from(r))
	}
	if err != nil && !errors.Is(err, errInvalid) {
		d.fail(w, err)
		return
	}
	d.setCookie(w, "", -time.Second)
	d.show(w, http.StatusOK, view{Title: "Signed out", Text: "Send /admin to the bot to come back."})
}

func (d *SignIn) fail(w http.ResponseWriter, err error) {
	d.cfg.Logger.Error("the page of administrators fails at the door", "err", err)
	d.show(w, http.StatusServiceUnavailable, view{Title: "Not now", Text: "Something went wrong here. Please try again."})
}
