package demo

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"time"

	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
)

//go:embed page
var page embed.FS

// handler serves the page and what it asks for.
func (d *Demo) handler(restarts chan<- struct{}) http.Handler {
	mux := http.NewServeMux()
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // the embedded folder is there
	}
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /events", d.events)
	mux.HandleFunc("POST /say", d.say)
	mux.HandleFunc("GET /google/", func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		web := d.web
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
		case <-time.After(time.Second): // a restart is under way already
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return local(http.NewCrossOriginProtection().Handler(mux))
}

// local refuses requests that name another host: a foreign page can make a browser
// come here under a name of its own (DNS rebinding).
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

// minInterval joins changes that come close together into one picture.
const minInterval = 40 * time.Millisecond

// events streams the view, whole, each time it has changed.
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
		calm := time.NewTimer(minInterval)
		select {
		case <-calm.C:
		case <-r.Context().Done():
			calm.Stop()
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// saying is what the person writes.
type saying struct {
	Pane   string `json:"pane"`
	Text   string `json:"text"`
	Thread string `json:"thread"`
	PDF    bool   `json:"pdf"`
}

func (d *Demo) say(w http.ResponseWriter, r *http.Request) {
	var s saying
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&s); err != nil {
		http.Error(w, "This is not a message.", http.StatusBadRequest)
		return
	}
	if strings.TrimSpace(s.Text) == "" && !s.PDF {
		http.Error(w, "The message is empty.", http.StatusBadRequest)
		return
	}
	var sent any
	var err error
	switch s.Pane {
	case "telegram":
		sent, err = d.sayTelegram(s)
	case "slack":
		sent, err = d.saySlack(s)
	default:
		err = errors.New("there is no such pane")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(sent) // the page may be gone
}

func (d *Demo) sayTelegram(s saying) (telegram.Sent, error) {
	var options *telegram.SayOptions
	if s.PDF {
		options = &telegram.SayOptions{Attachment: &telegram.Attachment{
			Kind: telegram.KindDocument, Name: sampleName, MIME: "application/pdf", Data: samplePDF,
		}}
	}
	return d.telegram.Say(d.chat, d.person, s.Text, options)
}

// saySlack mentions the bot where the message begins a thread; inside one no mention
// is needed.
func (d *Demo) saySlack(s saying) (slack.Sent, error) {
	text := s.Text
	if s.Thread == "" {
		text = strings.TrimSpace("<@" + d.slack.BotUser() + "> " + text)
	}
	options := &slack.SayOptions{Thread: s.Thread}
	if s.PDF {
		options.Files = []slack.Attachment{{Name: sampleName, MIME: "application/pdf", Data: samplePDF}}
	}
	return d.slack.Say(d.channel, d.member, text, options)
}
