package slack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"oneclaw/internal/emulator/slack/blockkit"
	"oneclaw/internal/emulator/slack/delivery"
)

// Press presses the button with the given value in a message of the bot, as a user. With forge, the
// button need not exist.
func (p *People) Press(channelID, ts, userID, value string, forge bool) (Sent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, err := p.world.writableChannel(channelID, userID)
	if err != nil {
		return Sent{}, err
	}
	m := c.byTS[ts]
	if m == nil || !m.fromBot || m.deleted || m.ephemeral != "" && m.ephemeral != userID {
		return Sent{}, fmt.Errorf("slack emulator: user %s sees no message of the bot %s in channel %s", userID, ts, channelID)
	}
	kind := "button"
	button, ok := m.findButton(value)
	if !ok && blockkit.HasFeedback(m.blocks) && (value == "good" || value == "bad") {
		kind, ok = "feedback_buttons", true // Render leaves out feedback buttons
	}
	if !ok && !forge {
		return Sent{}, fmt.Errorf("slack emulator: no button %q under message %s in channel %s", value, ts, channelID)
	}
	trigger, url := p.world.newResponseURL(c, userID, m)
	container := map[string]any{"type": "message", "message_ts": ts, "channel_id": c.id, "is_ephemeral": m.ephemeral != ""}
	if m.parent != nil {
		container["thread_ts"] = m.parent.ts
	}
	payload := map[string]any{
		"type": "block_actions", "team": map[string]any{"id": p.cfg.Team, "domain": strings.ToLower(p.cfg.TeamName)},
		"enterprise": nil, "is_enterprise_install": false, "api_app_id": appID, "token": "verification",
		"user":      map[string]any{"id": userID, "username": p.world.users[userID].Name, "name": p.world.users[userID].Name, "team_id": p.world.teamOf(userID)},
		"channel":   map[string]any{"id": c.id, "name": c.payloadName()},
		"container": container,
		"actions": []any{map[string]any{
			"action_id": button.ActionID, "block_id": cmp.Or(button.BlockID, "b0"), "type": kind, "value": value, "action_ts": p.world.nextTS(),
			"text": map[string]any{"type": "plain_text", "text": button.Label, "emoji": true},
		}},
		"state": map[string]any{"values": map[string]any{}}, "response_url": url, "trigger_id": trigger,
	}
	if m.ephemeral == "" {
		payload["message"] = p.world.messageJSON(m)
	}
	return p.notifier.push(c, delivery.KindInteractive, payload, Sent{Channel: c.id, TS: ts, TriggerID: trigger}), nil
}

// SendInteraction sends any interaction to the app.
func (p *People) SendInteraction(payload json.RawMessage) Sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.notifier.push(nil, delivery.KindInteractive, payload, Sent{})
}

// findButton returns the button of a message that has the given value.
func (m *message) findButton(value string) (Button, bool) {
	_, rows, _ := blockkit.Render(m.text, m.blocks)
	all := slices.Concat(rows...)
	if i := slices.IndexFunc(all, func(b Button) bool { return b.Value == value }); i >= 0 {
		return all[i], true
	}
	return Button{}, false
}

// payloadName returns the name of a channel in the payloads of commands and button presses.
func (ch *channel) payloadName() string {
	switch ch.kind {
	case DM:
		return "directmessage"
	case Private, groupDM:
		return "privategroup"
	}
	return ch.name
}
