package slack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// recordedPayload has the relevant fields of a recorded event, command or button press.
type recordedPayload struct {
	Event struct {
		Type        string `json:"type"`
		Subtype     string `json:"subtype"`
		Channel     string `json:"channel"`
		ChannelType string `json:"channel_type"`
		User        string `json:"user"`
		Text        string `json:"text"`
		TS          string `json:"ts"`
		ThreadTS    string `json:"thread_ts"`
	} `json:"event"`
	UserID    string `json:"user_id"`
	ChannelID string `json:"channel_id"`
	User      struct {
		ID string `json:"id"`
	} `json:"user"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
}

// Play sends the payload of a recorded envelope. It adds the payload's user and channel if they are
// unknown. A message is added to its channel with its ts, and a response_url is replaced by a URL of the
// emulator.
func (p *People) Play(kind string, recorded json.RawMessage) error {
	var seen recordedPayload
	var payload map[string]json.RawMessage
	if err := json.Unmarshal(recorded, &seen); err != nil {
		return fmt.Errorf("slack emulator: decode recorded payload: %w", err)
	}
	if err := json.Unmarshal(recorded, &payload); err != nil {
		return fmt.Errorf("slack emulator: decode recorded payload: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	user := cmp.Or(seen.Event.User, seen.UserID, seen.User.ID)
	if user != "" && p.world.users[user] == nil {
		p.world.users[user] = &User{ID: user, Name: strings.ToLower(user), RealName: user}
	}
	c := p.world.findOrAddChannel(cmp.Or(seen.Event.Channel, seen.ChannelID, seen.Channel.ID), seen.Event.ChannelType, user)
	if e := seen.Event; c != nil && e.TS != "" && c.byTS[e.TS] == nil && (e.Subtype == "" || e.Subtype == "file_share") {
		if e.ThreadTS != "" && e.ThreadTS != e.TS && c.byTS[e.ThreadTS] == nil {
			p.world.restoreMessage(c, &message{ts: e.ThreadTS, user: user}) // the thread began before the recording
		}
		p.world.restoreMessage(c, &message{ts: e.TS, user: user, text: e.Text, parent: c.byTS[e.ThreadTS]})
	}
	if payload["response_url"] != nil && c != nil {
		_, address := p.world.newResponseURL(c, user, nil)
		payload["response_url"], _ = json.Marshal(address) // a string can always be encoded
	}
	p.notifier.push(c, kind, payload, Sent{})
	return nil
}

// findOrAddChannel returns a channel, which it adds if necessary, and makes the user a member. Without
// an id it returns nil.
func (w *world) findOrAddChannel(id, kind, user string) *channel {
	if id == "" {
		return nil
	}
	c := w.channels[id]
	if c == nil {
		byName := map[byte]string{'D': DM, 'G': Private}
		c = w.addChannel(ChannelSpec{ID: id, Kind: cmp.Or(strings.TrimSuffix(kind, "_home"), byName[id[0]], public)})
	}
	if user != "" && !slices.Contains(c.members, user) {
		c.members = append(c.members, user)
	}
	return c
}

// restoreMessage adds a message with its recorded ts to its channel.
func (w *world) restoreMessage(c *channel, m *message) {
	m.sent = w.cfg.Now()
	c.messages = append(c.messages, m)
	c.byTS[m.ts] = m
	if m.parent != nil {
		m.parent.replies = append(m.parent.replies, m.ts)
	}
	if at, ok := new(big.Rat).SetString(m.ts); ok {
		micros := at.Mul(at, big.NewRat(1e6, 1)).Num()
		w.lastStamp = max(w.lastStamp, micros.Int64())
	}
}
