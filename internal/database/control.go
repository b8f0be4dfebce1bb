package database

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// ControlName is the name of the socket in the data directory.
const ControlName = "control.sock"

// maxSocketPath bounds the path of a socket on all systems, in bytes.
const maxSocketPath = 100

// socketPath returns a short path of the socket; hold must stay open while the path is used.
func socketPath(dir string) (path string, hold io.Closer, err error) {
	path = filepath.Join(dir, ControlName)
	if len(path) <= maxSocketPath || runtime.GOOS != "linux" {
		return path, io.NopCloser(nil), nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), ControlName), d, nil
}

// heldListener keeps open the folder through which its socket is addressed.
type heldListener struct {
	net.Listener
	hold io.Closer
}

// Close implements net.Listener.
func (l heldListener) Close() error { return errors.Join(l.Listener.Close(), l.hold.Close()) }

// ListenControl creates the socket. The caller has the store open, so an existing socket is stale.
func ListenControl(ctx context.Context, dir string) (net.Listener, error) {
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

// SendOrder sends an order to a running bot, with a body unless it is
// nil, and reads the response. It returns false if no bot is running.
func SendOrder(ctx context.Context, dir, what string, body io.Reader, read func(io.Reader) error) (bool, error) {
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
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://bot/"+what, body)
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
		name, _, _ := strings.Cut(what, "?")
		return true, fmt.Errorf("%s, at the running bot: %s", name, bytes.TrimSpace(why))
	}
	if err := read(response.Body); err != nil {
		return true, fmt.Errorf("read from the running bot: %w", err)
	}
	return true, nil
}
