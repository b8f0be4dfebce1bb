package demo

import (
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
	mux.HandleFunc("POST /press", d.press)
	mux.HandleFunc("POST /routing", d.route)
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

// receive reads what the page sends; false means that it was answered already.
func receive(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(into); err != nil {
		http.Error(w, "This can not be read.", http.StatusBadRequest)
		return false
	}
	return true
}

// route has tools reach the model in another way.
func (d *Demo) route(w http.ResponseWriter, r *http.Request) {
	var to struct {
		Routing string `json:"routing"`
	}
	if !receive(w, r, &to) {
		return
	}
	d.mu.Lock()
	set := d.controls.SetRouting
	running := d.bot == botRunning
	d.mu.Unlock()
	if set == nil || !running {
		http.Error(w, "The bot is not running.", http.StatusServiceUnavailable)
		return
	}
	if err := set(r.Context(), to.Routing); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	d.routing = to.Routing
	d.notify()
	d.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// press presses a button under a message of the bot.
func (d *Demo) press(w http.ResponseWriter, r *http.Request) {
	var p struct {
		Pane    string `json:"pane"`
		Message string `json:"message"`
		Data    string `json:"data"`
	}
	if !receive(w, r, &p) {
		return
	}
	var err error
	switch p.Pane {
	case "telegram":
		var id int64
		if id, err = strconv.ParseInt(p.Message, 10, 64); err == nil {
			_, err = d.telegram.Press(d.chat, id, d.person, p.Data)
		}
	case "slack":
		_, err = d.slack.Press(d.channel, p.Message, d.member, p.Data, false)
	default:
		err = errors.New("there is no such pane")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
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
	if !receive(w, r, &s) {
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
