package demo

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"oneclaw/internal/retry"
)

//go:embed page
var page embed.FS

func (d *Demo) handler(restarts chan<- struct{}) http.Handler {
	mux := http.NewServeMux()
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // the folder is embedded
	}
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /events", d.events)
	mux.HandleFunc("GET /given", d.showGiven)
	mux.HandleFunc("POST /say", handle(d.say))
	mux.HandleFunc("POST /press", handle(d.press))
	mux.HandleFunc("POST /open", handle(d.open))
	mux.HandleFunc("POST /stop", handle(d.stop))
	mux.HandleFunc("POST /routing", handle(d.route))
	mux.HandleFunc("GET /google/", func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		web := d.controls.Web
		d.mu.Unlock()
		if web == nil {
			http.Error(w, "The bot is not running.", http.StatusServiceUnavailable)
			return
		}
		web.ServeHTTP(w, r)
	})
	mux.HandleFunc("POST /restart", func(w http.ResponseWriter, r *http.Request) {
		select {
		case restarts <- struct{}{}:
		case <-r.Context().Done():
		case <-time.After(time.Second): // a restart is in progress
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return local(http.NewCrossOriginProtection().Handler(mux))
}

// local refuses requests that name another host: a foreign page can make a browser connect here
// under its own name (DNS rebinding).
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(r.Host); err == nil {
			host = h
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "The demo answers only under localhost.", http.StatusForbidden)
			return
		}
		header := w.Header()
		header.Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'; form-action 'none'; base-uri 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// minInterval joins changes in quick succession into one update.
const minInterval = 40 * time.Millisecond

// events streams the complete view after each change.
func (d *Demo) events(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		v, changed := d.view()
		data, err := json.Marshal(v)
		if err != nil {
			return
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", data); err != nil || control.Flush() != nil {
			return
		}
		if retry.Wait(r.Context(), minInterval) != nil {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// errStopped is returned to the page while no bot is running.
var errStopped = errors.New("the bot is not running")

// handle decodes a request and encodes the result; nil is no content.
func handle(do func(ctx context.Context, what asked) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var what asked
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&what); err != nil {
			http.Error(w, "This cannot be read.", http.StatusBadRequest)
			return
		}
		answer, err := do(r.Context(), what)
		switch {
		case errors.Is(err, errStopped):
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
		case answer == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer) // the page may be gone
		}
	}
}

// asked is a request of the page: a routing, a button press, or a message.
type asked struct {
	Routing string `json:"routing"`
	Pane    string `json:"pane"`
	Message string `json:"message"`
	Data    string `json:"data"`
	Text    string `json:"text"`
	Thread  string `json:"thread"`
	// Place is a tab of the Slack pane: general, direct or home.
	Place string `json:"place"`
	PDF   bool   `json:"pdf"`
	// Reply is the message to reply to, or in Slack to share.
	Reply string   `json:"reply"`
	Files []upload `json:"files"`
}

// route changes the routing.
func (d *Demo) route(ctx context.Context, to asked) (any, error) {
	d.mu.Lock()
	set, running := d.controls.SetRouting, d.bot == botRunning
	d.mu.Unlock()
	if set == nil || !running {
		return nil, errStopped
	}
	if err := set(ctx, to.Routing); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.routing = to.Routing
	d.notify()
	return nil, nil
}

var errNoPane = errors.New("there is no such pane")

func (d *Demo) press(_ context.Context, p asked) (any, error) {
	switch p.Pane {
	case "telegram":
		id, err := strconv.ParseInt(p.Message, 10, 64)
		if err == nil {
			_, err = d.telegram.Press(d.chat, id, d.person, p.Data)
		}
		return nil, err
	case "slack":
		_, err := d.slack.Press(d.placeOf(p), p.Message, d.member, p.Data, false)
		return nil, err
	}
	return nil, errNoPane
}
