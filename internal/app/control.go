package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"

	"oneclaw/bridge/access"
	"oneclaw/bridge/audit"
	"oneclaw/internal/bill"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
)

// control creates the socket and returns a function that serves orders on it until its context
// ends, so that a running bot accepts orders. Without a socket the bot runs too.
func (b *Bot) control(ctx context.Context, cfg config.Config) func(context.Context) error {
	if b.shared {
		return func(context.Context) error { return nil }
	}
	l, err := database.ListenControl(ctx, b.dataDir)
	if err != nil {
		b.log.Warn("the running bot takes no orders, such as to make a backup: there is no control socket", "err", err)
		return func(context.Context) error { return nil }
	}
	return func(ctx context.Context) error {
		defer func() { _ = l.Close() }()
		mux := http.NewServeMux()
		mux.Handle("POST /export", b.cases)
		mux.HandleFunc("POST /history", answerOrder(func(w io.Writer, r *http.Request) error {
			return writeMessages(r.Context(), b.store, r.FormValue("chat"), w)
		}))
		mux.HandleFunc("POST /key", answerOrder(func(w io.Writer, r *http.Request) error {
			return storeKey(r.Context(), cfg, b.store, r.URL.Query().Get("id"), r.Body, w)
		}))
		mux.HandleFunc("POST /bill", answerOrder(func(w io.Writer, r *http.Request) error {
			return b.billChat(r.Context(), cfg, r.FormValue("chat"), bill.FormOf(r.FormValue("form")), w)
		}))
		mux.Handle("/", controlHandler(b.store, b.now, b.log))
		return serve(ctx, l, &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}) // orders end by themselves
	}
}

// Order sends an order, with a body unless it is nil, to the bot that has the database locked. A
// database on a server is open to all processes, so none has to be asked.
func Order(ctx context.Context, cfg config.Config, what string, body io.Reader, read func(io.Reader) error) (bool, error) {
	if cfg.Store.Shared() {
		return false, nil
	}
	return database.Order(ctx, cfg.DataDir, what, body, read)
}

// answerOrder answers an order with the output of do, or with its error.
func answerOrder(do func(io.Writer, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var out bytes.Buffer
		if err := do(&out, r); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		_, _ = out.WriteTo(w) // the client sees that it broke off
	}
}

// running returns the process of a bot that already serves the data directory, if any.
func running(ctx context.Context, cfg config.Config) (process int, yes bool) {
	yes, err := Order(ctx, cfg, "process", nil, func(body io.Reader) error {
		_, err := fmt.Fscan(body, &process)
		return err
	})
	return process, yes && err == nil
}

func controlHandler(store *database.Store, now func() time.Time, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /backup", store.Backups(log))
	mux.HandleFunc("POST /process", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, os.Getpid()) })
	mux.HandleFunc("POST /claim", func(w http.ResponseWriter, r *http.Request) {
		claim, err := access.NewClaim(r.Context(), store, now(), true)
		if err != nil {
			http.Error(w, ClaimRefusal(err).Error(), http.StatusConflict)
			return
		}
		_ = json.NewEncoder(w).Encode(claim) // the client sees that it broke off
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
		_ = json.NewEncoder(w).Encode(all) // the client sees that it broke off
	})
	mux.HandleFunc("POST /deadletters", func(w http.ResponseWriter, r *http.Request) {
		all, err := deadLettersOf(r.Context(), store)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(all) // the client sees that it broke off
	})
	return mux
}
