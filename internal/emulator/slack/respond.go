package slack

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"
)

const commandsPath = "/commands/"

// response permits answers to a command or a press at its response_url.
type response struct {
	channel *channel
	user    string
	pressed *message // with the pressed button, if any
	made    time.Time
	used    int
}

// invite makes the trigger and the response_url of a command or a press.
func (w *world) invite(c *channel, user string, pressed *message) (trigger, address string) {
	key := w.id("R")
	if len(w.responses) > 10_000 {
		clear(w.responses) // they have all expired
	}
	w.responses[key] = &response{channel: c, user: user, pressed: pressed, made: w.cfg.Now()}
	return "13345224609.738474920." + strings.ToLower(key), w.files.base + commandsPath + w.cfg.Team + "/" + key + "/secret"
}

// serveResponse accepts an answer at a response_url: five within 30 minutes
// (docs.slack.dev/interactivity/handling-user-interaction). The words of its refusals are
// assumed.
func (a *api) serveResponse(w http.ResponseWriter, r *http.Request) {
	if _, over := a.hub.Meet(a.faults, w, r, "response", ""); over {
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, commandsPath), "/")
	var body answer
	if err := decodeObject(w, r, &body); err != nil || len(parts) != 3 {
		http.Error(w, "invalid_payload", http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	resp := a.world.responses[parts[1]]
	switch {
	case resp == nil || a.cfg.Now().Sub(resp.made) > responseAge:
		http.Error(w, "expired_url", http.StatusNotFound)
	case resp.used >= maxResponses:
		http.Error(w, "used_url", http.StatusNotFound)
	case body.Text == "" && len(body.Blocks) == 0:
		http.Error(w, "no_text", http.StatusBadRequest)
	case len(body.Blocks) > 0 && checkBlocks(body.Blocks, maxBlocks) != nil:
		http.Error(w, "invalid_blocks", http.StatusBadRequest)
	default:
		resp.used++
		if body.Replace && resp.pressed != nil {
			a.world.replace(resp.channel, resp.pressed, body)
		} else {
			a.world.show(resp, body)
		}
		_, _ = io.WriteString(w, "ok")
	}
}

// answer is an app's answer to a command: in the acknowledgement, or later at the response_url.
type answer struct {
	Type    string          `json:"response_type"`
	Text    string          `json:"text"`
	Blocks  json.RawMessage `json:"blocks"`
	Replace bool            `json:"replace_original"`
}

func (w *world) show(r *response, a answer) {
	m := &message{user: w.cfg.BotUser, bot: true, text: a.Text, blocks: a.Blocks}
	if r.pressed != nil {
		m.parent = r.pressed.parent
	}
	if a.Type != "in_channel" {
		m.ephemeral = r.user
	}
	w.add(r.channel, m)
}

// replace changes the message with the pressed button.
func (w *world) replace(c *channel, m *message, a answer) {
	m.edits = append(m.edits, Edit{At: w.cfg.Now(), Text: m.text})
	m.text, m.blocks, m.edited = a.Text, a.Blocks, w.cfg.Now()
	w.emit(Event{Kind: EventEdit, Chat: c.id, Message: m.ts}, c, m)
}

// respond shows the app's immediate answer to the author of a command.
func (w *world) respond(channelID string, typed, answered json.RawMessage) {
	var a answer
	if json.Unmarshal(answered, &a) != nil || a.Text == "" {
		return
	}
	var command struct {
		User string `json:"user_id"`
	}
	if c := w.channels[channelID]; c != nil && json.Unmarshal(typed, &command) == nil {
		w.show(&response{channel: c, user: command.User}, a)
	}
}
