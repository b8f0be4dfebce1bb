package slack

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"oneclaw/internal/emulator/slack/delivery"
	"oneclaw/internal/emulator/slack/manifest"
	"oneclaw/internal/emulator/wire"
)

// notifier sends the app the events in the world that it may receive. It is guarded by the lock of
// the server.
type notifier struct {
	cfg   *Config // immutable
	life  *wire.Lifecycle
	world *world
	app   *App
	line  *delivery.Line
	rand  *rand.Rand
}

// mentionsBot reports whether a text mentions the bot.
func (n *notifier) mentionsBot(text string) bool {
	at := "<@" + n.cfg.BotUser
	return strings.Contains(text, at+">") || strings.Contains(text, at+"|")
}

// notify sends the events of a new message, if the app gets them: one for a mention of the bot and one
// for the message, in either order.
//
// The fields are those of docs.slack.dev/reference/events/message and …/app_mention. Assumed:
// the order of the two is undefined.
func (n *notifier) notify(c *channel, m *message) Sent {
	sent := Sent{Channel: c.id, TS: m.ts}
	if !c.hasBot {
		return sent
	}
	w := *n.world.messageJSON(m)
	w.ReplyCount, w.ReplyUsers, w.LatestReply = 0, nil, ""
	e := wireEvent{wireMessage: w, Channel: c.id, EventTS: m.ts}
	called := n.mentionsBot(m.text) && c.kind != DM && !m.fromBot && n.app.hasScope("app_mentions:read") && n.app.isSubscribed("app_mention")
	call := e
	call.Type, call.Subtype, call.ParentUserID = "app_mention", "", ""
	if len(m.files) > 0 && n.rand.IntN(2) == 0 {
		call.Files = nil // NousResearch/hermes-agent PR 77141, openclaw/openclaw PR 115157: a mention often comes without them
	}
	first := n.rand.IntN(2) == 0
	if called && first {
		sent = n.sendEvent(c, "", call, sent)
	}
	if n.app.seesMessages(c) {
		e.ChannelType = c.kind
		if c.kind == DM && m.viewing != "" && n.app.hasScope(manifest.AgentScope) {
			e.AppContext = n.world.viewOf(m.viewing)
		}
		if m.broadcast && m.parent != nil {
			e.Root = n.world.messageJSON(m.parent)
		}
		sent = n.sendEvent(c, "", e, sent)
	}
	if called && !first {
		sent = n.sendEvent(c, "", call, sent)
	}
	return sent
}

func (n *notifier) notifyEdit(c *channel, m *message, before *wireMessage) Sent {
	e := wireEvent{Hidden: true, Message: n.world.messageJSON(m), PreviousMessage: before}
	e.Subtype = "message_changed"
	return n.notifyChange(c, m, e)
}

// notifyChange sends the event of an edit or a deletion of a message.
func (n *notifier) notifyChange(c *channel, m *message, e wireEvent) Sent {
	sent := Sent{Channel: c.id, TS: m.ts}
	if !c.hasBot || !n.app.seesMessages(c) {
		return sent
	}
	e.Type, e.Channel, e.ChannelType = "message", c.id, c.kind
	e.TS = n.world.nextTS()
	e.EventTS = e.TS
	return n.sendEvent(c, "", e, sent)
}

// publish adds a message of the bot, which clears the status of its thread (see the page of
// assistant.threads.setStatus), and sends the app its events as for any message.
func (n *notifier) publish(ch *channel, m *message) {
	n.world.addMessage(ch, m)
	if m.parent != nil {
		n.world.setStatus(ch, m.parent.ts, "", false)
	}
	n.notify(ch, m)
}

// remove deletes a message.
func (n *notifier) remove(c *channel, m *message) Sent {
	e := wireEvent{Hidden: true, DeletedTS: m.ts, PreviousMessage: n.world.messageJSON(m)}
	e.Subtype = "message_deleted"
	n.world.countAnswer(c, m, -1)
	m.deleted = true
	n.world.emit(event{Kind: eventDelete, Chat: c.id, Message: m.ts}, c, m)
	return n.notifyChange(c, m, e)
}

// sendEvent wraps an inner event and sends it to the app.
func (n *notifier) sendEvent(c *channel, team string, inner any, sent Sent) Sent {
	if team == "" {
		team = n.cfg.Team
	}
	if c != nil { // without a channel, the event is made by a test
		n.life.RecordViolation(contract().Check(inner, "event"))
	}
	id := fmt.Sprintf("Ev0E%07d", n.line.NextNumber())
	sent.Events = append(sent.Events, id)
	return n.push(c, delivery.KindEvent, wireOuter{
		Token: "verification", TeamID: team, APIAppID: appID, Event: inner, Type: "event_callback", EventID: id,
		EventTime: n.cfg.Now().Unix(), EventContext: "4-" + id, IsExtSharedChannel: n.world.isShared(c),
		Authorizations: []map[string]any{{"team_id": team, "user_id": n.cfg.BotUser, "is_bot": true, "is_enterprise_install": n.cfg.Organization != ""}},
	}, sent)
}

// push sends a payload to the app and records the id of its envelope.
func (n *notifier) push(c *channel, kind string, payload any, sent Sent) Sent {
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
