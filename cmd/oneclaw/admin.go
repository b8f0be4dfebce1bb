package main

import (
	"log/slog"
	"net/http"

	"oneclaw/cmd/oneclaw/config"
	"oneclaw/internal/admin/door"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// openDoor makes the door to the pages of administrators.
func (b *bot) openDoor(cfg config.Config, store storage.Store, log *slog.Logger) (err error) {
	b.door, err = door.New(door.Config{
		Store: store, PublicURL: cfg.PublicURL, Listen: cfg.Listen, Now: cfg.Outside.Now, Logger: log,
		Admin: func(user string) bool { return b.bridge.People().Role(user) >= toolgroups.RoleAdmin },
	})
	return err
}

// pages serves the pages of administrators.
func (b *bot) pages(mux *http.ServeMux) {
	pages := b.door.Handler(b.inside)
	mux.Handle("/admin", pages)
	mux.Handle(door.Path, pages)
}
