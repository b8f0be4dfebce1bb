// Package signin lets administrators into their pages. The bot gives one who asks in a direct
// chat a link; the link makes a session of one browser, once.
//
// Links and sessions are random texts of which the store has the hash alone, one record for
// each administrator, so that all processes that share the store know them. Each request is
// authorized anew: a role that is taken away takes the session with it.
package signin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"oneclaw/internal/cache"
	"oneclaw/storage"
)

// Path is what the addresses of all pages begin with.
const Path = "/admin/"

// Live is the header of requests that a page makes by itself while it is open. They are
// guarded like all others, and use no session: who has gone away is signed out.
const Live = "OneClaw-Live"

// Bounds of links and sessions.
const (
	// LinkAge is how long a link can be used.
	LinkAge = 5 * time.Minute
	// SessionAge is how long a session lasts, IdleAge how long without a request of a person.
	SessionAge = 12 * time.Hour
	IdleAge    = time.Hour
	// MaxSessions is how many an administrator has at once; a new one ends the oldest.
	MaxSessions = 5
	// MaxForm bounds what a form brings, in bytes.
	MaxForm = 64 << 10
)

// Config is what a [SignIn] is made of.
type Config struct {
	// Store keeps links, sessions and the audit.
	Store storage.Store
	// Admin reports whether a user, platform:id, is an administrator now. It must be quick:
	// it is asked at each request.
	Admin func(user string) bool
	// PublicURL is where this program is reached from outside, if anywhere, and Listen the
	// address of its port. Without an https address the pages are on this machine alone.
	PublicURL, Listen string
	// Logger, if nil, discards.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// SignIn lets administrators in. It may be used concurrently.
type SignIn struct {
	cfg   Config
	site  site
	cross *http.CrossOriginProtection
	// wrong bounds the links that do not count, by where they come from.
	wrong *cache.Cache[string, *rate.Limiter]
}

// New makes a door.
func New(cfg Config) (*SignIn, error) {
	if cfg.Store == nil || cfg.Admin == nil {
		return nil, errors.New("door: a store and who is an administrator are needed")
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	d := &SignIn{cfg: cfg, site: siteOf(cfg.PublicURL, cfg.Listen), cross: http.NewCrossOriginProtection(), wrong: cache.New[string, *rate.Limiter](1000)}
	if d.site.public != "" {
		if err := d.cross.AddTrustedOrigin(d.site.origin); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Session is that of an administrator in a browser.
type Session struct {
	// User is who it is, as platform:id, and Name what the platform calls them.
	User, Name string
	// CSRF is the token that each form carries in the hidden field "csrf".
	CSRF string
	// Since is when it began, Until when it ends at the latest.
	Since, Until time.Time
}

type contextKey struct{}

// From returns the session of a request that the door let through.
func From(ctx context.Context) (Session, bool) {
	s, ok := ctx.Value(contextKey{}).(Session)
	return s, ok
}

// With returns a context with a session: what pages see behind the door.
func With(ctx context.Context, s Session) context.Context {
	return context.WithValue(ctx, contextKey{}, s)
}

// hash returns what the store keeps of a secret of one purpose.
func hash(purpose, secret string) string {
	sum := sha256.Sum256([]byte("oneclaw door\x00" + purpose + "\x00" + secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
