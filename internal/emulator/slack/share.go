package slack

import (
	"cmp"
	"errors"
	"fmt"
)

// Share identifies a message to forward.
type Share struct {
	Channel string `json:"channel"`
	TS      string `json:"ts"`
}

// attachShared attaches the forwarded message to the one that forwards it, which may have no text.
func (w *world) attachShared(m *message, opts *SayOptions) error {
	if opts.Share == nil && m.text == "" && len(opts.Files) == 0 && opts.Subtype == "" {
		return errors.New("slack emulator: a message needs a text or a file")
	}
	if opts.Share == nil {
		return nil
	}
	c := w.channels[opts.Share.Channel]
	if c == nil || c.byTS[opts.Share.TS] == nil {
		return fmt.Errorf("slack emulator: no message %s in channel %s", opts.Share.TS, opts.Share.Channel)
	}
	m.attachments = []any{w.attachment(c, c.byTS[opts.Share.TS])}
	return nil
}

// attachment returns a message as an attachment of another. This is undocumented. The fields are those
// that other developers report (slackapi/java-slack-sdk #1179, slack-go/slack PR 282; files:
// NousResearch/hermes-agent PR 75481).
func (w *world) attachment(c *channel, m *message) map[string]any {
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
		"channel_team": w.cfg.Team, "channel_name": place, "is_msg_unfurl": true, "is_share": true, "color": "D0D0D0", "from_url": link, "original_url": link,
		"text": m.text, "fallback": "[" + name + "] " + m.text, "mrkdwn_in": []string{"text"}, "footer": "Posted in #" + place,
		"message_blocks": []any{map[string]any{"team": w.cfg.Team, "channel": c.id, "ts": m.ts, "message": map[string]any{"blocks": []any{}}}},
	}
	if m.text == "" {
		a["fallback"] = "[no preview available]"
	}
	var files []wireFile
	for _, f := range m.files {
		files = append(files, w.fileJSON(f))
	}
	if len(files) > 0 {
		a["files"] = files
	}
	return a
}
