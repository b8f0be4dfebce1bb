package slack

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"oneclaw/internal/emulator/slack/delivery"
	"oneclaw/internal/emulator/wire"
)

// news tells the app what happens in the world, as far as it may know. It is guarded by the
// world's lock.
type news struct {
	cfg   *Config // immutable
	life  *wire.Lifecycle
	world *world
	app   *App
	line  *delivery.Line
	rand  *rand.Rand
}

// mentions reports whether a text mentions the bot.
func (n *news) mentions(text string) bool {
	at := "<@" + n.cfg.BotUser
	return strings.Contains(text, at+">") || strings.Contains(text, at+"|")
}

// tell makes the events of a new message if the app gets them: one for a mention and one for the
// message, in either order.
//
// The fields are those of docs.slack.dev/reference/events/message and …/app_mention; assumed:
// the order of the two is undefined.
func (n *news) tell(c *channel, m *message) Sent {
	sent := Sent{Channel: c.id, TS: m.ts}
	if !c.botIn {
		return sent
	}
	w := *n.world.wire(m)
	w.ReplyCount, w.ReplyUsers, w.LatestReply = 0, nil, ""
	e := wireEvent{wireMessage: w, Channel: c.id, EventTS: m.ts}
	called := n.mentions(m.text) && c.kind != DM && !m.bot && n.app.hasScope("app_mentions:read") && n.app.subscribed("app_mention")
	call := e
	call.Type, call.Subtype, call.ParentUserID = "app_mention", "", ""
	first := n.rand.IntN(2) == 0
	if called && first {
		sent = n.event(c, "", call, sent)
	}
	if n.app.hears(c) {
		e.ChannelType = c.kind
		if m.broadcast && m.parent != nil {
			e.Root = n.world.wire(m.parent)
		}
		sent = n.event(c, "", e, sent)
	}
	if called && !first {
		sent = n.event(c, "", call, sent)
	}
	return sent
}

func (n *news) tellChanged(c *channel, m *message, before *wireMessage) Sent {
	e := wireEvent{Hidden: true, Message: n.world.wire(m), Previous: before}
	e.Subtype = "message_changed"
	return n.tellHidden(c, m, e)
}

// tellHidden makes the event of a change of a message.
func (n *news) tellHidden(c *channel, m *message, e wireEvent) Sent {
	sent := Sent{Channel: c.id, TS: m.ts}
	if !c.botIn || !n.app.hears(c) {
		return sent
	}
	e.Type, e.Channel, e.ChannelType = "message", c.id, c.kind
	e.TS = n.world.stamp()
	e.EventTS = e.TS
	return n.event(c, "", e, sent)
}

// publish adds a message of the bot, which clears the status of its thread (the page of
// assistant.threads.setStatus), and tells the app about it like about any message.
func (n *news) publish(ch *channel, m *message) {
	n.world.add(ch, m)
	if m.parent != nil {
		n.world.setStatus(ch, m.parent.ts, "", false)
	}
	n.tell(ch, m)
}

// remove deletes a message.
func (n *news) remove(c *channel, m *message) Sent {
	e := wireEvent{Hidden: true, DeletedTS: m.ts, Previous: n.world.wire(m)}
	e.Subtype = "message_deleted"
	n.world.tally(c, m, -1)
	m.deleted = true
	n.world.emit(Event{Kind: EventDelete, Chat: c.id, Message: m.ts}, c, m)
	return n.tellHidden(c, m, e)
}

// event wraps an inner event and sends it to the app.
func (n *news) event(c *channel, team string, inner any, sent Sent) Sent {
	if team == "" {
		team = n.cfg.Team
	}
	if c != nil { // otherwise a test has made it
		checked(n.life, inner, "event")
	}
	id := fmt.Sprintf("Ev0E%07d", n.line.Number())
	sent.Events = append(sent.Events, id)
	return n.push(c, delivery.KindEvent, wireOuter{
		Token: "verification", TeamID: team, APIAppID: AppID, Event: inner, Type: "event_callback", EventID: id,
		EventTime: n.cfg.Now().Unix(), EventContext: "4-" + id, IsExtShared: n.world.isShared(c),
		Authorizations: []map[string]any{{"team_id": team, "user_id": n.cfg.BotUser, "is_bot": true}},
	}, sent)
}

// push sends a payload to the app and records its envelope.
func (n *news) push(c *channel, kind string, payload any, sent Sent) Sent {
	parcel := delivery.Parcel{Kind: kind, Message: sent.TS, Payload: payload}
	if c != nil {
		parcel.Channel = c.id
	}
	if made := len(sent.Events); made > 0 {
		parcel.Event = sent.Events[made-1]
	}
	if id := n.line.Push(parcel); id != "" {
		sent.Envelopes = append(sent.Envelopes, id)
	}
	return sent
}
