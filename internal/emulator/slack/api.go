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

// method is a method of the Web API. run is called with the lock held.
type method struct {
	run func(*call) (any, *refusal)
	// scopes are alternatives: the token needs one of them. None means that authorize checks no scope.
	scopes []string
	// scopeKind is "history" or "read" if the scope depends on the kind of channel, and "" otherwise.
	scopeKind string
	// appToken says that the method requires the app-level token.
	appToken bool
	// open says that the method needs no token.
	open bool
}

// methods returns the methods with their requirements, as documented on their pages
// (docs.slack.dev/reference/methods/<name>). For setStatus, chat:write has been sufficient since 2026-03-05,
// and the other scope will not be (docs.slack.dev/changelog/2026/03/05/set-status-scope-update): its page names
// only chat:write.
func methods() map[string]method {
	one := func(scope string) []string { return []string{scope} }
	return map[string]method{
		"agents.sessions.setStatus":             {run: setSessionStatus, scopes: one("chat:write")},
		"api.test":                              {run: apiTest, open: true},
		"apps.connections.open":                 {run: openConnection, scopes: one("connections:write"), appToken: true},
		"assistant.threads.setStatus":           {run: setStatus, scopes: one("chat:write")},
		"assistant.threads.setSuggestedPrompts": {run: setSuggestedPrompts, scopes: one(manifest.AgentScope)},
		"assistant.threads.setTitle":            {run: setThreadTitle, scopes: one(manifest.AgentScope)},
		"auth.test":                             {run: authTest},
		"chat.appendStream":                     {run: appendStream, scopes: one("chat:write")},
		"chat.delete":                           {run: deleteMessage, scopes: one("chat:write")},
		"chat.getPermalink":                     {run: getPermalink},
		"chat.postEphemeral":                    {run: postEphemeral, scopes: one("chat:write")},
		"chat.postMessage":                      {run: postMessage, scopes: one("chat:write")},
		"chat.startStream":                      {run: startStream, scopes: one("chat:write")},
		"chat.stopStream":                       {run: stopStream, scopes: one("chat:write")},
		"chat.update":                           {run: updateMessage, scopes: one("chat:write")},
		"conversations.history":                 {run: listHistory, scopeKind: "history"},
		"conversations.info":                    {run: channelInfo, scopeKind: "read"},
		"conversations.list":                    {run: listConversations, scopeKind: "read"},
		"conversations.members":                 {run: listMembers, scopeKind: "read"},
		"conversations.open":                    {run: openConversation, scopes: one("im:write")},
		"conversations.replies":                 {run: listReplies, scopeKind: "history"},
		"files.completeUploadExternal":          {run: completeUpload, scopes: one("files:write")},
		"files.getUploadURLExternal":            {run: createUploadURL, scopes: one("files:write")},
		"files.info":                            {run: fileInfo, scopes: one("files:read")},
		"reactions.add":                         {run: addReaction, scopes: one("reactions:write")},
		"reactions.get":                         {run: getReactions, scopes: one("reactions:read")},
		"reactions.remove":                      {run: removeReaction, scopes: one("reactions:write")},
		"team.info":                             {run: teamInfo, scopes: one("team:read")},
		"usergroups.list":                       {run: listUserGroups, scopes: one("usergroups:read")},
		"users.conversations":                   {run: userConversations, scopeKind: "read"},
		"users.info":                            {run: userInfo, scopes: one("users:read")},
		"users.list":                            {run: listUsers, scopes: one("users:read")},
		"views.open":                            {run: openView},
		"views.publish":                         {run: publishHome},
	}
}

// api serves the calls of the app. It parses requests, authorizes them, changes the world and writes
// the responses.
type api struct {
	cfg      *Config // immutable
	mu       *sync.Mutex
	world    *world
	app      *App
	notifier *notifier
	line     *delivery.Line
	life     *wire.Lifecycle
	hub      *wire.Hub[string, Message]
	faults   *wire.Faults[string]
	methods  map[string]method

	// Guarded by mu.
	flood            rateLimits
	droppedResponses int // number of accepted calls whose response was dropped
}

// call is a call of a method.
type call struct {
	*api
	r *http.Request
	p *wire.Params
	// channel and message are those that an accepted call created or changed.
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

// serveMethod runs a method, with the faults before and after it.
func (a *api) serveMethod(w http.ResponseWriter, r *http.Request, name string) {
	p, err := readParams(w, r)
	if err != nil {
		writeError(w, err)
		return
	}
	f, over := a.hub.Intercept(a.faults, w, r, name, p.Text("channel")+p.Text("channel_id"))
	if over {
		return
	}
	m, ok := a.methods[name]
	if !ok {
		unknown := newRefusal("unknown_method") // assumed
		writeError(w, unknown)
		return
	}
	if err := a.authorize(w, r, p, m); err != nil {
		writeError(w, err)
		return
	}
	c := &call{api: a, r: r, p: p}
	result, err := c.runMethod(m)
	a.cfg.Logger.Debug("web api call", "method", name, "refused", err != nil)
	if err != nil {
		writeError(w, err)
		return
	}
	a.writeAnswer(w, f, c, name, result)
}

// readParams reads the arguments of a request.
func readParams(w http.ResponseWriter, r *http.Request) (*wire.Params, *refusal) {
	p, err := wire.ReadParams(w, r, maxUpload+1<<20)
	switch {
	case err == nil:
		return p, nil
	case wire.IsJSON(r):
		return nil, newRefusal("invalid_json") // its page
	}
	return nil, newRefusal("invalid_form_data") // its page
}

// callToken returns the token of a call, from the header or a form, but not from JSON or the query.
func callToken(r *http.Request, p *wire.Params) string {
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
	t := callToken(r, p)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case m.open:
		return nil
	case t == "":
		return newRefusal("not_authed") // its page
	case t != DefaultBotToken && t != DefaultAppToken:
		return newRefusal("invalid_auth") // its page
	case a.app.revoked:
		return newRefusal("token_revoked") // its page
	case m.appToken != (t == DefaultAppToken):
		return newRefusal("not_allowed_token_type") // its page
	}
	scopes := a.app.scopes
	if m.appToken {
		scopes = a.cfg.AppScopes
	}
	w.Header().Set("X-OAuth-Scopes", strings.Join(scopes, ","))
	if len(m.scopes) > 0 && !slices.ContainsFunc(m.scopes, func(one string) bool { return slices.Contains(scopes, one) }) {
		return &refusal{code: "missing_scope", needed: m.scopes[0], provided: strings.Join(scopes, ",")}
	}
	return nil
}

// runMethod runs a method with the lock held.
func (c *call) runMethod(m method) (any, *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return m.run(c)
}

// writeAnswer writes the response to an accepted call, unless a fault drops the response.
func (a *api) writeAnswer(w http.ResponseWriter, f *Fault, c *call, name string, result any) {
	if f != nil {
		switch f.Effect {
		case CutAfter:
			a.recordDropped(c)
			panic(http.ErrAbortHandler)
		case BadJSON:
			a.recordDropped(c)
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
	a.life.RecordViolation(contract().Check(body, "results", name))
	writeJSON(w, http.StatusOK, body)
}

// recordDropped records, also on the call's message, that the response to a call was dropped.
func (a *api) recordDropped(c *call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.droppedResponses++
	if c.message != nil {
		c.message.droppedResponses++
		a.world.emit(event{Kind: eventCut, Chat: c.channel.id, Message: c.message.ts}, c.channel, c.message)
	}
}

func openConnection(c *call) (any, *refusal) {
	if c.line.State().OpenSockets() >= maxSockets {
		return nil, newRefusal("too_many_websockets") // assumed
	}
	ticket := c.world.newID("ticket-")
	c.line.AddTicket(ticket)
	return map[string]any{"url": c.life.Address("ws", c.r) + socketPath + "?ticket=" + ticket + "&app_id=" + appID}, nil
}
