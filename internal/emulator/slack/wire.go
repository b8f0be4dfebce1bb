package slack

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// These are the service's objects, with the fields that bots use.

type wireMessage struct {
	Type         string          `json:"type"`
	Subtype      string          `json:"subtype,omitempty"`
	User         string          `json:"user,omitempty"`
	BotID        string          `json:"bot_id,omitempty"`
	AppID        string          `json:"app_id,omitempty"`
	Username     string          `json:"username,omitempty"`
	Text         string          `json:"text"`
	TS           string          `json:"ts"`
	Team         string          `json:"team,omitempty"`
	UserTeam     string          `json:"user_team,omitempty"`
	SourceTeam   string          `json:"source_team,omitempty"`
	ClientMsgID  string          `json:"client_msg_id,omitempty"`
	ThreadTS     string          `json:"thread_ts,omitempty"`
	ParentUserID string          `json:"parent_user_id,omitempty"`
	ReplyCount   int             `json:"reply_count,omitempty"`
	ReplyUsers   []string        `json:"reply_users,omitempty"`
	LatestReply  string          `json:"latest_reply,omitempty"`
	Blocks       json.RawMessage `json:"blocks,omitempty"`
	Attachments  []any           `json:"attachments,omitempty"`
	Metadata     *metadata       `json:"metadata,omitempty"`
	Files        []wireFile      `json:"files,omitempty"`
	Upload       bool            `json:"upload,omitempty"`
	Edited       *wireEdited     `json:"edited,omitempty"`
	Root         *wireMessage    `json:"root,omitempty"`
	AppContext   any             `json:"app_context,omitempty"`
}

type wireEdited struct {
	User string `json:"user"`
	TS   string `json:"ts"`
}

type wireFile struct {
	ID                 string `json:"id"`
	Created            int64  `json:"created"`
	Name               string `json:"name"`
	Title              string `json:"title,omitempty"`
	Mimetype           string `json:"mimetype,omitempty"`
	Filetype           string `json:"filetype,omitempty"`
	User               string `json:"user"`
	Size               int    `json:"size"`
	Mode               string `json:"mode"`
	Subtype            string `json:"subtype,omitempty"`
	DurationMS         int    `json:"duration_ms,omitempty"`
	IsExternal         bool   `json:"is_external"`
	FileAccess         string `json:"file_access,omitempty"`
	URLPrivate         string `json:"url_private,omitempty"`
	URLPrivateDownload string `json:"url_private_download,omitempty"`
}

// wireEvent is the inner event for a message.
type wireEvent struct {
	wireMessage
	Channel         string       `json:"channel"`
	ChannelType     string       `json:"channel_type,omitempty"`
	EventTS         string       `json:"event_ts"`
	Hidden          bool         `json:"hidden,omitempty"`
	Message         *wireMessage `json:"message,omitempty"`
	PreviousMessage *wireMessage `json:"previous_message,omitempty"`
	DeletedTS       string       `json:"deleted_ts,omitempty"`
}

// wireOuter is the Events API's envelope of an event.
type wireOuter struct {
	Token              string           `json:"token"`
	TeamID             string           `json:"team_id"`
	APIAppID           string           `json:"api_app_id"`
	Event              any              `json:"event"`
	Type               string           `json:"type"`
	EventID            string           `json:"event_id"`
	EventTime          int64            `json:"event_time"`
	Authorizations     []map[string]any `json:"authorizations"`
	IsExtSharedChannel bool             `json:"is_ext_shared_channel"`
	EventContext       string           `json:"event_context"`
}

// messageJSON returns the current JSON of a message.
func (w *world) messageJSON(m *message) *wireMessage {
	out := &wireMessage{
		Type: "message", Subtype: m.subtype, User: m.user, Text: m.text, TS: m.ts, Team: w.teamOf(m.user), ThreadTS: m.threadTS(),
		ReplyCount: len(m.replies), ReplyUsers: m.replyUsers, Blocks: m.blocks, Attachments: m.attachments,
	}
	switch {
	case m.fromBot:
		out.BotID, out.AppID = BotID, appID
	case m.otherBotID != "":
		out.BotID, out.Subtype, out.User, out.Username = m.otherBotID, "bot_message", "", m.user
	default:
		out.ClientMsgID = "c-" + m.ts
		if m.text != "" {
			out.Blocks = typedBlocks(m.text)
		}
	}
	if out.Team != w.cfg.Team {
		out.UserTeam, out.SourceTeam = out.Team, out.Team
	}
	if n := len(m.replies); n > 0 {
		out.LatestReply = m.replies[n-1]
	}
	if m.parent != nil {
		out.ParentUserID = m.parent.user
	}
	if !m.edited.IsZero() {
		out.Edited = &wireEdited{User: m.user, TS: strconv.FormatInt(m.edited.Unix(), 10) + ".000000"}
	}
	if len(m.files) > 0 { // github.com/slackapi/slack-api-specs/issues/62; slackapi/bolt-python/issues/708 for other messages
		out.Team, out.UserTeam, out.SourceTeam = "", "", ""
	}
	for _, f := range m.files {
		out.Files = append(out.Files, w.fileJSON(f))
	}
	return out
}

// channelJSON returns the JSON of a channel, as in conversations.info.
func (w *world) channelJSON(c *channel) map[string]any {
	out := map[string]any{
		"id": c.id, "name": c.name, "is_channel": c.kind == public, "is_group": c.kind == Private,
		"is_im": c.kind == DM, "is_mpim": c.kind == groupDM, "is_private": c.kind != public,
		"is_archived": c.archived, "is_member": c.hasBot, "num_members": len(c.members), "context_team_id": w.cfg.Team,
		"is_ext_shared": w.isShared(c),
		"topic":         map[string]any{"value": c.topic}, "purpose": map[string]any{"value": c.purpose},
	}
	if c.kind == DM && len(c.members) > 0 {
		out["user"] = c.members[0]
		delete(out, "name")
	}
	return out
}

// userJSON returns the JSON of a user, as in users.info.
func (w *world) userJSON(u *User) map[string]any {
	return map[string]any{
		"id": u.ID, "team_id": w.teamOf(u.ID), "is_stranger": u.Team != "", "name": u.Name, "real_name": u.RealName, "deleted": u.Deleted,
		"is_admin": u.Admin || u.Owner, "is_owner": u.Owner, "is_primary_owner": false, "is_bot": u.Bot, "tz": u.Zone,
		"profile": map[string]any{"real_name": u.RealName, "display_name": u.DisplayName},
	}
}

var tokenPattern = regexp.MustCompile(`<([^<>]*)>`)

// typedBlocks returns the blocks that Slack's own apps send with a text that a user types: a rich text.
func typedBlocks(text string) json.RawMessage {
	var elements []map[string]string
	add := func(kind, name, value string) {
		if value != "" {
			elements = append(elements, map[string]string{"type": kind, name: value})
		}
	}
	typed := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
	at := 0
	for _, m := range tokenPattern.FindAllStringSubmatchIndex(text, -1) {
		add("text", "text", typed.Replace(text[at:m[0]]))
		at = m[1]
		target, label, _ := strings.Cut(text[m[2]:m[3]], "|")
		switch {
		case strings.HasPrefix(target, "@"):
			add("user", "user_id", target[1:])
		case strings.HasPrefix(target, "#"):
			add("channel", "channel_id", target[1:])
		case strings.HasPrefix(target, "!subteam^"):
			add("usergroup", "usergroup_id", strings.TrimPrefix(target, "!subteam^"))
		case target == "!here", target == "!channel", target == "!everyone":
			add("broadcast", "range", target[1:])
		case strings.HasPrefix(target, "!"):
			add("text", "text", typed.Replace(label))
		default:
			add("link", "url", typed.Replace(target))
			if label != "" {
				elements[len(elements)-1]["text"] = typed.Replace(label)
			}
		}
	}
	add("text", "text", typed.Replace(text[at:]))
	section := map[string]any{"type": "rich_text_section", "elements": elements}
	raw, _ := json.Marshal([]any{map[string]any{"type": "rich_text", "block_id": "typed", "elements": []any{section}}}) // of strings alone
	return raw
}
