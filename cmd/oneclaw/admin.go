package main

import (
	"log/slog"
	"net/http"

	"oneclaw/bridge"
	"oneclaw/cmd/oneclaw/config"
	"oneclaw/internal/admin"
	"oneclaw/internal/admin/frame"
	"oneclaw/internal/admin/signin"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// openDoor makes the door to the pages of administrators.
func (b *bot) openDoor(cfg config.Config, store storage.Store, log *slog.Logger) (err error) {
	b.door, err = signin.New(signin.Config{
		Store: store, PublicURL: cfg.PublicURL, Listen: cfg.Listen, Now: cfg.Outside.Now, Logger: log,
		Admin: func(user string) bool { return b.bridge.People().Role(user) >= toolgroups.RoleAdmin },
	})
	return err
}

// duties are the views where administrators decide something.
func (b *bot) duties(cfg config.Config) ([]frame.View, error) {
	return admin.OperationsViews(admin.OperationsConfig{
		People: b.bridge.People(), Approvals: bridge.ApprovalsOf(b.bridge), Store: b.store,
		Redact: cfg.Redact.Text, RedactCards: cfg.Redact.Known, Now: cfg.Outside.Now,
	})
}

// pages serves the pages of administrators.
func (b *bot) pages(mux *http.ServeMux) {
	pages := b.door.Handler(b.inside)
	mux.Handle("/admin", pages)
	mux.Handle(signin.Path, pages)
}
