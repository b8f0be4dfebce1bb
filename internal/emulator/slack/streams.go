package slack

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"oneclaw/internal/emulator/slack/blockkit"
	"oneclaw/internal/emulator/slack/manifest"
	"oneclaw/internal/emulator/wire"
)

// Limits of streams. Their lifetime is undocumented; apps see about five minutes
// (slackapi/python-slack-sdk issue 1859). Limits of tasks are on the page of chat.appendStream.
const (
	streamAge   = 5 * time.Minute
	maxTaskText = 256
)

// stream is a message that is still growing.
type stream struct {
	begun  time.Time
	chunks bool // used by its first call, and so required of the others
	ended  bool
	tasks  []Task
}

// mismatches reports whether a call differs from the first one in this.
func (st *stream) mismatches(chunks bool, text string) bool {
	return st != nil && (chunks && !st.chunks || text != "" && st.chunks)
}

// Task is a card in a stream.
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

// valid reports whether the service accepts a task.
func (t Task) valid() bool {
	states := []string{"", "pending", "in_progress", "complete", "error"}
	return t.ID != "" && t.Title != "" && utf8.RuneCountInString(t.Title) <= maxTaskText && slices.Contains(states, t.Status)
}

// streams reports whether a message is open: the service ends old streams.
func (w *world) streams(m *message) bool {
	return m.stream != nil && !m.stream.ended && w.cfg.Now().Sub(m.stream.begun) < streamAge
}

// streamed reads what a call adds to a stream. Its two errors are reported by apps
// (docs.slack.dev/reference/methods/chat.appendStream).
func streamed(p *wire.Params, st *stream) (text string, tasks []Task, err *refusal) {
	text = p.Text("markdown_text")
	var chunks []chunk
	has, bad := p.JSON("chunks", &chunks)
	switch {
	case bad != nil:
		return "", nil, refuse("invalid_chunks") // its page
	case has && text != "":
		return "", nil, refuse("cannot_provide_both_markdown_text_and_chunks") // reported by apps
	case st.mismatches(has, text):
		return "", nil, refuse("streaming_mode_mismatch") // reported by apps
	}
	for _, c := range chunks {
		switch c.Type {
		case "markdown_text":
			text += c.Text
		case "task_update":
			if !c.valid() {
				return "", nil, refuse("invalid_chunks") // its page
			}
			tasks = append(tasks, c.Task)
		case "plan_update", "blocks":
		default:
			return "", nil, refuse("invalid_chunks") // its page
		}
	}
	if utf8.RuneCountInString(text) > blockkit.MaxMarkdown {
		return "", nil, refuse("msg_too_long") // assumed: its page has the limit
	}
	return text, tasks, nil
}

// grow adds to a stream.
func (m *message) grow(text string, tasks []Task) *refusal {
	if utf8.RuneCountInString(m.text)+utf8.RuneCountInString(text) > blockkit.MaxMarkdown {
		return refuse("msg_too_long") // assumed: its page has the limit
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

// startStream begins a stream, which begins a session of an agent app and clears the status of
// its thread (docs.slack.dev/ai/agent-sessions). In a channel it requires a recipient. The
// thread was optional on the page of 2025.
func startStream(c *call) (any, *refusal) {
	text, tasks, err := streamed(c.p, nil)
	if err != nil {
		return nil, err
	}
	ch, err := c.world.find(c.p.Text("channel"), true)
	if err != nil {
		return nil, err
	}
	switch {
	case c.p.Text("thread_ts") == "":
		return nil, refuse("invalid_arguments", "[ERROR] missing required field: thread_ts") // assumed
	case ch.kind != DM && c.p.Text("recipient_user_id") == "":
		return nil, refuse("missing_recipient_user_id") // assumed: its page says that it is required
	case ch.kind != DM && c.p.Text("recipient_team_id") == "":
		return nil, refuse("missing_recipient_team_id") // assumed: its page says that it is required
	}
	m := &message{user: c.cfg.BotUser, bot: true, stream: &stream{begun: c.cfg.Now(), chunks: c.p.Text("chunks") != ""}}
	if m.parent, err = ch.parentOf(c.p.Text("thread_ts")); err != nil {
		return nil, err
	}
	if err := m.grow(text, tasks); err != nil {
		return nil, err
	}
	if err := c.flood.take(ch.id, c.cfg.Now()); err != nil {
		return nil, err
	}
	c.news.publish(ch, m)
	if c.app.hasScope(manifest.AgentScope) {
		c.world.session(ch, m.parent.ts, "processing")
	}
	c.channel, c.message = ch, m
	return map[string]any{"channel": ch.id, "ts": m.ts}, nil
}

// ownStream returns an open stream of the bot by the ts of a call.
func (c *call) ownStream() (*channel, *message, *refusal) {
	ch, m, err := c.own("message_not_owned_by_app")
	switch {
	case err != nil:
		return nil, nil, err
	case !c.world.streams(m):
		return nil, nil, refuse("message_not_in_streaming_state") // reported by apps: github.com/vercel/chat/issues/607
	}
	return ch, m, nil
}

func appendStream(c *call) (any, *refusal) { return c.stream(false) }

// stopStream ends a stream, and the session's work unless the call says otherwise.
func stopStream(c *call) (any, *refusal) { return c.stream(true) }

func (c *call) stream(end bool) (any, *refusal) {
	ch, m, err := c.ownStream()
	if err != nil {
		return nil, err
	}
	text, tasks, err := streamed(c.p, m.stream)
	switch {
	case err != nil:
		return nil, err
	case !end && text == "" && len(tasks) == 0:
		return nil, refuse("no_text") // assumed
	}
	before := c.world.wire(m)
	if err := m.grow(text, tasks); err != nil {
		return nil, err
	}
	if end {
		m.stream.ended = true
		if c.app.hasScope(manifest.AgentScope) {
			c.world.session(ch, m.parent.ts, "active")
		}
		c.news.tellChanged(ch, m, before)
	}
	c.world.emit(Event{Kind: EventEdit, Chat: ch.id, Message: m.ts}, ch, m)
	c.channel, c.message = ch, m
	return map[string]any{"channel": ch.id, "ts": m.ts}, nil
}

// session sets the status of a thread's session.
func (w *world) session(ch *channel, thread, status string) {
	ch.sessions[thread] = status
	w.hub.Changed()
}

// sessionStatus sets the status of a session of an agent app
// (docs.slack.dev/reference/methods/agents.sessions.setStatus).
func sessionStatus(c *call) (any, *refusal) {
	if !c.app.hasScope(manifest.AgentScope) {
		return nil, refuse("not_authorized") // assumed
	}
	ch, err := c.world.find(c.p.Text("channel_id"), true)
	if err != nil {
		return nil, err
	}
	thread, status := c.p.Text("thread_ts"), c.p.Text("status")
	switch {
	case !slices.Contains([]string{"active", "processing", "suspended", "closed"}, status):
		return nil, refuse("invalid_arguments", "[ERROR] invalid status") // assumed
	case ch.byTS[thread] == nil:
		return nil, refuse("invalid_thread_ts") // the page of assistant.threads.setTitle
	}
	c.world.session(ch, thread, status)
	return map[string]any{"status": status, "agent_status": status}, nil
}

// StopSession presses the service's own stop button in a thread as a person: it ends the streams
// and tells the app. The session keeps its status until the app changes it
// (docs.slack.dev/reference/events/agent_session_stopped).
func (p *People) StopSession(channelID, thread, userID string) (Sent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, err := p.world.speaker(channelID, userID)
	if err != nil {
		return Sent{}, err
	}
	if c.sessions[thread] != "processing" || !p.app.subscribed("agent_session_stopped") {
		return Sent{}, fmt.Errorf("slack emulator: nothing shows a button to stop in thread %s of channel %s", thread, channelID)
	}
	ended := []string{}
	for _, m := range c.messages {
		if m.parent != nil && m.parent.ts == thread && p.world.streams(m) {
			m.stream.ended = true
			ended = append(ended, m.ts)
		}
	}
	event, err := json.Marshal(map[string]any{
		"type": "agent_session_stopped", "channel": c.id, "user": userID, "thread_ts": thread,
		"streaming_message_ts": ended, "event_ts": p.world.stamp(),
	})
	if err != nil {
		return Sent{}, fmt.Errorf("slack emulator: %w", err)
	}
	return p.news.event(c, "", json.RawMessage(event), Sent{Channel: c.id}), nil
}

// Session returns the status of a thread's session, or "".
func (st State) Session(channel, thread string) string {
	return st.channel(channel).sessions[thread]
}
