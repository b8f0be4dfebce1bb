package slack

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
	"oneclaw/internal/wording"
	"oneclaw/slack/blocks"
	"oneclaw/slack/shared"
	"oneclaw/slack/surface"
)

// hardLimit is the maximum text of chat.postMessage; parts are far shorter.
const hardLimit = 40_000

// postMessage is the method that posts a message. Its rate limit is per channel.
const postMessage = "chat.postMessage"

// updateMessage is the method that edits a message.
const updateMessage = "chat.update"

// Send sends one part. If Slack refuses blocks that the part can do without, or its formatting, Send
// leaves them out at once. If the bot is not in the channel of a slash command, it responds to the
// command instead. It retries nothing else.
func (p *platform) Send(ctx context.Context, to chats.Address, part chats.Part) (string, error) {
	if err := checkAddress(to); err != nil {
		return "", err
	}
	begun := time.Now()
	return sendWithFallback(ctx, p, to, part, func(plain bool) (string, error) {
		ts, err := p.post(ctx, to, part, plain)
		if err == nil {
			p.statuses.RecordAnswer(to.Chat, begun)
			p.join(ctx, to.Chat, "")
		}
		return ts, err
	}, "not_in_channel", "channel_not_found")
}

// sendWithFallback posts a part. It posts plain text if the formatting is refused, and responds to a
// command if post is refused with one of the codes in outside: the bot or the user is not in the channel.
func sendWithFallback(ctx context.Context, p *platform, to chats.Address, part chats.Part, post func(plain bool) (string, error), outside ...string) (string, error) {
	for plain := part.Text == ""; ; plain = true {
		ts, err := post(plain)
		switch {
		case err == nil:
			return ts, nil
		case !plain && part.Plain != "" && isContentError(err):
			p.log.Warn("formatting refused: sending plain text", "chat", to.Chat.String(), "err", err)
			continue
		case hasErrorCode(err, outside...):
			id := responseID + rand.Text()
			if found, err := p.respond(ctx, to.Chat.ID, matchReply(to), id, part, false); found {
				return id, err
			}
		}
		return "", p.sendError(to, err)
	}
}

func checkAddress(to chats.Address) error {
	if to.Chat.Platform == platformName && to.Chat.ID != "" {
		return nil
	}
	return &chats.SendError{Outcome: chats.Refused, Err: fmt.Errorf("slack: %s is not one of slack's chats", to.Chat)}
}

// options returns the options to post a part. extras are the features in it that Slack may refuse.
func options(s *surface.Surface, to chats.Address, part chats.Part, plain bool) (messageOptions []slack.MsgOption, extras []string, err error) {
	messageOptions = []slack.MsgOption{slack.MsgOptionText(partText(part, plain), false)}
	if plain {
		messageOptions = append(messageOptions, slack.MsgOptionDisableMarkdown())
	}
	laid, extras, err := layOutPart(s, part, plain, len(part.Buttons) > 0)
	if err != nil {
		return nil, nil, err
	}
	if laid != nil {
		messageOptions = append(messageOptions, slack.MsgOptionBlocks(laid...))
	}
	if to.Chat.Thread != "" {
		messageOptions = append(messageOptions, slack.MsgOptionTS(to.Chat.Thread))
	}
	return messageOptions, extras, nil
}

func (p *platform) post(ctx context.Context, to chats.Address, part chats.Part, plain bool) (string, error) {
	options, extras, err := options(p.surface, to, part, plain)
	if err != nil {
		return "", err
	}
	options = append(options, slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl())
	var ts string
	err = p.api.do(ctx, apiCall{method: postMessage, channel: to.Chat.ID}, func(ctx context.Context, api *slack.Client) (err error) {
		_, ts, err = api.PostMessageContext(ctx, to.Chat.ID, options...)
		if err == nil && ts == "" {
			err = errors.New("the response has no message id")
		}
		return err
	})
	if simpler, ok := withoutRefused(p.surface, part, extras, err); ok {
		return p.post(ctx, to, simpler, plain)
	}
	return ts, err
}

// partText returns the text of a part, with its note, and with the notice if it may be a repeat.
func partText(part chats.Part, plain bool) string {
	body, mark := part.Text, "_"
	if plain {
		// Escaped, so that nothing in it notifies users.
		body, mark = strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(cmp.Or(part.Plain, part.Text)), ""
	}
	if part.Note != "" {
		body += "\n\n" + mark + escape(part.Note) + mark
	}
	if part.Repeat {
		body += "\n\n" + mark + chats.RepeatNotice + mark
	}
	return wording.Clip(strings.TrimLeft(body, "\n"), hardLimit)
}

// sendError returns the outcome of a failed send.
func (p *platform) sendError(to chats.Address, err error) *chats.SendError {
	out := &chats.SendError{Outcome: chats.Unknown, Err: err}
	var ce *callError
	if !errors.As(err, &ce) {
		if errors.Is(err, blocks.ErrLayout) {
			out.Outcome, out.ContentRefused = chats.Refused, true
		}
		return out
	}
	out.RetryAfter = ce.retryAfter
	switch {
	case !ce.requestBegun && ce.code == "" && ce.status == 0:
		out.Outcome, out.Outage = chats.Later, true
	case isTokenError(err):
		p.log.Error("slack refuses the token: check SLACK_BOT_TOKEN", "chat", to.Chat.String(), "err", err)
		out.Outcome, out.Outage = chats.Later, true
	case hasErrorCode(err, "internal_error", "fatal_error"), ce.status >= http.StatusInternalServerError:
		// After these errors a part of the operation may have succeeded, and a gateway does not
		// know what the server behind it did.
	case ce.code != "" && !isTransient(ce):
		out.Outcome, out.ContentRefused = chats.Refused, isContentError(err)
		out.Unreachable = hasErrorCode(err, "channel_not_found", "not_in_channel", "is_archived", "restricted_action", "restricted_action_read_only_channel")
	case ce.code != "" || ce.status != 0:
		out.Outcome, out.Outage = chats.Later, !ce.isRateLimited()
	}
	return out
}

// isContentError reports whether Slack refused a message for what is in it, so that it may accept another form.
// It adds codes for new blocks, so each code that is not about something else counts.
func isContentError(err error) bool {
	ce, is := errors.AsType[*callError](err)
	return is && ce.code != "" && !isTransient(ce) && !isTokenError(err) && !isAboutDestination(ce.code)
}

// isAboutDestination reports whether no other form of a message would change a refusal: it is about the channel,
// about the bot's rights in it, or about the message to be edited.
func isAboutDestination(code string) bool {
	for _, part := range []string{"channel", "not_found", "archived", "restricted", "permission", "scope", "not_allowed", "access", "user", "update_message", "edit_window", "messages_tab", "thread", "streaming"} {
		if strings.Contains(code, part) {
			return true
		}
	}
	return false
}

// lastResponseNotice is added to the last response that Slack accepts to a command or press.
const lastResponseNotice = "Slack accepts no more answers here. For the rest, invite me to this channel, or ask me in a direct message."

// storeInvitation stores where a command or a press accepts responses. Without it, the bot can answer only
// in channels where it may post.
func (r *receiver) storeInvitation(ctx context.Context, channel string, in shared.Invitation) {
	if err := r.invitations.Add(ctx, channel, in); err != nil {
		r.log.Warn("answers may not reach a channel without the bot", "channel", channel, "err", err)
	}
}

// matchID matches the invitation of a command or press with an id, or for a message with that id.
func matchID(id string) func(shared.Invitation) bool {
	return func(in shared.Invitation) bool { return id != "" && (in.ID == id || in.MessageID == id) }
}

// matchReply matches the invitation of the command or press that to.ReplyTo names, and no other: its user alone sees
// the answer. In a thread it matches nothing.
func matchReply(to chats.Address) func(shared.Invitation) bool {
	return func(in shared.Invitation) bool { return to.Chat.Thread == "" && matchID(to.ReplyTo)(in) }
}

// responseID begins the id of a message that only a response_url can reach: Slack gives it no id.
// Blocks with buttons contain it, so that a press returns it.
const responseID = "response-"

type response struct {
	Type    string        `json:"response_type"`
	Text    string        `json:"text"`
	Blocks  []slack.Block `json:"blocks,omitempty"`
	Replace bool          `json:"replace_original"`
}

// respond responds to a command or a press, ephemerally for its user, if there is a matching
// invitation. It creates the message with the id, or replaces it.
func (p *platform) respond(ctx context.Context, channel string, fits func(shared.Invitation) bool, id string, part chats.Part, replace bool) (found bool, err error) {
	address, left, err := p.invitations.Take(ctx, channel, fits)
	switch {
	case err != nil:
		return true, &chats.SendError{Outcome: chats.Later, Err: err}
	case address == "":
		return false, nil
	}
	err = p.api.postResponse(ctx, address, left, id, part, replace)
	if failure, is := errors.AsType[*chats.SendError](err); is && failure.Outcome == chats.Later {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.api.timeout)
		defer cancel()
		if err := p.invitations.GiveBack(ctx, channel, address); err != nil {
			p.log.Warn("slack will accept one answer more than is counted", "channel", channel, "err", err)
		}
	}
	return true, err
}

// postResponse posts a part to the address of an invitation. left is how many responses Slack accepts there
// after this one; negative if it does not accept this one.
func (c *client) postResponse(ctx context.Context, address string, left int, id string, part chats.Part, replace bool) error {
	u, err := url.Parse(address)
	if err != nil || !c.mayHaveToken(u) {
		return &chats.SendError{Outcome: chats.Refused, Err: errors.New("slack: response_url is not an address of slack's")}
	}
	plain := part.Text == ""
	switch {
	case left < 0:
		return &chats.SendError{Outcome: chats.Refused, Err: fmt.Errorf("slack: respond: slack takes %d answers", shared.MaxResponses)}
	case left == 0 && !replace:
		part.Plain = cmp.Or(part.Plain, part.Text) + "\n\n" + lastResponseNotice
		if !plain {
			part.Text += "\n\n_" + lastResponseNotice + "_"
		}
	}
	var laid []slack.Block
	if len(part.Buttons) > 0 {
		var err error
		if laid, err = blocks.Append(nil, partText(part, plain), plain, part.Buttons); err != nil {
			return &chats.SendError{Outcome: chats.Refused, Err: err}
		}
	}
	for i, block := range laid {
		if row, ok := block.(*slack.ActionBlock); ok {
			row.BlockID = id + "-" + strconv.Itoa(i)
		}
	}
	body, err := json.Marshal(response{Type: "ephemeral", Text: partText(part, plain), Blocks: laid, Replace: replace})
	if err != nil {
		return &chats.SendError{Outcome: chats.Refused, Err: fmt.Errorf("slack: encode response: %w", err)}
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return &chats.SendError{Outcome: chats.Refused, Err: errors.New("slack: response_url is no address")}
	}
	req.Header.Set("Content-Type", "application/json")
	var begun atomic.Bool
	chats.WatchBody(req, &begun)
	resp, err := c.Do(req)
	if err != nil {
		failure := &chats.SendError{Outcome: chats.Unknown, Err: fmt.Errorf("slack: respond: %w", c.CleanError(err))}
		if !begun.Load() {
			failure.Outcome = chats.Later // no outage, as the Web API has just answered
		}
		return failure
	}
	_ = resp.Body.Close() // only the status matters
	if resp.StatusCode != http.StatusOK {
		return &chats.SendError{
			Outcome: respondOutcome(resp.StatusCode), ContentRefused: resp.StatusCode == http.StatusBadRequest,
			Err: fmt.Errorf("slack: respond: http status %d", resp.StatusCode),
		}
	}
	return nil
}

func respondOutcome(status int) chats.Outcome {
	switch {
	case status >= http.StatusInternalServerError:
		return chats.Unknown
	case status == http.StatusTooManyRequests:
		return chats.Later
	}
	return chats.Refused
}
