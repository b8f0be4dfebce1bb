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

// Events of the app's surface (docs.slack.dev/reference/events/<name>): a press of Slack's own stop
// button, and a user opening the app, or a thread with it if it is an assistant.
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

	shared bool // the channel is shared with other workspaces
}

func (s identity) decodeAgentEvent(o eventWrapper) (intake, error) {
	var e agentEvent
	if err := json.Unmarshal(o.Event, &e); err != nil {
		return intake{}, fmt.Errorf("decode event %s: %w", o.EventID, err)
	}
	e.User, e.Channel, e.ThreadTS = cmp.Or(e.User, e.Thread.User), cmp.Or(e.Channel, e.Thread.Channel), cmp.Or(e.ThreadTS, e.Thread.TS)
	if e.Channel == "" || e.User == "" || e.Type == sessionStopped && (e.ThreadTS == "" || !isSafeID(e.EventTS)) {
		return intake{}, nil
	}
	e.shared = o.Shared || !s.isOurs(o.TeamID)
	return intake{agent: &e}, nil
}

// convertAgentEvent converts a press on Slack's stop button to a /stop in its thread. For other events it
// welcomes the user and returns nil.
func (r *receiver) convertAgentEvent(ctx context.Context, e *agentEvent) *chats.Message {
	direct := isDirectID(e.Channel)
	if !r.serves(e.Channel, direct) {
		return nil
	}
	chat := chats.Chat{Platform: platformName, ID: e.Channel, Thread: e.ThreadTS}
	user := r.self.userID(e.User, r.lookUpTeam(ctx, e.User, e.shared), e.shared)
	if e.Type != sessionStopped {
		r.welcome(ctx, e, chats.Message{Chat: chat.WithoutThread(), Kind: chats.KindText, User: user, Direct: direct})
		return nil
	}
	r.surface.RunInBackground(ctx, "slack may show that the bot is working although it is not", func(ctx context.Context) error {
		return r.surface.MarkIdle(ctx, e.Channel, e.ThreadTS)
	})
	known, _ := r.knownThread(ctx, chat)
	if direct {
		known.opener = user
	}
	at := parseTS(e.EventTS)
	if at.IsZero() {
		at = time.Now().UTC()
	}
	return &chats.Message{
		Chat: chat, ID: "stop-" + e.EventTS, Kind: chats.KindText, User: user, UserName: r.nameLookup(ctx)(e.User),
		Direct: direct, Opener: known.opener, Text: "/stop", Time: at,
	}
}

// welcome shows a user who has opened the app what the bot can do.
func (r *receiver) welcome(ctx context.Context, e *agentEvent, m chats.Message) {
	host, ok := r.in.(chats.Welcomer)
	if !ok || !m.Direct {
		return
	}
	at := surface.OpenEvent{Home: e.Tab == "home", User: e.User, Channel: e.Channel, Thread: e.Thread.TS}
	r.surface.RunInBackground(ctx, "a user who opened the app gets no welcome", func(ctx context.Context) error {
		return r.surface.Greet(ctx, host, m, at)
	})
}

// convertFeedback converts a user's rating, given with the buttons below an answer.
func convertFeedback(ctx context.Context, r *receiver, p *interaction, user string) *chats.Message {
	says, ok := surface.ParseFeedback(p.Actions[0].Value)
	if !ok || p.Container.Ephemeral {
		return nil
	}
	m := chats.NewFeedback(chats.Chat{Platform: platformName, ID: p.Channel.ID}, p.Container.MessageTS, user, says, parseTS(p.Actions[0].TS))
	thanks := chats.Message{Chat: p.chat(), User: user}
	r.surface.RunInBackground(ctx, "feedback is not acknowledged", func(ctx context.Context) error {
		return r.AnswerPress(ctx, thanks, surface.FeedbackThanks)
	})
	return &m
}

// layOutPart lays out a part in blocks if needed is set, or if the part has feedback buttons or a layout;
// otherwise laid is nil. extras are the features in it that Slack may refuse.
func layOutPart(s *surface.Surface, part chats.Part, plain, needed bool) (laid []slack.Block, extras []string, err error) {
	all := partText(part, plain)
	if judged := part.FeedbackButtons && len(part.Buttons) == 0 && s.CanRate(all, blocks.MaxSection); judged {
		extras = append(extras, surface.FeatureFeedback)
	}
	if part.Layout != nil && !plain && s.CanUseLayouts() {
		laid = blocks.Decode(part.Layout)
	}
	if laid != nil {
		extras = append([]string{surface.FeatureLayouts}, extras...)
		part.Text, part.Plain = "", ""
		all = partText(part, false)
	}
	if !needed && extras == nil {
		return nil, nil, nil
	}
	if laid, err = blocks.Append(laid, all, plain, part.Buttons); err == nil && slices.Contains(extras, surface.FeatureFeedback) {
		laid = append(laid, surface.FeedbackBlock())
	}
	return laid, extras, err
}

// withoutRefused returns a part without the extras that Slack may have refused, and reports whether it had
// any. If the error says that blocks of a kind are refused, no message uses the first of the extras again;
// for any other refusal of its content, only this one goes without them.
func withoutRefused(s *surface.Surface, part chats.Part, extras []string, err error) (chats.Part, bool) {
	switch {
	case len(extras) == 0 || !isContentError(err):
		return part, false
	case hasErrorCode(err, "invalid_blocks", "invalid_blocks_format", "invalid_attachments", "msg_blocks_too_long"):
		s.RecordRefusal(extras[0], err)
	default:
		part.Layout, part.FeedbackButtons = nil, false
	}
	return part, true
}

// blockRenderer returns a function that renders Markdown as blocks.
func blockRenderer(render func(string) []chats.Part) func(string) []slack.Block {
	return func(markdown string) (all []slack.Block) {
		for _, part := range render(markdown) {
			plain := part.Text == ""
			if laid, err := blocks.Append(nil, partText(part, plain), plain, nil); err == nil {
				all = append(all, laid...)
			}
		}
		return all
	}
}
