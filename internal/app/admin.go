package app

import (
	"log/slog"
	"net/http"

	"oneclaw/bridge"
	"oneclaw/internal/admin"
	"oneclaw/internal/admin/frame"
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

// operationsViews returns the approvals and people views.
func (b *Bot) operationsViews(cfg config.Config) ([]frame.View, error) {
	return admin.OperationsViews(admin.OperationsConfig{
		People: b.bridge.People(), Approvals: bridge.ApprovalsOf(b.bridge), Store: b.store,
		Redact: cfg.Redact.Text, RedactCards: cfg.Redact.MaskKnown, Now: cfg.Runtime.Now,
	})
}

// mountPages adds the administrators' pages to mux.
func (b *Bot) mountPages(mux *http.ServeMux) {
	pages := b.signIn.Handler(b.adminPages)
	mux.Handle("/admin", pages)
	mux.Handle(signin.Path, pages)
}
