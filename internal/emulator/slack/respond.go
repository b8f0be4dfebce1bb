package slack

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"
)

const commandsPath = "/commands/"

// responseURL is the response_url of a command or a button press.
type responseURL struct {
	channel        *channel
	user           string
	pressedMessage *message // message of the pressed button, if any
	created        time.Time
	uses           int
	opened         bool // its trigger has opened a view
}

// newResponseURL returns the trigger_id and the response_url for a command or a button press.
func (w *world) newResponseURL(c *channel, user string, pressed *message) (trigger, address string) {
	key := w.newID("R")
	if len(w.responses) > 10_000 {
		clear(w.responses) // most of them have expired
	}
	w.responses[key] = &responseURL{channel: c, user: user, pressedMessage: pressed, created: w.cfg.Now()}
	return "13345224609.738474920." + strings.ToLower(key), w.files.baseURL + commandsPath + w.cfg.Team + "/" + key + "/secret"
}

// serveResponse accepts answers at a response_url, five within 30 minutes
// (docs.slack.dev/interactivity/handling-user-interaction). The wording of its refusals is
// assumed.
func (a *api) serveResponse(w http.ResponseWriter, r *http.Request) {
	if _, over := a.hub.Intercept(a.faults, w, r, "response", ""); over {
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, commandsPath), "/")
	var body commandAnswer
	if err := decodeObject(w, r, &body); err != nil || len(parts) != 3 {
		http.Error(w, "invalid_payload", http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	resp := a.world.responses[parts[1]]
	switch {
	case resp == nil || a.cfg.Now().Sub(resp.created) > maxResponseAge:
		http.Error(w, "expired_url", http.StatusNotFound)
	case resp.uses >= maxResponses:
		http.Error(w, "used_url", http.StatusNotFound)
	case body.Text == "" && len(body.Blocks) == 0:
		http.Error(w, "no_text", http.StatusBadRequest)
	case len(body.Blocks) > 0 && checkBlocks(body.Blocks, maxBlocks) != nil:
		http.Error(w, "invalid_blocks", http.StatusBadRequest)
	default:
		resp.uses++
		if body.ReplaceOriginal && resp.pressedMessage != nil {
			a.world.replaceMessage(resp.channel, resp.pressedMessage, body)
		} else {
			a.world.showAnswer(resp, body)
		}
		_, _ = io.WriteString(w, "ok")
	}
}

// commandAnswer is the app's answer to a command, in the acknowledgement or at the response_url.
type commandAnswer struct {
	ResponseType    string          `json:"response_type"`
	Text            string          `json:"text"`
	Blocks          json.RawMessage `json:"blocks"`
	ReplaceOriginal bool            `json:"replace_original"`
}

func (w *world) showAnswer(r *responseURL, a commandAnswer) {
	m := &message{user: w.cfg.BotUser, fromBot: true, text: a.Text, blocks: a.Blocks}
	if r.pressedMessage != nil {
		m.parent = r.pressedMessage.parent
	}
	if a.ResponseType != "in_channel" {
		m.ephemeral = r.user
	}
	w.addMessage(r.channel, m)
}

// replaceMessage replaces the message of the pressed button.
func (w *world) replaceMessage(c *channel, m *message, a commandAnswer) {
	m.edits = append(m.edits, Edit{At: w.cfg.Now(), Text: m.text})
	m.text, m.blocks, m.edited = a.Text, a.Blocks, w.cfg.Now()
	w.emit(event{Kind: eventEdit, Chat: c.id, Message: m.ts}, c, m)
}

// showCommandAnswer shows the app's immediate answer to the author of a command: an object, or over HTTP also a plain text
// (docs.slack.dev/interactivity/implementing-slash-commands).
func (w *world) showCommandAnswer(channelID string, typed, answered json.RawMessage) {
	var a commandAnswer
	if json.Unmarshal(answered, &a) != nil {
		a = commandAnswer{Text: string(answered)}
	}
	if strings.TrimSpace(a.Text) == "" {
		return
	}
	var command struct {
		UserID string `json:"user_id"`
	}
	if c := w.channels[channelID]; c != nil && json.Unmarshal(typed, &command) == nil {
		w.showAnswer(&responseURL{channel: c, user: command.UserID}, a)
	}
}
