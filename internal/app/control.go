package app

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"oneclaw/bridge/access"
	"oneclaw/bridge/audit"
	"oneclaw/internal/config"
	"oneclaw/internal/control"
	"oneclaw/internal/database"
)

// control makes the socket and returns what serves orders on it until its context ends: a
// bot that receives takes orders, too. Where there can be no socket it goes on without.
func (b *Bot) control(ctx context.Context) func(context.Context) error {
	if b.shared {
		return func(context.Context) error { return nil }
	}
	l, err := control.Listen(ctx, b.dataDir)
	if err != nil {
		b.log.Warn("the running bot takes no orders, such as to make a backup: there is no control socket", "err", err)
		return func(context.Context) error { return nil }
	}
	return func(ctx context.Context) error {
		defer func() { _ = l.Close() }()
		mux := http.NewServeMux()
		mux.Handle("POST /export", b.cases)
		mux.Handle("/", controlHandler(b.store, b.now, b.log))
		return Serve(ctx, l, mux)
	}
}

// Order gives an order to the bot that has the database locked. A database on a server is open
// to all, wherever bots run, so nobody has to be asked.
func Order(ctx context.Context, cfg config.Config, what string, read func(io.Reader) error) (bool, error) {
	if cfg.Store.Shared() {
		return false, nil
	}
	return control.Order(ctx, cfg.DataDir, what, read)
}

func controlHandler(store *database.Store, now func() time.Time, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /backup", store.Backups(log))
	mux.HandleFunc("POST /claim", func(w http.ResponseWriter, r *http.Request) {
		claim, err := access.NewClaim(r.Context(), store, now(), true)
		if err != nil {
			http.Error(w, ClaimRefusal(err).Error(), http.StatusConflict)
			return
		}
		_ = json.NewEncoder(w).Encode(claim) // who asked sees that it broke off
	})
	mux.HandleFunc("POST /audit", func(w http.ResponseWriter, r *http.Request) {
		most, err := strconv.Atoi(r.FormValue("most"))
		var all []audit.Entry
		if err == nil {
			all, err = audit.List(r.Context(), store, most)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(all) // who asked sees that it broke off
	})
	mux.HandleFunc("POST /aside", func(w http.ResponseWriter, r *http.Request) {
		all, err := asidesOf(r.Context(), store)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(all) // who asked sees that it broke off
	})
	return mux
}
