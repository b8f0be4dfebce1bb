package app

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"oneclaw/internal/admin/signin"
	"oneclaw/internal/config"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// openSignIn creates the sign-in for the administrators' pages.
func (b *Bot) openSignIn(cfg config.Config, store storage.Store, log *slog.Logger) (err error) {
	b.signIn, err = signin.New(signin.Config{
		Store: store, PublicURL: cfg.PublicURL, Listen: cfg.Listen, Now: cfg.Runtime.Now, Logger: log,
		IsAdmin: func(user string) bool { return b.bridge.People().Role(user) >= toolgroups.RoleAdmin },
	})
	return err
}

// endSessions ends the sessions of a removed user, so that none comes back if they are appointed again.
func (b *Bot) endSessions(ctx context.Context, user string) error {
	return b.signIn.SignOut(ctx, user, "sign-out (no administrator any more)")
}

// maxStartWait bounds how long a page waits until the bot knows its administrators.
const maxStartWait = 10 * time.Second

// mountPages adds the administrators' pages to mux. They wait until the bot knows its administrators:
// before that, it would end the sessions of those who were appointed in a chat.
func (b *Bot) mountPages(mux *http.ServeMux) {
	signedIn := b.signIn.Handler(b.adminPages)
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), maxStartWait)
		defer cancel()
		if b.bridge.AwaitReady(ctx) != nil {
			http.Error(w, "The bot is starting. Please try again.", http.StatusServiceUnavailable)
			return
		}
		signedIn.ServeHTTP(w, r)
	})
	mux.Handle("/admin", pages)
	mux.Handle(signin.Path, pages)
}
