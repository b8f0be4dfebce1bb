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

// contentSecurityPolicy restricts the pages in browsers: own styles and images only, no scripts, no frames, forms
// only to here.
const contentSecurityPolicy = "default-src 'none'; style-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Handler serves all addresses that begin with [Path], and /admin itself. It passes
// requests from signed-in administrators to inside, with their [Session] in the context.
//
// Each is a GET or HEAD request, or a POST of a parsed form of at most [MaxForm] bytes, from one
// of our pages, with the session's token in the field "csrf". All responses have the security
// headers; inside may replace Cache-Control.
func (svc *Service) Handler(inside http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+enterPath+"/{token}", svc.showLink)
	mux.HandleFunc("POST "+enterPath, svc.useLink)
	mux.HandleFunc("POST "+leavePath, svc.signOut)
	mux.HandleFunc("GET "+stylePath, showStyle)
	mux.HandleFunc("GET /admin", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, Path, http.StatusSeeOther) })
	mux.Handle(Path, svc.requireSession(inside))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		for name, value := range map[string]string{
			"Content-Security-Policy": contentSecurityPolicy, "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			// With no-referrer, browsers would leave out the origin of a form.
			"Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			header.Set(name, value)
		}
		switch {
		case svc.site.closedReason != "":
			http.NotFound(w, r)
		case !svc.site.isOwnHost(r):
			svc.writePage(w, http.StatusMisdirectedRequest, pageData{Title: "Not here", Text: "These pages are at another address."})
		case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
			w.Header().Set("Allow", "GET, HEAD, POST")
			svc.writePage(w, http.StatusMethodNotAllowed, pageData{Title: "Request not accepted"})
		case svc.crossOrigin.Check(r) != nil:
			svc.writePage(w, http.StatusForbidden, pageData{Title: "Request from another page", Text: "This came from a page that is not mine, so I did nothing."})
		default:
			if svc.parseForm(w, r) {
				mux.ServeHTTP(w, r)
			}
		}
	})
}

// parseForm parses the form of a POST. If there is none, or it is too large, parseForm answers the
// request and returns false.
func (svc *Service) parseForm(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPost {
		return true
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		svc.writePage(w, http.StatusUnsupportedMediaType, pageData{Title: "Request not accepted", Text: "I only accept forms of my own pages."})
		return false
	}
	r.Body = http.MaxBytesReader(w, r.Body, MaxForm)
	err = r.ParseForm()
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		svc.writePage(w, http.StatusRequestEntityTooLarge, pageData{Title: "Too much", Text: "That form is too large."})
	case err != nil:
		svc.writePage(w, http.StatusBadRequest, pageData{Title: "Request not accepted", Text: "I could not read that form."})
	}
	return err == nil
}

// requireSession admits signed-in visitors.
func (svc *Service) requireSession(inside http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := svc.requestSession(r)
		switch {
		case errors.Is(err, errInvalid):
			svc.writePage(w, http.StatusUnauthorized, pageData{Title: "Sign in", Text: "Send /admin to the bot in a direct chat. It gives you a link to these pages. (Slack: !admin.)"})
		case err != nil:
			svc.writeError(w, err)
		case r.Method == http.MethodPost && !s.hasValidToken(r):
			svc.writePage(w, http.StatusForbidden, pageData{Title: "Outdated page", Text: "This form does not belong to your session, so I did nothing. Please reload the page."})
		default:
			inside.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), contextKey{}, s)))
		}
	})
}

// hasValidToken reports whether a form comes from a page of this session.
func (s Session) hasValidToken(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.PostForm.Get("csrf")), []byte(s.CSRF)) == 1
}

// requestSession returns the session of a request.
func (svc *Service) requestSession(r *http.Request) (Session, error) {
	cookie, err := r.Cookie(svc.cookieName())
	if err != nil {
		return Session{}, errInvalid
	}
	return svc.findSession(r.Context(), cookie.Value)
}

// cookieName returns the name of the session's cookie. Browsers accept the prefixed one only from
// this very host, over https.
func (svc *Service) cookieName() string {
	if svc.site.secure {
		return "__Host-oneclaw-admin"
	}
	return "oneclaw-admin"
}

// setCookie sets the cookie; a negative age deletes it. It is Strict: the first request of a session
// comes from one of our pages, so no request from elsewhere needs it.
func (svc *Service) setCookie(w http.ResponseWriter, token string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: svc.cookieName(), Value: token, Path: "/", MaxAge: int(age / time.Second), HttpOnly: true, Secure: svc.site.secure, SameSite: http.SameSiteStrictMode,
	})
}

// Rate limit for invalid links from an address.
const (
	badLinkInterval = 6 * time.Second
	badLinkBurst    = 10
)

// tryLink calls try, and reports whether it succeeded. If it failed, tryLink answers: that the link
// is invalid or, after too many invalid links from one address, that there were too many. Invalid
// links never hold up a valid one.
func (svc *Service) tryLink(w http.ResponseWriter, r *http.Request, try func(ctx context.Context) error) bool {
	from, now := svc.site.clientAddress(r), svc.cfg.Now()
	limiter, ok := svc.badLinks.Get(from)
	if !ok {
		limiter = rate.NewLimiter(rate.Every(badLinkInterval), badLinkBurst)
	}
	err := try(r.Context())
	switch {
	case errors.Is(err, errInvalid) && limiter.TokensAt(now) < 1:
		w.Header().Set("Retry-After", "60")
		svc.writePage(w, http.StatusTooManyRequests, pageData{Title: "Too often", Text: "Too many wrong links came from your address. Please wait a minute."})
	case errors.Is(err, errInvalid):
		if r.Header.Get("Sec-Fetch-Site") != "cross-site" { // else another site causes the request
			limiter.AllowN(now, 1)
			svc.badLinks.Put(from, limiter, cache.Forever)
		}
		svc.writePage(w, http.StatusNotFound, pageData{Title: "This link no longer works", Text: "This link has been used, is older than five minutes, or is wrong. Send /admin to the bot in a direct chat for a new one. If someone else has used it, /admin out ends all sessions in your name."})
	case err != nil:
		svc.writeError(w, err)
	}
	return err == nil
}

// showLink shows what a link does without doing it,
// because a chat service may open the link for a preview.
func (svc *Service) showLink(w http.ResponseWriter, r *http.Request) {
	var one adminRecord
	link := r.PathValue("token")
	ok := svc.tryLink(w, r, func(ctx context.Context) (err error) {
		one, _, err = svc.findLink(ctx, link)
		return err
	})
	if ok {
		svc.writePage(w, http.StatusOK, pageData{Title: "Sign in", Token: link, User: one.User, Name: one.Name})
	}
}

// useLink signs in the browser in which the button was pressed.
func (svc *Service) useLink(w http.ResponseWriter, r *http.Request) {
	link := r.PostForm.Get("token")
	user, _, _ := splitToken(linkMark, link)
	if s, err := svc.requestSession(r); err == nil && s.User == user { // is signed in, or pressed the button twice
		if err := svc.dropLink(r.Context(), link); err != nil {
			svc.writeError(w, err)
			return
		}
		http.Redirect(w, r, Path, http.StatusSeeOther)
		return
	}
	var token string
	ok := svc.tryLink(w, r, func(ctx context.Context) (err error) {
		token, err = svc.signIn(ctx, link, svc.site.clientAddress(r))
		return err
	})
	if ok {
		svc.setCookie(w, token, SessionAge)
		http.Redirect(w, r, Path, http.StatusSeeOther)
	}
}

// signOut ends the session of a browser.
func (svc *Service) signOut(w http.ResponseWriter, r *http.Request) {
	s, err := svc.requestSession(r)
	if err == nil && !s.hasValidToken(r) {
		svc.writePage(w, http.StatusForbidden, pageData{Title: "Outdated page", Text: "This form does not belong to your session, so I did nothing. Please reload the page."})
		return
	}
	if cookie, missing := r.Cookie(svc.cookieName()); err == nil && missing == nil {
		err = svc.endSession(r.Context(), cookie.Value, svc.site.clientAddress(r))
	}
	if err != nil && !errors.Is(err, errInvalid) {
		svc.writeError(w, err)
		return
	}
	svc.setCookie(w, "", -time.Second)
	svc.writePage(w, http.StatusOK, pageData{Title: "Signed out", Text: "Send /admin to the bot to come back."})
}

func (svc *Service) writeError(w http.ResponseWriter, err error) {
	svc.cfg.Logger.Error("the sign-in of administrators failed", "err", err)
	svc.writePage(w, http.StatusServiceUnavailable, pageData{Title: "Not now", Text: "The database cannot be read or written, so these pages cannot be shown: oneclaw doctor checks it. Please try again."})
}
