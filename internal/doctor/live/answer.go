package live

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	"oneclaw/internal/record"
)

// message is what a service says of a message that it took: Telegram in the result of the
// call, Slack under message, and of files in a list.
type message struct {
	Telegram bool   `json:"-"`
	ID       int64  `json:"message_id"`
	Text     string `json:"text"`
	Entities []struct {
		Type string `json:"type"`
	} `json:"entities"`
	Document *struct {
		ID   string `json:"file_id"`
		Name string `json:"file_name"`
		Size int64  `json:"file_size"`
	} `json:"document"`
	Photo   []struct{} `json:"photo"`
	ReplyTo *struct {
		ID int64 `json:"message_id"`
	} `json:"reply_to_message"`
	Markup struct {
		Rows [][]struct{} `json:"inline_keyboard"`
	} `json:"reply_markup"`

	Thread string `json:"thread_ts"`
	Blocks []struct {
		Type     string     `json:"type"`
		Elements []struct{} `json:"elements"`
	} `json:"blocks"`
	Files []struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	} `json:"files"`
}

// lastOf is the last message that a service has told of.
func lastOf(lines []record.Line) (last message) {
	for _, l := range lines {
		var answer struct {
			Result  json.RawMessage `json:"result"`
			Message *message        `json:"message"`
			message                 // files stand beside it
		}
		if json.Unmarshal(l.Response, &answer) != nil {
			continue
		}
		var sent message
		switch {
		case json.Unmarshal(answer.Result, &sent) == nil && sent.ID != 0:
			last, last.Telegram = sent, true
		case answer.Message != nil:
			last = *answer.Message
		case len(answer.Files) > 0:
			last = message{Files: answer.Files}
		}
	}
	return last
}

// ref is what the service gives the file for.
func (m message) ref() string {
	switch {
	case m.Document != nil:
		return m.Document.ID
	case len(m.Files) > 0:
		return "file:" + m.Files[0].ID
	}
	return ""
}

// attached says what file a message has.
func (m message) attached() string {
	switch {
	case m.Document != nil:
		return fmt.Sprintf("document %s, %d bytes", m.Document.Name, m.Document.Size)
	case len(m.Photo) > 0:
		return "photo"
	case len(m.Files) > 0:
		return "file " + m.Files[0].Title
	}
	return "no file"
}

// buttons counts them.
func (m message) buttons() (n int) {
	for _, row := range m.Markup.Rows {
		n += len(row)
	}
	for _, b := range m.Blocks {
		if b.Type == "actions" {
			n += len(b.Elements)
		}
	}
	return n
}

// place says whether a message answers the first one.
func (m message) place(first string) string {
	switch {
	case m.ReplyTo != nil && strconv.FormatInt(m.ReplyTo.ID, 10) == first:
		return "a reply to the first message"
	case m.Thread == first:
		return "in the thread of the first message"
	}
	return cmp.Or(m.Thread, "beside the first message")
}
