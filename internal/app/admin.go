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

// openDoor creates the sign-in of the administrators' pages.
func (b *Bot) openDoor(cfg config.Config, store storage.Store, log *slog.Logger) (err error) {
	b.door, err = signin.New(signin.Config{
		Store: store, PublicURL: cfg.PublicURL, Listen: cfg.Listen, Now: cfg.Outside.Now, Logger: log,
		Admin: func(user string) bool { return b.bridge.People().Role(user) >= toolgroups.RoleAdmin },
	})
	return err
}

// duties returns the approvals and people views.
func (b *Bot) duties(cfg config.Config) ([]frame.View, error) {
	return admin.OperationsViews(admin.OperationsConfig{
		People: b.bridge.People(), Approvals: bridge.ApprovalsOf(b.bridge), Store: b.store,
		Redact: cfg.Redact.Text, RedactCards: cfg.Redact.Known, Now: cfg.Outside.Now,
	})
}

// pages serves the administrators' pages.
func (b *Bot) pages(mux *http.ServeMux) {
	pages := b.door.Handler(b.inside)
	mux.Handle("/admin", pages)
	mux.Handle(signin.Path, pages)
}
