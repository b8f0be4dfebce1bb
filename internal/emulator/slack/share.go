package slack

import (
	"cmp"
	"errors"
	"fmt"
)

// Share names a message that somebody passes on.
type Share struct {
	Channel string `json:"channel"`
	TS      string `json:"ts"`
}

// share attaches a message to the one that passes it on, which needs nothing else then.
func (w *world) share(m *message, opts *SayOptions) error {
	if opts.Share == nil && m.text == "" && len(opts.Files) == 0 && opts.Subtype == "" {
		return errors.New("slack emulator: a message needs a text or a file")
	}
	if opts.Share == nil {
		return nil
	}
	a, err := w.attachment(*opts.Share)
	if err != nil {
		return err
	}
	a["is_share"] = true
	m.attached = append(m.attached, a)
	return nil
}

// UnfurlMessage changes a message as the service does by itself, some time after it was
// written, when that links to another message which its author may see: the text stays.
func (p *People) UnfurlMessage(channelID, ts string, of Share) (Sent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, m, err := p.world.theirs(channelID, ts)
	if err != nil {
		return Sent{}, err
	}
	a, err := p.world.attachment(of)
	if err != nil {
		return Sent{}, err
	}
	before := p.world.wire(m)
	m.attached = append(m.attached, a)
	return p.news.tellChanged(c, m, before), nil
}

// attachment is a message in another one. No page describes it; these are the fields that
// others were sent (slackapi/java-slack-sdk #1179, slack-go/slack PR 282; files:
// NousResearch/hermes-agent PR 75481).
func (w *world) attachment(of Share) (map[string]any, error) {
	c := w.channels[of.Channel]
	if c == nil || c.byTS[of.TS] == nil {
		return nil, fmt.Errorf("slack emulator: no message %s in channel %s", of.TS, of.Channel)
	}
	m := c.byTS[of.TS]
	name := m.user
	if u := w.users[m.user]; u != nil {
		name = cmp.Or(u.DisplayName, u.RealName, u.Name)
	}
	place := c.name
	if c.kind == DM {
		place = "Direct Message"
	}
	link := "https://example.slack.com/archives/" + c.id + "/p" + m.ts
	a := map[string]any{
		"id": 1, "ts": m.ts, "author_id": m.user, "author_name": name, "author_subname": name, "channel_id": c.id,
		"channel_team": w.cfg.Team, "channel_name": place, "is_msg_unfurl": true, "color": "D0D0D0", "from_url": link, "original_url": link,
		"text": m.text, "fallback": "[" + name + "] " + m.text, "mrkdwn_in": []string{"text"}, "footer": "Posted in #" + place,
		"message_blocks": []any{map[string]any{"team": w.cfg.Team, "channel": c.id, "ts": m.ts, "message": map[string]any{"blocks": []any{}}}},
	}
	if m.text == "" {
		a["fallback"] = "[no preview available]"
	}
	var files []wireFile
	for _, f := range m.files {
		files = append(files, w.wireFile(f))
	}
	if len(files) > 0 {
		a["files"] = files
	}
	return a, nil
}
