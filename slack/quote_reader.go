package slack

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/chats"
)

// quoteReader reads quoted messages in attachments for one bot.
type quoteReader struct {
	// IsOwn reports whether a user is the bot.
	IsOwn func(user string) bool
	// Name returns the name of a user, or the id if it is not known.
	Name func(user string) string
	// Text decodes the text of a message.
	Text func(raw string) string
	// Time returns the time of a ts; zero if it is invalid.
	Time func(ts string) time.Time
	// Files returns the files of a message, and texts about those that cannot be read.
	Files func(raw json.RawMessage) ([]chats.Attachment, []string)
}

// attachment is a message inside another one. Its time is a string or a number.
type attachment struct {
	IsShare       bool            `json:"is_share"`
	IsUnfurl      bool            `json:"is_msg_unfurl"`
	IsReply       bool            `json:"is_reply_unfurl"`
	TS            json.RawMessage `json:"ts"`
	AuthorID      string          `json:"author_id"`
	AuthorName    string          `json:"author_name"`
	AuthorSubname string          `json:"author_subname"`
	ChannelID     string          `json:"channel_id"`
	ChannelName   string          `json:"channel_name"`
	FromURL       string          `json:"from_url"`
	Text          string          `json:"text"`
	Fallback      string          `json:"fallback"`
	Files         json.RawMessage `json:"files"`
}

// noPreview is Slack's text for a message that it does not show.
const noPreview = "[no preview available]"

func (a *attachment) isMessage() bool { return a.IsShare || a.IsUnfurl || a.IsReply }

// attachedMessages returns the attachments that are messages. It skips those that do not decode: they
// come from another author, and must not affect the message that refers to them.
func attachedMessages(raw json.RawMessage) (list []attachment) {
	var all []json.RawMessage
	_ = json.Unmarshal(raw, &all)
	for _, one := range all {
		var a attachment
		if json.Unmarshal(one, &a) == nil && a.isMessage() {
			list = append(list, a)
		}
	}
	return list
}

// addsQuote reports whether attachments contain a message that the earlier ones did not.
func addsQuote(before, after json.RawMessage) bool {
	known := attachedMessages(before)
	return slices.ContainsFunc(attachedMessages(after), func(a attachment) bool {
		return !slices.ContainsFunc(known, func(b attachment) bool { return b.FromURL == a.FromURL })
	})
}

// AttachmentText returns the text that a program has put only into attachments, as alerts do, without
// pictures and buttons.
func (r quoteReader) AttachmentText(raw json.RawMessage) string {
	var all []json.RawMessage
	_ = json.Unmarshal(raw, &all)
	var lines []string
	for _, one := range all {
		var a struct {
			attachment
			Pretext string `json:"pretext"`
			Title   string `json:"title"`
			Fields  []struct {
				Title string `json:"title"`
				Value string `json:"value"`
			} `json:"fields"`
		}
		if json.Unmarshal(one, &a) != nil || a.isMessage() || a.FromURL != "" { // a link's text is another author's
			continue
		}
		parts := []string{a.Pretext, a.Title, a.Text}
		for _, f := range a.Fields {
			parts = append(parts, f.Title+": "+f.Value)
		}
		parts = slices.DeleteFunc(parts, func(s string) bool { return strings.Trim(s, " :") == "" })
		if len(parts) == 0 && a.Fallback != noPreview {
			parts = []string{a.Fallback}
		}
		lines = append(lines, parts...)
	}
	return r.Text(strings.Join(lines, "\n"))
}

// Read returns the messages in attachments. channel is the channel of the message that has them.
func (r quoteReader) Read(raw json.RawMessage, channel string) (list []chats.Quoted) {
	for _, a := range attachedMessages(raw) {
		q := chats.Quoted{Kind: chats.RefLink, FromBot: r.IsOwn(a.AuthorID), Text: r.Text(a.Text), Time: r.Time(strings.Trim(string(a.TS), `"`))}
		if a.IsShare {
			q.Kind = chats.RefForward
		}
		q.By = cmp.Or(a.AuthorSubname, a.AuthorName)
		if q.By == "" && a.AuthorID != "" {
			q.By = r.Name(a.AuthorID)
		}
		if a.ChannelID != channel {
			q.From = a.ChannelName
		}
		q.Files, q.Skipped = r.Files(a.Files)
		if q.Empty() && a.Fallback != noPreview {
			q.Text = r.Text(a.Fallback)
		}
		if !q.Empty() {
			list = append(list, q)
		}
	}
	return chats.LimitQuotes(list)
}
