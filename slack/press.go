package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
	"oneclaw/slack/blocks"
	"oneclaw/slack/shared"
	"oneclaw/slack/surface"
)

// interaction has the fields of a button press that the bot needs.
type interaction struct {
	Team       team `json:"team"`
	Enterprise team `json:"enterprise"`
	User       struct {
		ID     string `json:"id"`
		TeamID string `json:"team_id"`
	} `json:"user"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
	Message   message `json:"message"`
	Container struct {
		MessageTS string `json:"message_ts"`
		ChannelID string `json:"channel_id"`
		ThreadTS  string `json:"thread_ts"`
		Ephemeral bool   `json:"is_ephemeral"`
	} `json:"container"`
	Actions     []action `json:"actions"`
	TriggerID   string   `json:"trigger_id"`
	ResponseURL string   `json:"response_url"`
}

type team struct {
	ID string `json:"id"`
}

type action struct {
	Type    string `json:"type"`
	BlockID string `json:"block_id"`
	Value   string `json:"value"`
	TS      string `json:"action_ts"`
}

// isSafeID reports whether a text may be used as an id in a key.
func isSafeID(text string) bool { return len(text) <= 200 && safeID.MatchString(text) }

var safeID = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// decodePress decodes an interaction. The intake is empty unless it is a press in the bot's workspace.
func (s identity) decodePress(payload []byte) (intake, error) {
	var kind typeOnly
	if err := json.Unmarshal(payload, &kind); err != nil {
		return intake{}, fmt.Errorf("decode interaction: %w", err)
	}
	if kind.Type != "block_actions" {
		return intake{}, nil
	}
	var p interaction
	damaged, err := decodeLoosely(payload, &p) // the message in it may be anything
	if err != nil {
		return intake{}, fmt.Errorf("decode press: %w", err)
	}
	p.Channel.ID = cmp.Or(p.Channel.ID, p.Container.ChannelID)
	p.Container.MessageTS = cmp.Or(p.Container.MessageTS, p.Message.TS)
	ours := s.isOurs(p.Team.ID) || s.isOurs(p.Enterprise.ID)
	if !ours || p.User.ID == "" || p.Channel.ID == "" || p.Container.MessageTS == "" ||
		len(p.Actions) == 0 || p.Actions[0].Type != "button" && p.Actions[0].Type != surface.FeedbackButtons || p.id() == "" {
		if damaged {
			err = errors.New("decode press: a part of it")
		}
		return intake{}, err
	}
	return intake{press: &p}, nil
}

// id returns an id of the press that is the same in each delivery: its trigger, which is unique, or
// else one made from the time, the user and the message.
func (p *interaction) id() string {
	if isSafeID(p.TriggerID) {
		return p.TriggerID
	}
	id := strings.Join([]string{p.Actions[0].TS, p.User.ID, p.Container.MessageTS}, "-")
	if p.Actions[0].TS == "" || !isSafeID(id) {
		return ""
	}
	return id
}

// messageID returns the id of the message with the button, as returned by Send. An ephemeral answer to
// a command has its id in its blocks.
func (p *interaction) messageID() string {
	id := p.Actions[0].BlockID
	if at := strings.LastIndexByte(id, '-'); p.Container.Ephemeral && strings.HasPrefix(id, responseID) && isSafeID(id) && at > len(responseID) {
		return id[:at]
	}
	return p.Container.MessageTS
}

// chat returns the chat of the message with the button.
func (p *interaction) chat() chats.Chat {
	thread := cmp.Or(p.Message.ThreadTS, p.Container.ThreadTS)
	if thread == p.Container.MessageTS {
		thread = "" // only replies have a thread
	}
	return chats.Chat{Platform: platformName, ID: p.Channel.ID, Thread: thread}
}

// convertPress converts a press to a message, or returns nil if the bot does not work there.
func (r *receiver) convertPress(ctx context.Context, p *interaction) *chats.Message {
	id, chat := p.id(), p.chat()
	// A message that is not ephemeral is one that the bot has posted, so that it is in the chat.
	direct := isDirectID(chat.ID)
	if direct && p.Container.Ephemeral {
		direct, _ = r.isDirectWith(ctx, chat.ID, p.User.ID) // not known: the stricter
	}
	if !r.serves(chat.ID, direct) {
		return nil
	}
	user := r.self.userID(p.User.ID, p.User.TeamID, false)
	if p.Actions[0].Type == surface.FeedbackButtons {
		return convertFeedback(ctx, r, p, user)
	}
	if p.ResponseURL != "" {
		in := shared.Invitation{ID: id, Address: p.ResponseURL}
		if p.Container.Ephemeral {
			in.MessageID = p.messageID() // the only reference to an ephemeral message
		}
		r.storeInvitation(ctx, chat.ID, in)
	}
	known, _ := r.knownThread(ctx, chat)
	if direct {
		known.opener = user
	}
	at := parseTS(p.Actions[0].TS)
	if at.IsZero() {
		at = time.Now().UTC()
	}
	return &chats.Message{
		Chat: chat, ID: id, Kind: chats.KindPress, User: user, UserName: r.nameLookup(ctx)(p.User.ID),
		Direct: direct, Opener: known.opener, Text: p.Actions[0].Value, TargetID: p.messageID(), Time: at,
	}
}

// Edit replaces the text and the buttons of one of the bot's messages. If Slack refuses the formatting,
// the message gets the plain text. If the Web API cannot reach the message, Edit replaces it with a
// response to its command or press.
func (p *platform) Edit(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	if to.Chat.Platform != platformName || to.Chat.ID == "" || id == "" {
		return &chats.SendError{Outcome: chats.Refused, Err: fmt.Errorf("slack: %s has no message %q", to.Chat, id)}
	}
	for plain := part.Text == ""; ; plain = true {
		err := p.update(ctx, to, id, part, plain)
		switch {
		case err == nil:
			return nil
		case !plain && part.Plain != "" && isContentError(err):
			p.log.Warn("formatting refused: editing to plain text", "chat", to.Chat.String(), "err", err)
			continue
		case hasErrorCode(err, "message_not_found", "not_in_channel", "channel_not_found"):
			if found, err := p.respond(ctx, to.Chat.ID, matchID(id), id, part, true); found {
				return err
			}
		}
		return p.sendError(to, err)
	}
}

// update edits a message. If the message is a stream, it ends the stream first. It leaves out the extras
// that Slack refuses.
func (p *platform) update(ctx context.Context, to chats.Address, id string, part chats.Part, plain bool) error {
	// An edit without blocks would remove the existing ones.
	laid, extras, err := layOutPart(p.surface, part, plain, plain || len(part.Buttons) > 0)
	if err != nil {
		return err
	}
	edit := func() error {
		return p.api.call(ctx, updateMessage, func(ctx context.Context, api *slack.Client) error {
			// Unlike other methods, it looks for mentions in the text by default.
			_, _, _, err := api.UpdateMessageContext(ctx, to.Chat.ID, id,
				slack.MsgOptionText(partText(part, plain), false), slack.MsgOptionBlocks(laid...), slack.MsgOptionParse(false))
			return err
		})
	}
	open := p.surface.IsOpen(id)
	if !open {
		err = edit()
		open = hasErrorCode(err, "streaming_state_conflict") // a stream of an earlier process
	}
	if open {
		if err = p.surface.End(ctx, to.Chat.ID, id); err == nil {
			err = edit()
		}
	}
	if simpler, ok := withoutRefused(p.surface, part, extras, err); ok {
		return p.update(ctx, to, id, simpler, plain)
	}
	return err
}

// AnswerPress shows a text to the user who pressed the button.
func (p *platform) AnswerPress(ctx context.Context, press chats.Message, text string) error {
	if text == "" {
		return nil
	}
	part := chats.Part{Plain: text}
	laid, err := blocks.Append(nil, text, true, nil)
	if err != nil {
		return fmt.Errorf("answer press: %w", err)
	}
	user, _ := slackID(press.User)
	err = p.api.call(ctx, postEphemeral, func(ctx context.Context, api *slack.Client) error {
		options := []slack.MsgOption{slack.MsgOptionText(escape(text), false), slack.MsgOptionBlocks(laid...)}
		if press.Chat.Thread != "" {
			options = append(options, slack.MsgOptionTS(press.Chat.Thread))
		}
		_, err := api.PostEphemeralContext(ctx, press.Chat.ID, user, options...)
		return err
	})
	if hasErrorCode(err, "not_in_channel", "channel_not_found", "user_not_in_channel", "missing_scope") {
		if found, answered := p.respond(ctx, press.Chat.ID, matchID(press.ID), "", part, false); found {
			err = answered
		}
	}
	if err != nil {
		return fmt.Errorf("answer press: %w", err)
	}
	return nil
}
