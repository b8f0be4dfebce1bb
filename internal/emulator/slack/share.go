package slack

import (
	"cmp"
	"encoding/json"
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
	if opts.Share == nil && m.text == "" && len(opts.Files)+len(opts.Table) == 0 && opts.Subtype == "" {
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
		"message_blocks": []any{map[string]any{"team": w.cfg.Team, "channel": c.id, "ts": m.ts, "message": w.sharedContent(m)}},
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

// sharedContent returns what a shared message consists of besides its text
// (slackapi/java-slack-sdk #1179). Assumed: its attachments stand beside its blocks.
func (w *world) sharedContent(m *message) map[string]any {
	content := map[string]any{"blocks": []any{}}
	if shown := w.messageJSON(m); len(shown.Blocks) > 0 {
		content["blocks"] = shown.Blocks
	}
	if len(m.attachments) > 0 {
		content["attachments"] = m.attachments
	}
	return content
}

// attachTable attaches a table as Slack's own apps do for pasted cells: in an attachment without a text
// (openclaw/openclaw #112229, slackapi/slack-skills-plugin #126).
func (m *message) attachTable(rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	cells := make([][]map[string]string, len(rows))
	for i, row := range rows {
		for _, text := range row {
			cells[i] = append(cells[i], map[string]string{"type": "raw_text", "text": cmp.Or(text, " ")})
		}
	}
	table := []any{map[string]any{"type": "table", "block_id": "table", "rows": cells}}
	raw, err := json.Marshal(table)
	if err != nil {
		return fmt.Errorf("slack emulator: encode table: %w", err)
	}
	if refused := checkBlocks(raw, maxBlocks); refused != nil {
		return fmt.Errorf("slack emulator: the table is refused: %s", refused.code)
	}
	m.pasted = raw
	m.attachments = append(m.attachments, map[string]any{"id": len(m.attachments) + 1, "blocks": table, "fallback": "[no preview available]"})
	return nil
}

// setBlocks sets the blocks and attachments of a message of another app.
func (m *message) setBlocks(blocks json.RawMessage, attachments []json.RawMessage) error {
	if len(blocks) > 0 {
		if refused := checkBlocks(blocks, maxBlocks); refused != nil {
			return fmt.Errorf("slack emulator: the blocks are refused: %s", refused.code)
		}
		m.blocks = blocks
	}
	for _, one := range attachments {
		m.attachments = append(m.attachments, one)
	}
	return nil
}
