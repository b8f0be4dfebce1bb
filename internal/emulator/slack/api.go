package slack

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"oneclaw/internal/emulator/slack/delivery"
	"oneclaw/internal/emulator/slack/manifest"
	"oneclaw/internal/emulator/wire"
)

// method is one method of the Web API. Its run is called with the lock held.
type method struct {
	run func(*call) (any, *refusal)
	// scopes are the alternatives of which the token needs one. None means that any token will do.
	scopes []string
	// kind is "history" or "read" if the scope depends on the kind of channel.
	kind string
	// app says that the method needs the app-level token.
	app bool
}

// methods lists the methods with their requirements, as on their pages
// (docs.slack.dev/reference/methods/<name>). For setStatus either scope is sufficient since
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

// api serves the app's calls: it parses requests, authorizes them, changes the world and
// answers.
type api struct {
	cfg     *Config // immutable
	mu      *sync.Mutex
	world   *world
	app     *App
	news    *news
	line    *delivery.Line
	life    *wire.Lifecycle
	hub     *wire.Hub[string, Message]
	faults  *wire.Faults[string]
	methods map[string]method

	// Guarded by mu.
	flood flood
	cuts  int // accepted calls whose response was dropped
}

// call is one call of a method.
type call struct {
	*api
	r *http.Request
	p *wire.Params
	// channel and message are what an accepted call created or changed.
	channel *channel
	message *message
}

func writeError(w http.ResponseWriter, e *refusal) {
	body := map[string]any{"ok": false, "error": e.code}
	if e.needed != "" {
		body["needed"], body["provided"] = e.needed, e.provided
	}
	if len(e.messages) > 0 {
		body["response_metadata"] = map[string]any{"messages": e.messages}
	}
	status := http.StatusOK
	if e.retryAfter > 0 {
		status = http.StatusTooManyRequests
		w.Header().Set("Retry-After", strconv.Itoa(e.retryAfter))
	}
	writeJSON(w, status, body)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	wire.WriteJSON(w, status, "application/json; charset=utf-8", v)
}

// serveMethod runs one method, with the faults before and after it.
func (a *api) serveMethod(w http.ResponseWriter, r *http.Request, name string) {
	p, err := readParams(w, r)
	if err != nil {
		writeError(w, err)
		return
	}
	f, over := a.hub.Meet(a.faults, w, r, name, p.Text("channel")+p.Text("channel_id"))
	if over {
		return
	}
	m, ok := a.methods[name]
	if !ok {
		unknown := refuse("unknown_method") // assumed
		writeError(w, unknown)
		return
	}
	if err := a.authorize(w, r, p, m); err != nil {
		writeError(w, err)
		return
	}
	c := &call{api: a, r: r, p: p}
	result, err := c.do(m)
	a.cfg.Logger.Debug("web api call", "method", name, "refused", err != nil)
	if err != nil {
		writeError(w, err)
		return
	}
	a.answer(w, f, c, name, result)
}

// readParams reads the whole request.
func readParams(w http.ResponseWriter, r *http.Request) (*wire.Params, *refusal) {
	p, err := wire.ReadParams(w, r, maxUpload+1<<20)
	switch {
	case err == nil:
		return p, nil
	case wire.IsJSON(r):
		return nil, refuse("invalid_json") // its page
	}
	return nil, refuse("invalid_form_data") // its page
}

// token returns the token of a call: from the header, or a form, but not from JSON.
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
func (a *api) authorize(w http.ResponseWriter, r *http.Request, p *wire.Params, m method) *refusal {
	t := token(r, p)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case t == "":
		return refuse("not_authed") // its page
	case t != DefaultBotToken && t != DefaultAppToken:
		return refuse("invalid_auth") // its page
	case a.app.revoked:
		return refuse("token_revoked") // its page
	case m.app != (t == DefaultAppToken):
		return refuse("not_allowed_token_type") // its page
	}
	scopes := a.app.scopes
	if m.app {
		scopes = a.cfg.AppScopes
	}
	w.Header().Set("X-OAuth-Scopes", strings.Join(scopes, ","))
	if len(m.scopes) > 0 && !slices.ContainsFunc(m.scopes, func(one string) bool { return slices.Contains(scopes, one) }) {
		return &refusal{code: "missing_scope", needed: m.scopes[0], provided: strings.Join(scopes, ",")}
	}
	return nil
}

// do runs a method.
func (c *call) do(m method) (any, *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return m.run(c)
}

// answer answers an accepted request, unless a fault drops the response.
func (a *api) answer(w http.ResponseWriter, f *Fault, c *call, name string, result any) {
	if f != nil {
		switch f.Effect {
		case CutAfter:
			a.markCut(c)
			panic(http.ErrAbortHandler)
		case BadJSON:
			a.markCut(c)
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
	checked(a.life, body, "results", name)
	writeJSON(w, http.StatusOK, body)
}

// markCut records on a message that the response to its call was dropped.
func (a *api) markCut(c *call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cuts++
	if c.message != nil {
		c.message.cut++
		a.world.emit(Event{Kind: EventCut, Chat: c.channel.id, Message: c.message.ts}, c.channel, c.message)
	}
}

func connectionsOpen(c *call) (any, *refusal) {
	if c.line.State().Connected() >= maxSockets {
		return nil, refuse("too_many_websockets") // assumed
	}
	ticket := c.world.id("ticket-")
	c.line.Admit(ticket)
	return map[string]any{"url": c.life.Address("ws", c.r) + socketPath + "?ticket=" + ticket + "&app_id=" + AppID}, nil
}
