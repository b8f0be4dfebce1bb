// Package signin signs administrators in to their pages. The bot gives an administrator a link
// in a direct chat; the link starts one session in one browser.
//
// Links and sessions are random texts of which only hashes are stored, one record
// for each administrator, so that all processes that share the store know them.
// Each request checks the role: a session ends when its user loses the role.
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

// Path begins the addresses of all pages.
const Path = "/admin/"

// Bounds of links and sessions.
const (
	// LinkAge is how long a link can be used.
	LinkAge = 5 * time.Minute
	// SessionAge bounds a session, IdleAge the time without a request that the user caused.
	SessionAge = 12 * time.Hour
	IdleAge    = time.Hour
	// MaxSessions bounds the sessions of an administrator; a new one ends the oldest.
	MaxSessions = 5
	// MaxForm bounds a form, in bytes.
	MaxForm = 64 << 10
)

// Config configures a [Service].
type Config struct {
	// Store stores links, sessions and the audit.
	Store storage.Store
	// IsAdmin reports whether a user, platform:id, is an administrator now. It must be fast: each
	// request calls it.
	IsAdmin func(user string) bool
	// PublicURL is the external address, if any, and Listen the address of the port. Without an
	// https address the pages are only available on this machine, and only if PublicURL or, without
	// one, Listen is a loopback address.
	PublicURL, Listen string
	// Logger may be nil.
	Logger *slog.Logger
	// Now is the clock. Required.
	Now func() time.Time
}

// Service signs administrators in. It may be used concurrently.
type Service struct {
	cfg         Config
	site        site
	crossOrigin *http.CrossOriginProtection
	// badLinks limits invalid links, by source address.
	badLinks *cache.Cache[string, *rate.Limiter]
}

// New makes a [Service].
func New(cfg Config) (*Service, error) {
	if cfg.Store == nil || cfg.IsAdmin == nil || cfg.Now == nil {
		return nil, errors.New("signin: Store, IsAdmin and Now are required")
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	svc := &Service{cfg: cfg, site: newSite(cfg.PublicURL, cfg.Listen), crossOrigin: http.NewCrossOriginProtection(), badLinks: cache.New[string, *rate.Limiter](1000)}
	if svc.site.publicHost != "" {
		if err := svc.crossOrigin.AddTrustedOrigin(svc.site.origin); err != nil {
			return nil, err
		}
	}
	return svc, nil
}

// Session is an administrator's session in a browser.
type Session struct {
	// User is platform:id, and Name the name on the platform.
	User, Name string
	// CSRF is the token for the hidden field "csrf" of each form.
	CSRF string
}

type contextKey struct{}

// FromContext returns the session of an admitted request.
func FromContext(ctx context.Context) (Session, bool) {
	s, ok := ctx.Value(contextKey{}).(Session)
	return s, ok
}

// hashSecret returns the stored hash of a secret for a purpose.
func hashSecret(purpose, secret string) string {
	sum := sha256.Sum256([]byte("oneclaw door\x00" + purpose + "\x00" + secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
