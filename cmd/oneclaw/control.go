package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"oneclaw/bridge"
	"oneclaw/storage/bolt"
)

// controlName is the socket in the data directory on which a running bot takes orders
// from the same user on the same machine: who may open it may read the database too.
const controlName = "control.sock"

// maxSocketPath is how long the path of a socket may be on every system.
const maxSocketPath = 100

// socketPath returns a path of the socket that is short enough, and what must stay open
// while it is used.
func socketPath(dir string) (path string, hold io.Closer, err error) {
	path = filepath.Join(dir, controlName)
	if len(path) <= maxSocketPath || runtime.GOOS != "linux" {
		return path, io.NopCloser(nil), nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), controlName), d, nil
}

// control makes the socket and returns what serves orders on it until its context ends: a
// bot that receives takes orders, too. Where there can be no socket it goes on without.
func (b *bot) control(ctx context.Context) func(context.Context) error {
	l, err := listenControl(ctx, b.dataDir)
	if err != nil {
		b.log.Warn("the running bot takes no orders, such as to make a backup: there is no control socket", "err", err)
		return func(context.Context) error { return nil }
	}
	return func(ctx context.Context) error {
		defer func() { _ = l.Close() }()
		return serve(ctx, l, controlHandler(b.store, b.dataDir, b.log))
	}
}

// heldListener keeps the folder open through which its socket is named.
type heldListener struct {
	net.Listener
	hold io.Closer
}

// Close implements net.Listener.
func (l heldListener) Close() error { return errors.Join(l.Listener.Close(), l.hold.Close()) }

// listenControl makes the socket. The store is open, so what is there is left over.
func listenControl(ctx context.Context, dir string) (net.Listener, error) {
	path, hold, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	_ = os.Remove(path)
	var config net.ListenConfig
	l, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, errors.Join(err, hold.Close())
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close(), hold.Close())
	}
	return heldListener{l, hold}, nil
}

// controlHandler hands out backups, one at a time, claims, and what was set aside.
func controlHandler(store *bolt.Store, dir string, log *slog.Logger) http.Handler {
	var one sync.Mutex
	mux := http.NewServeMux()
	mux.HandleFunc("POST /backup", func(w http.ResponseWriter, r *http.Request) {
		if !one.TryLock() {
			http.Error(w, "another backup is being made: try again when it is done", http.StatusConflict)
			return
		}
		defer one.Unlock()
		if err := sendBackup(w, r, store, dir); err != nil && r.Context().Err() == nil {
			log.Error("backup failed", "err", err)
		}
	})
	mux.HandleFunc("POST /claim", func(w http.ResponseWriter, r *http.Request) {
		claim, err := bridge.NewClaim(r.Context(), store, time.Now(), true)
		if err != nil {
			http.Error(w, claimRefusal(err).Error(), http.StatusConflict)
			return
		}
		_ = json.NewEncoder(w).Encode(claim) // who asked sees that it broke off
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

// sendBackup copies the store beside itself first: whoever reads slowly must not hold up
// its writes.
func sendBackup(w http.ResponseWriter, r *http.Request, store *bolt.Store, dir string) (err error) {
	f, err := os.CreateTemp(dir, spoolPattern)
	if err != nil {
		http.Error(w, "there is no room for a copy in the data directory: "+err.Error(), http.StatusInsufficientStorage)
		return err
	}
	defer func() { _ = f.Close() }()
	// Without a name nothing is left over, whatever happens; some systems want it kept.
	if os.Remove(f.Name()) != nil {
		defer func() { _ = os.Remove(f.Name()) }()
	}
	if err := store.Backup(r.Context(), f); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return err
	}
	size, err := f.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return err
	}
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	_, err = io.Copy(w, f)
	return err
}

// askForBackup has a running bot write its database to w; false where none runs.
func askForBackup(ctx context.Context, dir string, w io.Writer) (bool, error) {
	return order(ctx, dir, "backup", func(body io.Reader) error {
		_, err := io.Copy(w, body)
		return err
	})
}

// askForClaim has a running bot make a claim; false where none runs.
func askForClaim(ctx context.Context, dir string) (claim bridge.Claim, running bool, err error) {
	running, err = order(ctx, dir, "claim", func(body io.Reader) error {
		return json.NewDecoder(io.LimitReader(body, 1000)).Decode(&claim)
	})
	return claim, running, err
}

// order gives a running bot an order and reads what it answers; false where none runs.
func order(ctx context.Context, dir, what string, read func(io.Reader) error) (bool, error) {
	path, hold, err := socketPath(dir)
	if err != nil {
		return false, nil
	}
	defer func() { _ = hold.Close() }()
	dialer := net.Dialer{Timeout: 5 * time.Second}
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return false, nil
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://bot/"+what, nil)
	if err != nil {
		return true, errors.Join(err, conn.Close())
	}
	response, err := client.Do(request)
	if err != nil {
		return true, fmt.Errorf("ask the running bot: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		return true, fmt.Errorf("the running bot can not make a %s: %s", what, why)
	}
	if err := read(response.Body); err != nil {
		return true, fmt.Errorf("read from the running bot: %w", err)
	}
	return true, nil
}
