package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
	"oneclaw/slack/blocks"
	"oneclaw/slack/surface"
)

// Events of the app's surface (docs.slack.dev/reference/events/<name>): Slack's own stop button, and a
// user opening the app, or a thread with it if it is an assistant.
const (
	sessionStopped = "agent_session_stopped"
	homeOpened     = "app_home_opened"
	threadStarted  = "assistant_thread_started"
)

// agentEvent is an event of the app's surface.
type agentEvent struct {
	Type     string `json:"type"`
	Channel  string `json:"channel"`
	ThreadTS string `json:"thread_ts"`
	User     string `json:"user"`
	EventTS  string `json:"event_ts"`
	Tab      string `json:"tab"`
	Thread   struct {
		User    string `json:"user_id"`
		Channel string `json:"channel_id"`
		TS      string `json:"thread_ts"`
	} `json:"assistant_thread"`

	shared bool // with other workspaces
}

func (s self) decodeAgent(o outer) (intake, error) {
	var e agentEvent
	if err := json.Unmarshal(o.Event, &e); err != nil {
		return intake{}, fmt.Errorf("decode event %s: %w", o.EventID, err)
	}
	e.User, e.Channel, e.ThreadTS = cmp.Or(e.User, e.Thread.User), cmp.Or(e.Channel, e.Thread.Channel), cmp.Or(e.ThreadTS, e.Thread.TS)
	if e.Channel == "" || e.User == "" || e.Type == sessionStopped && (e.ThreadTS == "" || !safeID.MatchString(e.EventTS)) {
		return intake{}, nil
	}
	e.shared = o.Shared || !s.isOurs(o.TeamID)
	return intake{agent: &e}, nil
}

// convertAgent converts a press on Slack's stop button to a /stop in its thread.
func (r *receiver) convertAgent(ctx context.Context, e *agentEvent) *chats.Message {
	direct := isDirectID(e.Channel)
	if !r.serves(e.Channel, direct) {
		return nil
	}
	chat := chats.Chat{Platform: Name, ID: e.Channel, Thread: e.ThreadTS}
	user := r.self.userID(e.User, "", e.shared)
	if e.Type != sessionStopped {
		r.welcome(ctx, e, chats.Message{Chat: chat.WithoutThread(), Kind: chats.KindText, User: user, Direct: direct})
		return nil
	}
	r.surface.Background(ctx, "slack may show that the bot is at work, and it is not", func(ctx context.Context) error {
		return r.surface.Stopped(ctx, e.Channel, e.ThreadTS)
	})
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

// welcome shows a user who has opened the app what it can do.
func (r *receiver) welcome(ctx context.Context, e *agentEvent, m chats.Message) {
	host, ok := r.in.(chats.Welcomer)
	if !ok || !m.Direct {
		return
	}
	at := surface.Opened{Home: e.Tab == "home", User: e.User, Channel: e.Channel, Thread: e.Thread.TS}
	r.surface.Background(ctx, "somebody who opened the app is not shown what it can do", func(ctx context.Context) error {
		return r.surface.Greet(ctx, host, m, at)
	})
}

// judged returns a user's rating with the buttons below an answer.
func judged(ctx context.Context, r *receiver, p *interaction, user string) *chats.Message {
	says, ok := surface.Says(p.Actions[0].Value)
	if !ok || p.Container.Ephemeral {
		return nil
	}
	m := chats.NewFeedback(chats.Chat{Platform: Name, ID: p.Channel.ID}, p.Container.MessageTS, user, says, stamp(p.Actions[0].TS))
	thanks := chats.Message{Chat: p.chat(), User: user}
	r.surface.Background(ctx, "feedback is not acknowledged", func(ctx context.Context) error {
		return r.AnswerPress(ctx, thanks, surface.Thanks)
	})
	return &m
}

// lay lays out a part if necessary: for buttons, for feedback buttons, or for its layout. extras names
// what Slack may refuse.
func lay(s *surface.Surface, part chats.Part, plain, needed bool) (laid []slack.Block, extras []string, err error) {
	all := text(part, plain)
	if judged := part.FeedbackButtons && len(part.Buttons) == 0 && s.Judges(all, blocks.MaxSection); judged {
		extras = append(extras, surface.Feedback)
	}
	if part.Layout != nil && !plain && s.LaysOut() {
		laid = blocks.Decode(part.Layout)
	}
	if laid != nil {
		extras = append([]string{surface.Layouts}, extras...)
		part.Text, part.Plain = "", ""
		all = text(part, false)
	}
	if !needed && extras == nil {
		return nil, nil, nil
	}
	if laid, err = blocks.Of(laid, all, plain, part.Buttons); err == nil && slices.Contains(extras, surface.Feedback) {
		laid = append(laid, surface.Judging())
	}
	return laid, extras, err
}

// without records the extras that Slack refused in a message, and reports whether that was the cause:
// then the message is sent without them.
func without(s *surface.Surface, extras []string, err error) bool {
	if len(extras) == 0 || !refused(err, "invalid_blocks", "invalid_blocks_format", "invalid_attachments", "msg_blocks_too_long") {
		return false
	}
	s.Lacks(extras[0], err)
	return true
}

// layOut returns a function that lays out Markdown in blocks.
func layOut(render func(string) []chats.Part) func(string) []slack.Block {
	return func(markdown string) (all []slack.Block) {
		for _, part := range render(markdown) {
			plain := part.Text == ""
			if laid, err := blocks.Of(nil, text(part, plain), plain, nil); err == nil {
				all = append(all, laid...)
			}
		}
		return all
	}
}
