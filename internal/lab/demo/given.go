package demo

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"oneclaw/agent"
)

const (
	// maxGiven bounds the messages whose requests are kept, maxOf the messages of each request, and
	// maxWords the bytes of each of those.
	maxGiven = 100
	maxOf    = 30
	maxWords = 4000
)

// modelRequest is the model's last request for a message.
type modelRequest struct {
	// refs are the keys of the answered messages: platform:chat/message/kind.
	refs []string

	Model string `json:"model"`
	Tools int    `json:"tools"`
	// Before is how many older messages of the request are not shown.
	Before   int            `json:"before"`
	Messages []givenMessage `json:"messages"`
}

// givenMessage is a message of a request.
type givenMessage struct {
	Role string `json:"role"`
	Text string `json:"text,omitempty"`
	// Quoted is the text of others, with its marks for the model.
	Quoted string `json:"quoted,omitempty"`
	// Pictures are the names of pictures shown to the model, Files of other files.
	Pictures []string `json:"pictures,omitempty"`
	Files    []string `json:"files,omitempty"`
	// Calls are the tools that the model called.
	Calls []string `json:"calls,omitempty"`
}

// give records a request. The lock is held.
func (d *Demo) give(e *agent.RequestEvent) {
	g := &modelRequest{Model: e.Model, Tools: len(e.Tools)}
	shown := agent.Shown(e.Messages)
	for i := range e.Messages {
		m := &e.Messages[i]
		switch {
		case m.BeginsTurn():
			g.refs = []string{m.Ref}
		case m.Joined != "":
			g.refs = append(g.refs, m.Joined)
		}
		one := givenMessage{Role: string(m.Role), Text: clip(m.Text), Quoted: clip(m.Quoted)}
		for k, f := range m.Files {
			if slices.ContainsFunc(shown, func(s agent.PictureRef) bool { return s.Message == i && s.File == k }) {
				one.Pictures = append(one.Pictures, f.Path)
			} else {
				one.Files = append(one.Files, f.Path)
			}
		}
		for _, call := range m.Calls {
			one.Calls = append(one.Calls, call.Runs())
		}
		g.Messages = append(g.Messages, one)
	}
	g.Before = max(0, len(g.Messages)-maxOf)
	g.Messages = g.Messages[g.Before:]
	d.given = slices.DeleteFunc(d.given, func(old *modelRequest) bool { return slices.Equal(old.refs, g.refs) })
	d.given = append(d.given[max(0, len(d.given)-maxGiven+1):], g)
}

func clip(text string) string {
	if len(text) <= maxWords {
		return text
	}
	return strings.ToValidUTF8(text[:maxWords], "") + " …"
}

// showGiven serves the request for a message of a pane.
func (d *Demo) showGiven(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	ref := d.place(query.Get("pane"), query.Get("place")) + "/" + query.Get("message") + "/text"
	d.mu.Lock()
	var found *modelRequest
	for _, g := range d.given {
		if slices.Contains(g.refs, ref) {
			found = g
		}
	}
	d.mu.Unlock()
	if found == nil {
		http.Error(w, "The model was given nothing for this message.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(found) // the page may be gone
}
