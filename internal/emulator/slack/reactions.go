package slack

import (
	"fmt"
	"slices"
	"strings"

	"oneclaw/internal/emulator/slack/manifest"
)

// The events for reactions (docs.slack.dev/reference/events/reaction_added, …/reaction_removed).
const (
	reactionAdded   = "reaction_added"
	reactionRemoved = "reaction_removed"
)

// reaction is a user's reaction.
type reaction struct{ user, name string }

// wireReaction is the event for a reaction.
type wireReaction struct {
	Type     string            `json:"type"`
	User     string            `json:"user"`
	Reaction string            `json:"reaction"`
	ItemUser string            `json:"item_user"`
	Item     map[string]string `json:"item"`
	EventTS  string            `json:"event_ts"`
}

// React adds a reaction to a message as a user, by its name without colons. With back, it removes the
// reaction. A user can have several.
func (p *People) React(channelID, ts, userID, name string, back bool) (Sent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.world.channels[channelID]
	if c == nil || c.byTS[ts] == nil || p.world.users[userID] == nil || name == "" {
		return Sent{}, fmt.Errorf("slack emulator: %s cannot react with %q to %s in %s", userID, name, ts, channelID)
	}
	m, r := c.byTS[ts], reaction{userID, name}
	if slices.Contains(m.userReactions, r) != back {
		return Sent{}, fmt.Errorf("slack emulator: %s already has this reaction to %s, or has none to remove", userID, ts)
	}
	if back {
		m.userReactions = slices.DeleteFunc(slices.Clone(m.userReactions), func(one reaction) bool { return one == r })
		return p.notifier.notifyReaction(c, m, reactionRemoved, r), nil
	}
	m.userReactions = append(slices.Clone(m.userReactions), r)
	return p.notifier.notifyReaction(c, m, reactionAdded, r), nil
}

// notifyReaction sends the event for a reaction, including the app's own, in the channels of the
// app.
func (n *notifier) notifyReaction(c *channel, m *message, kind string, r reaction) Sent {
	n.world.emit(event{Kind: eventReaction, Chat: c.id, Message: m.ts, Text: r.name}, c, m)
	sent := Sent{Channel: c.id, TS: m.ts}
	scope, _ := manifest.EventScope(kind)
	if !c.hasBot || !n.app.hasScope(scope) || !n.app.isSubscribed(kind) {
		return sent
	}
	return n.sendEvent(c, "", wireReaction{
		Type: kind, User: r.user, Reaction: r.name, ItemUser: m.user, EventTS: n.world.nextTS(),
		Item: map[string]string{"type": "message", "channel": c.id, "ts": m.ts},
	}, sent)
}

func addReaction(c *call) (any, *refusal) {
	return c.changeReaction(func(m *message, name string) *refusal {
		if slices.Contains(m.botReactions, name) {
			return newRefusal("already_reacted") // its page
		}
		m.botReactions = append(m.botReactions, name)
		return nil
	})
}

func removeReaction(c *call) (any, *refusal) {
	return c.changeReaction(func(m *message, name string) *refusal {
		if !slices.Contains(m.botReactions, name) {
			return newRefusal("no_reaction") // its page
		}
		m.botReactions = slices.DeleteFunc(m.botReactions, func(have string) bool { return have == name })
		return nil
	})
}

// getReactions returns a message with its reactions.
func getReactions(c *call) (any, *refusal) {
	ch, err := c.world.findChannel(c.p.Text("channel"), false)
	if err != nil {
		return nil, err
	}
	m := ch.byTS[c.p.Text("timestamp")]
	if m == nil || m.deleted {
		return nil, newRefusal("message_not_found") // its page
	}
	var names []string
	users := map[string][]string{}
	add := func(name, user string) {
		if users[name] == nil {
			names = append(names, name)
		}
		users[name] = append(users[name], user)
	}
	for _, r := range m.userReactions {
		add(r.name, r.user)
	}
	for _, name := range m.botReactions {
		add(name, c.cfg.BotUser)
	}
	var reactions []map[string]any
	for _, name := range names {
		reactions = append(reactions, map[string]any{"name": name, "users": users[name], "count": len(users[name])})
	}
	shown := map[string]any{"type": "message", "ts": m.ts, "text": m.text, "user": m.user, "team": c.cfg.Team}
	if len(reactions) > 0 {
		shown["reactions"] = reactions
	}
	return map[string]any{"type": "message", "channel": ch.id, "message": shown}, nil
}

func (c *call) changeReaction(change func(*message, string) *refusal) (any, *refusal) {
	ch, err := c.world.findChannel(c.p.Text("channel"), true)
	if err != nil {
		return nil, err
	}
	m, name := ch.byTS[c.p.Text("timestamp")], strings.Trim(c.p.Text("name"), ":")
	switch {
	case m == nil || m.deleted:
		return nil, newRefusal("message_not_found") // its page
	case name == "":
		return nil, newRefusal("invalid_name") // its page
	}
	if err := change(m, name); err != nil {
		return nil, err
	}
	kind := reactionAdded
	if !slices.Contains(m.botReactions, name) {
		kind = reactionRemoved
	}
	c.notifier.notifyReaction(ch, m, kind, reaction{c.cfg.BotUser, name})
	return nil, nil
}
