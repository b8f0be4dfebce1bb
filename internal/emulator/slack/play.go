package slack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// played has the relevant fields of a recorded event, command or press.
type played struct {
	Event struct {
		Type        string `json:"type"`
		Subtype     string `json:"subtype"`
		Channel     string `json:"channel"`
		ChannelType string `json:"channel_type"`
		User        string `json:"user"`
		Text        string `json:"text"`
		TS          string `json:"ts"`
		Thread      string `json:"thread_ts"`
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

// Play sends the payload of a recorded envelope. It adds the users and channels in it; a message
// is added to its channel with its ts, and a response_url is replaced by one of the emulator.
func (p *People) Play(kind string, recorded json.RawMessage) error {
	var seen played
	var payload map[string]json.RawMessage
	if err := json.Unmarshal(recorded, &seen); err != nil {
		return fmt.Errorf("slack emulator: decode a payload: %w", err)
	}
	if err := json.Unmarshal(recorded, &payload); err != nil {
		return fmt.Errorf("slack emulator: decode a payload: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	user := cmp.Or(seen.Event.User, seen.UserID, seen.User.ID)
	if user != "" && p.world.users[user] == nil {
		p.world.users[user] = &User{ID: user, Name: strings.ToLower(user), RealName: user}
	}
	c := p.world.playedChannel(cmp.Or(seen.Event.Channel, seen.ChannelID, seen.Channel.ID), seen.Event.ChannelType, user)
	if e := seen.Event; c != nil && e.TS != "" && c.byTS[e.TS] == nil && (e.Subtype == "" || e.Subtype == "file_share") {
		if e.Thread != "" && e.Thread != e.TS && c.byTS[e.Thread] == nil {
			p.world.restore(c, &message{ts: e.Thread, user: user}) // it began before the recording
		}
		p.world.restore(c, &message{ts: e.TS, user: user, text: e.Text, parent: c.byTS[e.Thread]})
	}
	if payload["response_url"] != nil && c != nil {
		_, address := p.world.invite(c, user, nil)
		payload["response_url"], _ = json.Marshal(address) // a string always can
	}
	p.news.push(c, kind, payload, Sent{})
	return nil
}

// playedChannel finds or adds a channel, and adds a member to it.
func (w *world) playedChannel(id, kind, user string) *channel {
	if id == "" {
		return nil
	}
	c := w.channels[id]
	if c == nil {
		byName := map[byte]string{'D': DM, 'G': Private}
		c = w.makeChannel(ChannelSpec{ID: id, Kind: cmp.Or(strings.TrimSuffix(kind, "_home"), byName[id[0]], Public)})
	}
	if user != "" && !slices.Contains(c.members, user) {
		c.members = append(c.members, user)
	}
	return c
}

// restore adds a message with its ts to its channel.
func (w *world) restore(c *channel, m *message) {
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
