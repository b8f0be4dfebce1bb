package slack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"oneclaw/internal/emulator/slack/blockkit"
)

// Press has a person press the button with this value under a message of the bot.
// Where forge is set, no such button has to be there.
func (s *Server) Press(channelID, ts, userID, value string, forge bool) (Sent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.speaker(channelID, userID)
	if err != nil {
		return Sent{}, err
	}
	m := c.byTS[ts]
	if m == nil || !m.bot || m.deleted || m.ephemeral != "" && m.ephemeral != userID {
		return Sent{}, fmt.Errorf("slack emulator: user %s sees no message of the bot %s in channel %s", userID, ts, channelID)
	}
	kind := "button"
	button, ok := m.button(value)
	if !ok && blockkit.Judged(m.blocks) && (value == "good" || value == "bad") {
		kind, ok = "feedback_buttons", true // what its buttons are called is up to the app
	}
	if !ok && !forge {
		return Sent{}, fmt.Errorf("slack emulator: no button %q under message %s in channel %s", value, ts, channelID)
	}
	trigger, url := s.invite(c, userID, m)
	container := map[string]any{"type": "message", "message_ts": ts, "channel_id": c.id, "is_ephemeral": m.ephemeral != ""}
	if m.parent != nil {
		container["thread_ts"] = m.parent.ts
	}
	payload := map[string]any{
		"type": "block_actions", "team": map[string]any{"id": s.cfg.Team, "domain": strings.ToLower(s.cfg.TeamName)},
		"enterprise": nil, "is_enterprise_install": false, "api_app_id": AppID, "token": "verification",
		"user":      map[string]any{"id": userID, "username": s.users[userID].Name, "name": s.users[userID].Name, "team_id": s.teamOf(userID)},
		"channel":   map[string]any{"id": c.id, "name": c.nameForApps()},
		"container": container,
		"actions": []any{map[string]any{
			"action_id": button.Action, "block_id": cmp.Or(button.Block, "b0"), "type": kind, "value": value, "action_ts": s.stamp(),
			"text": map[string]any{"type": "plain_text", "text": button.Label, "emoji": true},
		}},
		"state": map[string]any{"values": map[string]any{}}, "response_url": url, "trigger_id": trigger,
	}
	if m.ephemeral == "" {
		payload["message"] = s.wire(m)
	}
	return s.push(c, kindInteractive, payload, Sent{Channel: c.id, TS: ts, Trigger: trigger}), nil
}

// Interact sends an interaction of any form to the app.
func (s *Server) Interact(payload json.RawMessage) Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.push(nil, kindInteractive, payload, Sent{})
}

// button finds a button of a message by its value.
func (m *message) button(value string) (Button, bool) {
	_, rows, _ := blockkit.Shown(m.text, m.blocks)
	for _, row := range rows {
		for _, b := range row {
			if b.Value == value {
				return b, true
			}
		}
	}
	return Button{}, false
}

// nameForApps is the name of a channel as commands and presses tell it.
func (ch *channel) nameForApps() string {
	switch ch.kind {
	case DM:
		return "directmessage"
	case Private, GroupDM:
		return "privategroup"
	}
	return ch.name
}
