package demo

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"oneclaw/agent"
)

const (
	// maxRequests bounds the stored requests, maxMessages the messages of each request, and
	// maxMessageBytes the size of each of those.
	maxRequests     = 100
	maxMessages     = 30
	maxMessageBytes = 4000
)

// modelRequest is the last request to the model for a message.
type modelRequest struct {
	// refs are the keys of the messages that it answers: platform:chat/message/kind.
	refs []string

	Model string `json:"model"`
	Tools int    `json:"tools"`
	// Omitted counts the older messages of the request that are not shown.
	Omitted  int              `json:"before"`
	Messages []requestMessage `json:"messages"`
}

// requestMessage is a message of a request.
type requestMessage struct {
	Role string `json:"role"`
	Text string `json:"text,omitempty"`
	// Quoted is quoted text by others, with the markers for the model.
	Quoted string `json:"quoted,omitempty"`
	// Pictures are the names of the pictures shown to the model, Files those of other files.
	Pictures []string `json:"pictures,omitempty"`
	Files    []string `json:"files,omitempty"`
	// Calls are the tools that the model called.
	Calls []string `json:"calls,omitempty"`
}

// recordRequest records a request. The caller holds d.mu.
func (d *Demo) recordRequest(e *agent.RequestEvent) {
	g := &modelRequest{Model: e.Model, Tools: len(e.Tools)}
	shown := agent.ShownPictures(e.Messages)
	for i := range e.Messages {
		m := &e.Messages[i]
		switch {
		case m.BeginsTurn():
			g.refs = []string{m.Ref}
		case m.JoinedRef != "":
			g.refs = append(g.refs, m.JoinedRef)
		}
		one := requestMessage{Role: string(m.Role), Text: clip(m.Text), Quoted: clip(m.Quoted)}
		for k, f := range m.Files {
			if slices.ContainsFunc(shown, func(s agent.PictureRef) bool { return s.Message == i && s.File == k }) {
				one.Pictures = append(one.Pictures, f.Path)
			} else {
				one.Files = append(one.Files, f.Path)
			}
		}
		for _, call := range m.Calls {
			one.Calls = append(one.Calls, call.EffectiveTool())
		}
		g.Messages = append(g.Messages, one)
	}
	g.Omitted = max(0, len(g.Messages)-maxMessages)
	g.Messages = g.Messages[g.Omitted:]
	d.requests = slices.DeleteFunc(d.requests, func(old *modelRequest) bool { return slices.Equal(old.refs, g.refs) })
	d.requests = append(d.requests[max(0, len(d.requests)-maxRequests+1):], g)
}

func clip(text string) string {
	if len(text) <= maxMessageBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessageBytes], "") + " …"
}

// serveRequest serves the request for a message in a pane.
func (d *Demo) serveRequest(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	ref := d.chatOf(query.Get("pane"), query.Get("place")) + "/" + query.Get("message") + "/text"
	d.mu.Lock()
	var found *modelRequest
	for _, g := range d.requests {
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
