package slack

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"oneclaw/bridge/chats"
	"oneclaw/slack/blocks"
)

// quoteReader reads quoted messages in attachments for one bot.
type quoteReader struct {
	// isOwn reports whether a user is the bot.
	isOwn func(user string) bool
	// name returns the name of a user, or the id if it is not known.
	name func(user string) string
	// text decodes the text of a message.
	text func(raw string) string
	// time returns the time of a ts; zero if it is invalid.
	time func(ts string) time.Time
}

// attachment is an attachment of a message, which may be a message itself. Its time is a string or a number.
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
	Files         attachedFiles   `json:"files"`
	Blocks        json.RawMessage `json:"blocks"`
	// MessageBlocks are the blocks of a message: in this form Slack adds them where it shows one.
	MessageBlocks json.RawMessage `json:"message_blocks"`
	AppUnfurl     string          `json:"app_unfurl_url"`
}

// noPreview is Slack's text for a message that it does not show.
const noPreview = "[no preview available]"

func (a *attachment) isMessage() bool { return a.IsShare || a.IsUnfurl || a.IsReply }

// isPreview reports whether it shows what a link leads to.
func (a *attachment) isPreview() bool { return a.FromURL != "" || a.AppUnfurl != "" }

func attachmentsIn(raw json.RawMessage) (all []json.RawMessage) {
	if len(raw) > 0 && json.Unmarshal(raw, &all) != nil {
		return []json.RawMessage{raw}
	}
	return all
}

// attachedMessages returns the attachments that are messages. They come from another author, and must not
// affect the message that refers to them if they do not decode.
func attachedMessages(raw json.RawMessage) (list []attachment) {
	for _, one := range attachmentsIn(raw) {
		var a attachment
		if _, err := decodeLoosely(one, &a); err == nil && a.isMessage() {
			if list = append(list, a); len(list) == chats.MaxQuoted {
				break
			}
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

// content returns what a message says, as [message.content] does for one that is not attached.
func (a *attachment) content() string {
	said := newSaid(a.Text)
	r := blocks.NewReader(maxQuotedContent - min(utf8.RuneCountInString(a.Text), maxQuotedContent))
	var shown []struct {
		Message message `json:"message"`
	}
	_, _ = decodeLoosely(a.MessageBlocks, &shown) // then there are none
	for _, one := range shown {
		said.add(one.Message.Text)
		for _, text := range append(r.Read(one.Message.Blocks), attachedTexts(r, one.Message.Attachments, true)...) {
			said.add(text)
		}
	}
	for _, text := range r.Read(a.Blocks) {
		said.add(text)
	}
	said.add(r.Rest())
	return strings.Join(dropEmpty(append([]string{a.Text}, said.more...)), "\n")
}

// Read returns the messages in attachments. channel is the channel of the message that has them.
func (r quoteReader) Read(raw json.RawMessage, channel string) (list []chats.Quoted) {
	for _, a := range attachedMessages(raw) {
		q := chats.Quoted{Kind: chats.RefLink, FromBot: r.isOwn(a.AuthorID), Time: r.time(strings.Trim(string(a.TS), `"`))}
		if a.IsShare {
			q.Kind = chats.RefForward
		}
		if q.Text = r.text(a.Text); !q.FromBot || q.Text == "" { // the bot's own text says all that its blocks do
			q.Text = r.text(a.content())
		}
		q.By = cmp.Or(a.AuthorSubname, a.AuthorName)
		if q.By == "" && a.AuthorID != "" {
			q.By = r.name(a.AuthorID)
		}
		if a.ChannelID != channel {
			q.From = a.ChannelName
		}
		q.Files, q.Skipped = convertFiles(a.Files, a.AuthorID, r.isOwn)
		switch {
		case q.Empty() && a.Fallback != noPreview && a.Fallback != "":
			q.Text = r.text(a.Fallback)
		case q.Empty():
			q.Skipped = []string{"its content, which Slack does not show"}
		}
		list = append(list, q)
	}
	return chats.LimitQuotes(list)
}
