package slack

import (
	"fmt"
	"slices"
	"strings"

	"oneclaw/internal/emulator/slack/manifest"
)

// The events of reactions (docs.slack.dev/reference/events/reaction_added, …/reaction_removed).
const (
	reactionAdded   = "reaction_added"
	reactionRemoved = "reaction_removed"
)

// reaction is a person's reaction.
type reaction struct{ user, name string }

// wireReaction is the event of a reaction.
type wireReaction struct {
	Type     string            `json:"type"`
	User     string            `json:"user"`
	Reaction string            `json:"reaction"`
	ItemUser string            `json:"item_user"`
	Item     map[string]string `json:"item"`
	EventTS  string            `json:"event_ts"`
}

// React adds a reaction to a message as a person, by its name without colons, or removes it. A
// person can have several.
func (p *People) React(channelID, ts, userID, name string, back bool) (Sent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.world.channels[channelID]
	if c == nil || c.byTS[ts] == nil || p.world.users[userID] == nil || name == "" {
		return Sent{}, fmt.Errorf("slack emulator: %s cannot react with %q to %s in %s", userID, name, ts, channelID)
	}
	m, r := c.byTS[ts], reaction{userID, name}
	if slices.Contains(m.theirs, r) != back {
		return Sent{}, fmt.Errorf("slack emulator: %s has reacted so to %s already, or has not", userID, ts)
	}
	if back {
		m.theirs = slices.DeleteFunc(slices.Clone(m.theirs), func(one reaction) bool { return one == r })
		return p.news.tellReaction(c, m, reactionRemoved, r), nil
	}
	m.theirs = append(slices.Clone(m.theirs), r)
	return p.news.tellReaction(c, m, reactionAdded, r), nil
}

// tellReaction makes the event of a reaction, including the app's own, in the channels of the
// app.
func (n *news) tellReaction(c *channel, m *message, kind string, r reaction) Sent {
	n.world.emit(Event{Kind: EventReaction, Chat: c.id, Message: m.ts, Text: r.name}, c, m)
	sent := Sent{Channel: c.id, TS: m.ts}
	scope, _ := manifest.EventScope(kind)
	if !c.botIn || !n.app.hasScope(scope) || !n.app.subscribed(kind) {
		return sent
	}
	return n.event(c, "", wireReaction{
		Type: kind, User: r.user, Reaction: r.name, ItemUser: m.user, EventTS: n.world.stamp(),
		Item: map[string]string{"type": "message", "channel": c.id, "ts": m.ts},
	}, sent)
}

func addReaction(c *call) (any, *refusal) {
	return c.react(func(m *message, name string) *refusal {
		if slices.Contains(m.react, name) {
			return refuse("already_reacted") // its page
		}
		m.react = append(m.react, name)
		return nil
	})
}

func removeReaction(c *call) (any, *refusal) {
	return c.react(func(m *message, name string) *refusal {
		if !slices.Contains(m.react, name) {
			return refuse("no_reaction") // its page
		}
		m.react = slices.DeleteFunc(m.react, func(have string) bool { return have == name })
		return nil
	})
}

func (c *call) react(change func(*message, string) *refusal) (any, *refusal) {
	ch, err := c.world.find(c.p.Text("channel"), true)
	if err != nil {
		return nil, err
	}
	m, name := ch.byTS[c.p.Text("timestamp")], strings.Trim(c.p.Text("name"), ":")
	switch {
	case m == nil || m.deleted:
		return nil, refuse("message_not_found") // its page
	case name == "":
		return nil, refuse("invalid_name") // its page
	}
	if err := change(m, name); err != nil {
		return nil, err
	}
	kind := reactionAdded
	if !slices.Contains(m.react, name) {
		kind = reactionRemoved
	}
	c.news.tellReaction(ch, m, kind, reaction{c.cfg.BotUser, name})
	return nil, nil
}
