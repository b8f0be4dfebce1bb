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
var pageFiles embed.FS

func (d *Demo) newHandler(restarts chan<- struct{}) http.Handler {
	mux := http.NewServeMux()
	files, err := fs.Sub(pageFiles, "page")
	if err != nil {
		panic(err) // the folder is embedded
	}
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /events", d.streamEvents)
	mux.HandleFunc("GET /given", d.serveRequest)
	mux.HandleFunc("GET /file", d.serveFile)
	mux.HandleFunc("POST /say", handle(d.say))
	mux.HandleFunc("POST /press", handle(d.press))
	mux.HandleFunc("POST /open", handle(d.openApp))
	mux.HandleFunc("POST /stop", handle(d.pressStop))
	mux.HandleFunc("POST /routing", handle(d.setRouting))
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
	return requireLocalhost(http.NewCrossOriginProtection().Handler(mux))
}

// requireLocalhost refuses requests that name another host: a foreign page can make a browser connect
// here under its own name (DNS rebinding).
func requireLocalhost(next http.Handler) http.Handler {
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

// minUpdateInterval is the least time between updates: changes in quick succession are joined.
const minUpdateInterval = 40 * time.Millisecond

// streamEvents streams the complete view after each change.
func (d *Demo) streamEvents(w http.ResponseWriter, r *http.Request) {
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
		if retry.Wait(r.Context(), minUpdateInterval) != nil {
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

// handle decodes a request and encodes the result. A nil result means no content.
func handle(do func(ctx context.Context, what pageRequest) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var what pageRequest
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

// pageRequest is a request from the page: a routing, a button press, or a message.
type pageRequest struct {
	Routing string `json:"routing"`
	Pane    string `json:"pane"`
	Message string `json:"message"`
	Data    string `json:"data"`
	Text    string `json:"text"`
	Thread  string `json:"thread"`
	// Place is a tab of the Slack pane: general, direct or home.
	Place string `json:"place"`
	PDF   bool   `json:"pdf"`
	// Sample is a kind of what people send besides words and files: see [samples].
	Sample string `json:"sample"`
	// Edit is the user's message that the text replaces.
	Edit string `json:"edit"`
	// Reply is the message to reply to, or in Slack the one to share.
	Reply string   `json:"reply"`
	Files []upload `json:"files"`
}

// setRouting changes the routing.
func (d *Demo) setRouting(ctx context.Context, to pageRequest) (any, error) {
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

func (d *Demo) press(_ context.Context, p pageRequest) (any, error) {
	switch p.Pane {
	case "telegram":
		id, err := strconv.ParseInt(p.Message, 10, 64)
		if err == nil {
			_, err = d.Telegram.Press(d.TelegramUser, id, d.TelegramUser, p.Data)
		}
		return nil, err
	case "slack":
		_, err := d.Slack.Press(d.channelOf(p), p.Message, d.SlackUser, p.Data, false)
		return nil, err
	}
	return nil, errNoPane
}
