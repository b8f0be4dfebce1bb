package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"oneclaw/bridge/chats"
)

// contextChanged is the event of a user who opens something else beside a chat with an app that has the agent
// view (docs.slack.dev/reference/events/app_context_changed).
const contextChanged = "app_context_changed"

// viewAge is how long it is cached what a user looks at.
const viewAge = time.Hour

// appContext is what a user looks at, the most relevant first.
type appContext struct {
	Entities []struct {
		Type  string          `json:"type"`
		Value json.RawMessage `json:"value"` // an id, or an object
	} `json:"entities"`
}

// viewChange is the event of a user who looks at something else.
type viewChange struct {
	User    string     `json:"user"`
	Context appContext `json:"context"`
}

func decodeViewChange(o eventWrapper) (intake, error) {
	var v viewChange
	if _, err := decodeLoosely(o.Event, &v); err != nil {
		return intake{}, fmt.Errorf("decode event %s: %w", o.EventID, err)
	}
	for _, a := range o.Authorizations {
		if v.User == "" && !a.IsBot {
			v.User = a.UserID
		}
	}
	if v.User == "" {
		return intake{}, nil
	}
	return intake{view: &v}, nil
}

// viewed returns what the sender of a direct message looks at, unless the message before it in the same thread
// had the same.
func (r *receiver) viewed(ctx context.Context, e *event, m *message, msg *chats.Message) []chats.Quoted {
	if !e.isDirect() || !e.threaded {
		return nil
	}
	seen := m.AppContext
	if seen == nil {
		known, _ := r.views.Get(m.User)
		seen = &known
	}
	q := r.describeView(ctx, *seen, msg.User)
	mark := q.From + "\n" + q.By + "\n" + q.Text
	if before, _ := r.shownViews.Get(msg.Chat); before == mark {
		return nil
	}
	if r.shownViews.Put(msg.Chat, mark, viewAge); q.Empty() {
		return nil
	}
	return []chats.Quoted{q}
}

// describeView returns the first thing in a context that can be described to a user. Slack's client names it, and the
// bot reads it with its own rights, so it tells no more of it than the user may read.
func (r *receiver) describeView(ctx context.Context, seen appContext, user string) (q chats.Quoted) {
	for _, one := range seen.Entities {
		kind := strings.TrimPrefix(one.Type, "slack#/types/")
		var id string
		var at struct {
			Channel string `json:"channel_id"`
			TS      string `json:"message_ts"`
		}
		switch {
		case kind == "channel_id" && json.Unmarshal(one.Value, &id) == nil && id != "":
			q = chats.Quoted{Kind: chats.RefView, Text: r.describeChannel(ctx, id, user)}
		case kind == "message_context" && json.Unmarshal(one.Value, &at) == nil && at.Channel != "" && at.TS != "":
			q = r.describeMessage(ctx, at.Channel, at.TS, user)
		case kind == "canvas_id", kind == "list_id":
			q = chats.Quoted{Kind: chats.RefView, Text: "a " + strings.TrimSuffix(kind, "_id") + " in Slack"}
		default:
			continue
		}
		return q
	}
	return q
}

// describeChannel returns the name of a channel, with its topic and purpose.
func (r *receiver) describeChannel(ctx context.Context, id, user string) string {
	switch {
	case isDirectID(id):
		return "a direct chat"
	case !r.mayRead(ctx, id, user):
		return "a channel in Slack"
	}
	text := "the channel #" + r.knownName(id)
	known, _ := r.places.Get(id)
	if known.topic != "" {
		text += "\nTopic: " + r.self.plainText(known.topic, r.knownName)
	}
	if known.purpose != "" {
		text += "\nPurpose: " + r.self.plainText(known.purpose, r.knownName)
	}
	return text
}

// mayRead reports whether a user may read what the bot may read of a channel: it is public in the user's workspace, the
// bot's direct chat with the user, or one that both are in. It fills in the name of the channel.
func (r *receiver) mayRead(ctx context.Context, id, user string) bool {
	user, outsider := slackID(user)
	if isDirectID(id) {
		is, err := r.isDirectWith(ctx, id, user)
		return is && err == nil
	}
	r.lookUpName(ctx, id, nameTimeout)
	known, _ := r.places.Get(id)
	if outsider || known.public || !known.answered {
		return known.public && !outsider // Slack tells nothing of the channels of outsiders
	}
	ctx, cancel := context.WithTimeout(ctx, nameTimeout)
	defer cancel()
	// Of the private channels of another user, Slack lists those that the bot is in, too.
	args := url.Values{"user": {user}, "types": {"private_channel,mpim"}, "limit": {"1000"}}
	for page := (conversationPage{}); ; args.Set("cursor", page.Metadata.Cursor) {
		var err error
		if page, err = r.api.readConversations(ctx, args); err != nil {
			r.log.Debug("not known whether a user is in a channel", "channel", id, "err", err)
			return false
		}
		for _, raw := range page.Channels {
			var c struct {
				ID string `json:"id"`
			}
			if _, err := decodeLoosely(raw, &c); err == nil && c.ID == id {
				return true
			}
		}
		if page.Metadata.Cursor == "" {
			return false
		}
	}
}

// describeMessage returns a message, as far as the bot and the user may read it.
func (r *receiver) describeMessage(ctx context.Context, channel, ts, user string) chats.Quoted {
	where := r.describeChannel(ctx, channel, user)
	if !r.mayRead(ctx, channel, user) {
		return chats.Quoted{Kind: chats.RefView, Text: "a message in " + where}
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	page, err := r.api.readMessages(ctx, &messageQuery{channel: channel, thread: ts, limit: 1})
	if err == nil && len(page) > 0 && page[0].TS == ts {
		if list := r.self.quote(&page[0].message, channel, r.nameLookup(ctx)); len(list) > 0 {
			q := list[0]
			q.Kind, q.ID, q.From = chats.RefView, "", strings.TrimPrefix(strings.Split(where, "\n")[0], "the channel ")
			return q
		}
	}
	return chats.Quoted{Kind: chats.RefView, Text: "a message in " + where}
}
