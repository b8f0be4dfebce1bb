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
	"oneclaw/internal/config"
	"oneclaw/internal/database"
)

// openControl creates the control socket and returns a function that serves orders on it until its
// context ends. If the socket cannot be created, or the store is shared, the function does nothing.
func (b *Bot) openControl(ctx context.Context, cfg config.Config) func(context.Context) error {
	if b.sharedStore {
		return func(context.Context) error { return nil }
	}
	l, err := database.ListenControl(ctx, b.dataDir)
	if err != nil {
		b.log.Warn("no control socket, so commands such as backup fail while the bot runs", "err", err)
		return func(context.Context) error { return nil }
	}
	return func(ctx context.Context) error {
		defer func() { _ = l.Close() }()
		mux := http.NewServeMux()
		mux.HandleFunc("POST /history", answerOrder(func(w io.Writer, r *http.Request) error {
			return writeMessages(r.Context(), b.store, r.FormValue("chat"), w)
		}))
		mux.HandleFunc("POST /key", answerOrder(func(w io.Writer, r *http.Request) error {
			return storeKey(r.Context(), cfg, b.store, r.URL.Query().Get("id"), r.Body, w)
		}))
		mux.HandleFunc("POST /provider-on", answerOrder(func(w io.Writer, r *http.Request) error {
			return switchOnProvider(r.Context(), cfg, b.store, r.URL.Query().Get("id"), w)
		}))
		mux.HandleFunc("POST /setting-reset", answerOrder(func(w io.Writer, r *http.Request) error {
			return resetSetting(r.Context(), cfg, b.store, r.URL.Query().Get("key"), w)
		}))
		mux.HandleFunc("POST /models", answerOrder(func(w io.Writer, r *http.Request) error {
			return json.NewEncoder(w).Encode(b.models.CheckKinds(r.Context()))
		}))
		mux.Handle("/", controlHandler(b.store, b.now, b.log))
		return serve(ctx, l, &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}) // orders have no timeout
	}
}

// SendOrder sends an order to the running bot that has locked the database, and reports whether there is
// one. It sends nothing for a database on a server, which all processes can open.
func SendOrder(ctx context.Context, cfg config.Config, what string, body io.Reader, read func(io.Reader) error) (bool, error) {
	if cfg.Store.Shared() {
		return false, nil
	}
	return database.SendOrder(ctx, cfg.DataDir, what, body, read)
}

// answerOrder answers an order with the output of do, or with its error.
func answerOrder(do func(io.Writer, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var out bytes.Buffer
		if err := do(&out, r); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		_, _ = out.WriteTo(w) // the client notices a truncated response
	}
}

// processTimeout bounds the wait for a running bot to return its process id. One that stands still does not.
const processTimeout = 5 * time.Second

// runningProcess returns the process id of a bot that already uses the data directory, if one says so.
func runningProcess(ctx context.Context, cfg config.Config) (process int, yes bool) {
	ctx, cancel := context.WithTimeout(ctx, processTimeout)
	defer cancel()
	yes, err := SendOrder(ctx, cfg, "process", nil, func(body io.Reader) error {
		_, err := fmt.Fscan(body, &process)
		return err
	})
	return process, yes && err == nil
}

func controlHandler(store *database.Store, now func() time.Time, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /backup", store.BackupHandler(log))
	mux.HandleFunc("POST /process", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, os.Getpid()) })
	mux.HandleFunc("POST /claim", func(w http.ResponseWriter, r *http.Request) {
		claim, err := access.NewClaim(r.Context(), store, now(), true)
		if err != nil {
			http.Error(w, ClaimRefusal(err).Error(), http.StatusConflict)
			return
		}
		_ = json.NewEncoder(w).Encode(claim) // the client notices a truncated response
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
		_ = json.NewEncoder(w).Encode(all) // the client notices a truncated response
	})
	mux.HandleFunc("POST /deadletters", func(w http.ResponseWriter, r *http.Request) {
		all, err := deadLettersOf(r.Context(), store)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(all) // the client notices a truncated response
	})
	return mux
}
