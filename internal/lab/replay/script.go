package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"oneclaw/internal/record"
)

// script is the part of a recording that is played, with times.
type script struct {
	events   []event
	sends    sends
	requests []*modelRequest
	// identities are the services' descriptions of the bot and its users: the answers to getMe,
	// auth.test and users.info.
	identities map[string][]json.RawMessage
	// tolerated has the methods whose refusal is no difference: those that the recording has refused, and
	// those that show users nothing, such as the fetch of a file that the emulators do not have.
	tolerated map[string]bool
	scopes    []string
}

// event is an event that a platform sent to the bot.
type event struct {
	at      time.Time // when it arrived
	service string
	// kind is the type of an envelope.
	kind string
	body json.RawMessage
}

// send is a message that the bot has sent or changed.
type send struct {
	at      time.Time // when it began: users may answer before the response arrives
	service string
	// text is its content, without ids.
	text string
	// data is the data of its buttons, id its own id, and changes the id of the message that it changes.
	data        []string
	id, changes string
	// row is the row that it belongs to, name identifies it there.
	row, name string
}

// sends are the messages that a bot has sent and changed. The bot preserves the order of the
// messages in a chat, of those that one user sees there, and of the changes of a message. Each of
// these sequences is a row. Rows are independent.
type sends []send

// add appends a send to its row.
func (all sends) add(s send) sends {
	format := "%s, message %d of the bot"
	if s.changes != "" {
		format = "%s, change %d"
		if m := slices.IndexFunc(all, func(m send) bool { return m.row == s.row && m.id == s.changes }); m >= 0 {
			s.row = all[m].name
		} else {
			s.row += ", message " + s.changes
		}
	}
	n := 1
	for _, other := range all {
		if other.row == s.row {
			n++
		}
	}
	s.name = fmt.Sprintf(format, s.row, n)
	return append(all, s)
}

// find returns the send with the same name.
func (all sends) find(other send) (send, bool) {
	i := slices.IndexFunc(all, func(s send) bool { return s.name == other.name })
	if i < 0 {
		return send{}, false
	}
	return all[i], true
}

// modelRequest is a recorded request to a model.
type modelRequest struct {
	record.Line
	used bool
}

// newScript splits a recording into its events, sends and requests.
func newScript(lines []record.Line) *script {
	s := &script{identities: map[string][]json.RawMessage{}, tolerated: map[string]bool{}}
	for _, l := range lines {
		switch method := l.Name(); {
		case l.Service == record.ModelService:
			s.requests = append(s.requests, &modelRequest{Line: l})
		case l.Direction == record.In:
			var frame struct {
				ID, Type string
				Envelope string          `json:"envelope_id"`
				Payload  json.RawMessage `json:"payload"`
			}
			if json.Unmarshal(l.Response, &frame) == nil && frame.Envelope != "" {
				s.events = append(s.events, event{l.Time, l.Service, frame.Type, frame.Payload})
			}
		case method == "getUpdates":
			var answer struct {
				Result []json.RawMessage `json:"result"`
			}
			_ = json.Unmarshal(l.Response, &answer) // a failed call has no content
			for _, update := range answer.Result {
				s.events = append(s.events, event{l.EndedAt, l.Service, "", update})
			}
		case method == "getMe" || method == "auth.test" || method == "users.info":
			s.identities[method] = append(s.identities[method], l.Response)
			if l.OAuthScopes != "" {
				s.scopes = strings.Split(l.OAuthScopes, ",")
			}
		default:
			if sent, ok := parseSend(l); ok {
				s.sends = s.sends.add(sent)
			} else if l.Direction == record.Call {
				s.tolerated[method] = true
			}
		}
	}
	return s
}

// isSend reports whether users see an effect of the call.
func isSend(l record.Line) bool {
	method := l.Name()
	switch {
	case l.Direction != record.Call || l.Status != http.StatusOK || method == "sendChatAction":
		return false
	case strings.Contains(l.URL, "/commands/"), strings.HasPrefix(method, "chat."), method == "files.completeUploadExternal":
		return true
	}
	return slices.ContainsFunc([]string{"send", "edit", "answer", "delete", "pin"}, func(verb string) bool { return strings.HasPrefix(method, verb) }) &&
		method != "deleteWebhook"
}

// parseSend returns the send in a line, and false if there is none or the platform refused it.
func parseSend(l record.Line) (send, bool) {
	var fields map[string]any
	var answer struct {
		OK     bool   `json:"ok"`
		TS     string `json:"ts"`
		Result struct {
			ID json.Number `json:"message_id"`
		} `json:"result"`
	}
	_ = json.Unmarshal(l.Response, &answer) // some results are not a message
	if !isSend(l) || json.Unmarshal(l.Request, &fields) != nil || !answer.OK && !strings.Contains(l.URL, "/commands/") {
		return send{}, false
	}
	s := send{at: l.Time, service: l.Service, id: cmp.Or(answer.TS, answer.Result.ID.String())}
	field := func(names ...string) (value string) {
		for _, name := range names {
			if text, ok := fields[name].(string); ok {
				value = text
			}
		}
		return value
	}
	s.row, s.changes = s.service+" "+field("chat_id", "channel", "channel_id"), field("message_id", "ts")
	method := l.Name()
	if method == "chat.postEphemeral" {
		s.row += " for " + field("user")
	}
	if strings.Contains(l.URL, "/commands/") {
		method = "response"
	}
	s.text = method + " " + s.encodeWithoutIDs(fields)
	return s, true
}

// volatileFields are the fields that differ each time, and those implied by the chat.
var volatileFields = map[string]bool{
	"chat_id": true, "channel": true, "channel_id": true, "message_id": true, "ts": true, "callback_query_id": true, "token": true,
	"id": true, "block_id": true, "action_id": true, "callback_data": true, "value": true, "user": true,
}

// encodeWithoutIDs encodes a request without volatileFields, and records the data of buttons.
func (s *send) encodeWithoutIDs(v any) string {
	data, _ := json.Marshal(s.withoutIDs(v)) // v was decoded from JSON
	return string(data)
}

func (s *send) withoutIDs(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if data, ok := v[name].(string); ok && (name == "callback_data" || name == "value") {
				s.data = append(s.data, data)
			}
			if !volatileFields[name] {
				out[name] = s.withoutIDs(v[name])
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = s.withoutIDs(v[i])
		}
		return out
	case string:
		var inner any
		if (strings.HasPrefix(v, "{") || strings.HasPrefix(v, "[")) && json.Unmarshal([]byte(v), &inner) == nil {
			return s.withoutIDs(inner)
		}
		return v
	}
	return v
}

// describeRequest describes a request to a model by the roles of its messages, its last message, and
// the name of the model.
func describeRequest(request json.RawMessage) (roles, last, model string) {
	var body struct {
		Model           string
		Messages, Input []json.RawMessage
	}
	if json.Unmarshal(request, &body) != nil {
		return "", "", ""
	}
	var all []string
	for _, raw := range append(body.Messages, body.Input...) {
		var m struct{ Role, Type string }
		_ = json.Unmarshal(raw, &m) // a message without either is shown as ?
		all, last = append(all, cmp.Or(m.Role, m.Type, "?")), string(raw)
	}
	return strings.Join(all, " "), last, body.Model
}
