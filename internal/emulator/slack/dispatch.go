package slack

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"oneclaw/internal/emulator/slack/manifest"
	"oneclaw/internal/emulator/wire"
)

// method is one method of the Web API. Its run locks the server itself.
type method struct {
	run func(*call) (any, *apiError)
	// scopes are those of which the token needs one. None means that any token will do.
	scopes []string
	// kind is "history" or "read" where the scope is that of the kind of channel.
	kind string
	// app is true where the app-level token is wanted instead.
	app bool
}

// methods lists the methods with what they take, as their pages say
// (docs.slack.dev/reference/methods/<name>). For setStatus either scope will do since
// 2026-03-05 (docs.slack.dev/changelog/2026/03/05/set-status-scope-update).
func methods() map[string]method {
	one := func(scope string) []string { return []string{scope} }
	return map[string]method{
		"agents.sessions.setStatus":             {run: sessionStatus, scopes: one("chat:write")},
		"apps.connections.open":                 {run: connectionsOpen, scopes: one("connections:write"), app: true},
		"assistant.threads.setStatus":           {run: setStatus, scopes: []string{"chat:write", manifest.AgentScope}},
		"assistant.threads.setSuggestedPrompts": {run: setSuggestedPrompts, scopes: one(manifest.AgentScope)},
		"assistant.threads.setTitle":            {run: setThreadTitle, scopes: one(manifest.AgentScope)},
		"auth.test":                             {run: authTest},
		"chat.appendStream":                     {run: appendStream, scopes: one("chat:write")},
		"chat.delete":                           {run: deleteMessage, scopes: one("chat:write")},
		"chat.postEphemeral":                    {run: postEphemeral, scopes: one("chat:write")},
		"chat.postMessage":                      {run: postMessage, scopes: one("chat:write")},
		"chat.startStream":                      {run: startStream, scopes: one("chat:write")},
		"chat.stopStream":                       {run: stopStream, scopes: one("chat:write")},
		"chat.update":                           {run: updateMessage, scopes: one("chat:write")},
		"conversations.history":                 {run: history, kind: "history"},
		"conversations.info":                    {run: channelInfo, kind: "read"},
		"conversations.open":                    {run: openConversation, scopes: one("im:write")},
		"conversations.replies":                 {run: replies, kind: "history"},
		"files.completeUploadExternal":          {run: completeUpload, scopes: one("files:write")},
		"files.getUploadURLExternal":            {run: uploadURL, scopes: one("files:write")},
		"files.info":                            {run: fileInfo, scopes: one("files:read")},
		"reactions.add":                         {run: addReaction, scopes: one("reactions:write")},
		"reactions.remove":                      {run: removeReaction, scopes: one("reactions:write")},
		"team.info":                             {run: teamInfo, scopes: one("team:read")},
		"users.conversations":                   {run: userConversations, kind: "read"},
		"users.info":                            {run: userInfo, scopes: one("users:read")},
		"views.publish":                         {run: publishHome},
	}
}

// call is one call of a method.
type call struct {
	s *Server
	r *http.Request
	p *wire.Params
	// channel and message are what an accepted call made or changed.
	channel *channel
	message *message
}

// apiError is a refusal as the service words it.
type apiError struct {
	status           int // 0 for 200
	code             string
	needed, provided string
	retryAfter       int
	messages         []string
}

func refuse(code string, messages ...string) *apiError {
	return &apiError{code: code, messages: messages}
}

func tooMany(seconds int) *apiError {
	return &apiError{status: http.StatusTooManyRequests, code: "ratelimited", retryAfter: seconds}
}

func (s *Server) missing(scope string) *apiError {
	return &apiError{code: "missing_scope", needed: scope, provided: strings.Join(s.scopes, ",")}
}

func writeError(w http.ResponseWriter, e *apiError) {
	body := map[string]any{"ok": false, "error": e.code}
	if e.needed != "" {
		body["needed"], body["provided"] = e.needed, e.provided
	}
	if len(e.messages) > 0 {
		body["response_metadata"] = map[string]any{"messages": e.messages}
	}
	if e.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.retryAfter))
	}
	status := http.StatusOK
	if e.status != 0 {
		status = e.status
	}
	writeJSON(w, status, body)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	wire.WriteJSON(w, status, "application/json; charset=utf-8", v)
}

// serveMethod runs one method between the faults that come before it and those
// that come after it.
func (s *Server) serveMethod(w http.ResponseWriter, r *http.Request, name string) {
	p, err := readParams(w, r)
	if err != nil {
		writeError(w, err)
		return
	}
	f, over := s.hub.Meet(s.Faults, w, r, name, p.Text("channel")+p.Text("channel_id"))
	if over {
		return
	}
	m, ok := s.methods[name]
	if !ok {
		refusal := refuse("unknown_method") // assumed
		writeError(w, refusal)
		return
	}
	if err := s.authorize(w, r, p, m); err != nil {
		writeError(w, err)
		return
	}
	c := &call{s: s, r: r, p: p}
	result, err := m.run(c)
	s.log.Debug("web api call", "method", name, "refused", err != nil)
	if err != nil {
		writeError(w, err)
		return
	}
	s.answer(w, f, c, result)
}

// token is the token of a call: in the header, or in a form. JSON holds none.
func token(r *http.Request, p *wire.Params) string {
	if t, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return strings.TrimSpace(t)
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") || r.URL.Query().Has("token") {
		return ""
	}
	return p.Text("token")
}

// authorize checks the token, its kind and its scopes.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request, p *wire.Params, m method) *apiError {
	t := token(r, p)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case t == "":
		return refuse("not_authed") // its page
	case t != s.cfg.BotToken && t != s.cfg.AppToken:
		return refuse("invalid_auth") // its page
	case s.revoked:
		return refuse("token_revoked") // its page
	case m.app != (t == s.cfg.AppToken):
		return refuse("not_allowed_token_type") // its page
	}
	scopes := s.scopes
	if m.app {
		scopes = s.cfg.AppScopes
	}
	w.Header().Set("X-OAuth-Scopes", strings.Join(scopes, ","))
	if len(m.scopes) > 0 && !slices.ContainsFunc(m.scopes, func(one string) bool { return slices.Contains(scopes, one) }) {
		return &apiError{code: "missing_scope", needed: m.scopes[0], provided: strings.Join(scopes, ",")}
	}
	return nil
}

// answer answers an accepted request, unless a fault spoils the answer.
func (s *Server) answer(w http.ResponseWriter, f *Fault, c *call, result any) {
	if f != nil {
		switch f.Effect {
		case CutAfter:
			s.markCut(c)
			panic(http.ErrAbortHandler)
		case BadJSON:
			s.markCut(c)
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_, _ = io.WriteString(w, `{"ok":true,"channel":`)
			return
		}
	}
	body, ok := result.(map[string]any)
	if !ok {
		body = map[string]any{}
	}
	body["ok"] = true
	writeJSON(w, http.StatusOK, body)
}

// markCut notes on the message a call made or changed that its sender did not hear
// of it.
func (s *Server) markCut(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cuts++
	if c.message != nil {
		c.message.cut++
		s.emit(Event{Kind: EventCut, Chat: c.channel.id, Message: c.message.ts}, c.channel, c.message)
	}
}
