package slack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"oneclaw/internal/emulator/slack/blockkit"
	"oneclaw/internal/emulator/slack/manifest"
	"oneclaw/internal/emulator/wire"
)

// Limits of streams. Their lifetime is undocumented; apps observe about five minutes
// (slackapi/python-slack-sdk issue 1859). The limits of tasks are on the page of chat.appendStream.
const (
	maxStreamAge = 5 * time.Minute
	maxTaskText  = 256
)

// stream is the state of a message that the bot streams.
type stream struct {
	started time.Time
	form    string // the parameter of the first call that had content, which the others must use: @slack/web-api starts without
	ended   bool
	tasks   []Task
}

// The parameters that a stream's content may be in.
const (
	inText   = "markdown_text"
	inChunks = "chunks"
)

// contentOf returns the parameter that the content of a call is in, or "".
func contentOf(p *wire.Params) string {
	for _, form := range []string{inText, inChunks} {
		if p.Text(form) != "" {
			return form
		}
	}
	return ""
}

// Task is a task card in a stream.
type Task struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Status string `json:"status"`
}

// chunk is a piece of a stream (docs.slack.dev/reference/methods/chat.appendStream).
type chunk struct {
	Type string `json:"type"`
	Text string `json:"text"`
	Task
}

// isValid reports whether the service accepts a task.
func (t Task) isValid() bool {
	states := []string{"", "pending", "in_progress", "complete", "error"}
	return t.ID != "" && t.Title != "" && utf8.RuneCountInString(t.Title) <= maxTaskText && slices.Contains(states, t.Status)
}

// isStreaming reports whether a message is an open stream. The service ends old streams.
func (w *world) isStreaming(m *message) bool {
	return m.stream != nil && !m.stream.ended && w.cfg.Now().Sub(m.stream.started) < maxStreamAge
}

// parseStreamCall returns the content that a call adds to a stream. Apps report two of the errors
// (docs.slack.dev/reference/methods/chat.appendStream).
func parseStreamCall(p *wire.Params, st *stream) (text string, tasks []Task, err *refusal) {
	text = p.Text("markdown_text")
	var chunks []chunk
	has, bad := p.DecodeJSON("chunks", &chunks)
	switch {
	case bad != nil:
		return "", nil, newRefusal("invalid_chunks") // its page
	case has && text != "":
		return "", nil, newRefusal("cannot_provide_both_markdown_text_and_chunks") // reported by apps
	case st != nil && st.form != "" && contentOf(p) != "" && st.form != contentOf(p):
		return "", nil, newRefusal("streaming_mode_mismatch") // reported by apps
	}
	for _, c := range chunks {
		switch c.Type {
		case "markdown_text":
			text += c.Text
		case "task_update":
			if !c.isValid() {
				return "", nil, newRefusal("invalid_chunks") // its page
			}
			tasks = append(tasks, c.Task)
		case "plan_update", "blocks":
		default:
			return "", nil, newRefusal("invalid_chunks") // its page
		}
	}
	if utf8.RuneCountInString(text) > blockkit.MaxMarkdown {
		return "", nil, newRefusal("msg_too_long") // assumed: its page has the limit
	}
	return text, tasks, nil
}

// appendContent appends a text and tasks to a stream.
func (m *message) appendContent(text string, tasks []Task) *refusal {
	if utf8.RuneCountInString(m.text)+utf8.RuneCountInString(text) > blockkit.MaxMarkdown {
		return newRefusal("msg_too_long") // assumed: its page has the limit
	}
	m.text += text
	for _, t := range tasks {
		at := slices.IndexFunc(m.stream.tasks, func(known Task) bool { return known.ID == t.ID })
		if at < 0 {
			m.stream.tasks = append(m.stream.tasks, t)
			continue
		}
		m.stream.tasks[at] = t
	}
	return nil
}

// startStream starts a stream. That starts the session of an agent app and clears the status of the
// thread (docs.slack.dev/ai/agent-sessions). In a channel, a recipient is required, and the thread may be
// left out.
func startStream(c *call) (any, *refusal) {
	text, tasks, err := parseStreamCall(c.p, nil)
	if err != nil {
		return nil, err
	}
	ch, err := c.world.findChannel(c.p.Text("channel"), true)
	if err != nil {
		return nil, err
	}
	switch {
	case ch.kind == DM && c.p.Text("thread_ts") == "":
		return nil, newRefusal("invalid_arguments", "[ERROR] missing required field: thread_ts") // reported by apps: github.com/vercel/chat/issues/268
	case ch.kind != DM && c.p.Text("recipient_user_id") == "":
		return nil, newRefusal("missing_recipient_user_id") // assumed: its page says that it is required
	case ch.kind != DM && c.p.Text("recipient_team_id") == "":
		return nil, newRefusal("missing_recipient_team_id") // assumed: its page says that it is required
	}
	m := &message{user: c.cfg.BotUser, fromBot: true, stream: &stream{started: c.cfg.Now(), form: contentOf(c.p)}}
	if m.parent, err = ch.threadRoot(c.p.Text("thread_ts")); err != nil {
		return nil, err
	}
	if err := m.appendContent(text, tasks); err != nil {
		return nil, err
	}
	if err := c.flood.takeMessage(ch.id, c.cfg.Now()); err != nil {
		return nil, err
	}
	c.notifier.publish(ch, m)
	if c.app.hasScope(manifest.AgentScope) {
		c.world.setSession(ch, cmp.Or(m.threadTS(), m.ts), "processing")
	}
	c.channel, c.message = ch, m
	return map[string]any{"channel": ch.id, "ts": m.ts}, nil
}

// botStream returns the open stream of the bot that has the ts of a call.
func (c *call) botStream() (*channel, *message, *refusal) {
	ch, m, err := c.botMessage("message_not_owned_by_app")
	switch {
	case err != nil:
		return nil, nil, err
	case !c.world.isStreaming(m):
		return nil, nil, newRefusal("message_not_in_streaming_state") // reported by apps: github.com/vercel/chat/issues/607
	}
	return ch, m, nil
}

func appendStream(c *call) (any, *refusal) { return c.updateStream(false) }

// stopStream ends a stream, and makes the session of its thread active.
func stopStream(c *call) (any, *refusal) { return c.updateStream(true) }

func (c *call) updateStream(end bool) (any, *refusal) {
	ch, m, err := c.botStream()
	if err != nil {
		return nil, err
	}
	text, tasks, err := parseStreamCall(c.p, m.stream)
	switch {
	case err != nil:
		return nil, err
	case !end && text == "" && len(tasks) == 0:
		return nil, newRefusal("no_text") // assumed
	}
	before := c.world.messageJSON(m)
	if err := m.appendContent(text, tasks); err != nil {
		return nil, err
	}
	m.stream.form = cmp.Or(m.stream.form, contentOf(c.p))
	if end {
		m.stream.ended = true
		if c.app.hasScope(manifest.AgentScope) {
			c.world.setSession(ch, cmp.Or(m.threadTS(), m.ts), "active")
		}
		c.notifier.notifyEdit(ch, m, before)
	}
	c.world.emit(event{Kind: eventEdit, Chat: ch.id, Message: m.ts}, ch, m)
	c.channel, c.message = ch, m
	return map[string]any{"channel": ch.id, "ts": m.ts}, nil
}

// setSession sets the status of a thread's session.
func (w *world) setSession(ch *channel, thread, status string) {
	ch.sessions[thread] = status
	w.hub.Wake()
}

// setSessionStatus sets the status of a session of an agent app
// (docs.slack.dev/reference/methods/agents.sessions.setStatus).
func setSessionStatus(c *call) (any, *refusal) {
	if !c.app.hasScope(manifest.AgentScope) {
		return nil, newRefusal("not_authorized") // assumed
	}
	ch, err := c.world.findChannel(c.p.Text("channel_id"), true)
	if err != nil {
		return nil, err
	}
	thread, status := c.p.Text("thread_ts"), c.p.Text("status")
	switch {
	case !slices.Contains([]string{"active", "processing", "suspended", "closed"}, status):
		return nil, newRefusal("invalid_arguments", "[ERROR] invalid status") // assumed
	case ch.byTS[thread] == nil:
		return nil, newRefusal("invalid_thread_ts") // the page of assistant.threads.setTitle
	}
	c.world.setSession(ch, thread, status)
	return map[string]any{"status": status, "agent_status": status}, nil
}

// StopSession presses the service's stop button in a thread, as a user. It ends the streams and sends
// the app an event. The session keeps its status until the app changes it
// (docs.slack.dev/reference/events/agent_session_stopped).
func (p *People) StopSession(channelID, thread, userID string) (Sent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, err := p.world.writableChannel(channelID, userID)
	if err != nil {
		return Sent{}, err
	}
	if c.sessions[thread] != "processing" || !p.app.isSubscribed("agent_session_stopped") {
		return Sent{}, fmt.Errorf("slack emulator: there is no stop button in thread %s of channel %s", thread, channelID)
	}
	ended := []string{}
	for _, m := range c.messages {
		if m.parent != nil && m.parent.ts == thread && p.world.isStreaming(m) {
			m.stream.ended = true
			ended = append(ended, m.ts)
		}
	}
	event, err := json.Marshal(map[string]any{
		"type": "agent_session_stopped", "channel": c.id, "user": userID, "thread_ts": thread,
		"streaming_message_ts": ended, "event_ts": p.world.nextTS(),
	})
	if err != nil {
		return Sent{}, fmt.Errorf("slack emulator: %w", err)
	}
	return p.notifier.sendEvent(c, "", json.RawMessage(event), Sent{Channel: c.id}), nil
}

// Session returns the status of a thread's session, or "".
func (st State) Session(channel, thread string) string {
	return st.channel(channel).sessions[thread]
}
