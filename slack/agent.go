package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"oneclaw/bridge/chats"
)

// sessionStopped is the event of Slack's own button to stop
// (docs.slack.dev/reference/events/agent_session_stopped).
const sessionStopped = "agent_session_stopped"

// agentEvent is something that a person did with the surface of an app that is an agent.
type agentEvent struct {
	Type     string `json:"type"`
	Channel  string `json:"channel"`
	ThreadTS string `json:"thread_ts"`
	User     string `json:"user"`
	EventTS  string `json:"event_ts"`

	shared bool // with other workspaces
}

func (s self) decodeAgent(o outer) (intake, error) {
	var e agentEvent
	if err := json.Unmarshal(o.Event, &e); err != nil {
		return intake{}, fmt.Errorf("decode event %s: %w", o.EventID, err)
	}
	if e.Channel == "" || e.ThreadTS == "" || e.User == "" || !safeID.MatchString(e.EventTS) {
		return intake{}, nil
	}
	e.shared = o.Shared || !s.isOurs(o.TeamID)
	return intake{agent: &e}, nil
}

// convertAgent makes a /stop of a press on Slack's button, in the thread that it was made in.
func (r *receiver) convertAgent(ctx context.Context, e *agentEvent) *chats.Message {
	direct := isDirectID(e.Channel)
	if !r.works(e.Channel, direct) {
		return nil
	}
	chat := chats.Chat{Platform: Name, ID: e.Channel, Thread: e.ThreadTS}
	r.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepTimeout)
		defer cancel()
		if err := r.surface.Stopped(ctx, e.Channel, e.ThreadTS); err != nil {
			r.log.Warn("slack may show that the bot is at work, and it is not", "chat", chat.String(), "err", err)
		}
	})
	user := r.self.userID(e.User, "", e.shared)
	known, _ := r.recall(ctx, chat)
	if direct {
		known.opener = user
	}
	at := stamp(e.EventTS)
	if at.IsZero() {
		at = time.Now().UTC()
	}
	return &chats.Message{
		Chat: chat, ID: "stop-" + e.EventTS, Kind: chats.KindText, User: user, UserName: r.names(ctx)(e.User),
		Direct: direct, Opener: known.opener, Text: "/stop", Time: at,
	}
}
