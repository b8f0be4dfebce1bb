package live

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// telegramSpec describes Telegram.
func telegramSpec() platformSpec {
	return platformSpec{
		want: map[string]string{
			"text":      "shown as it was sent",
			"formatted": "blockquote, bold, code, italic, pre, strikethrough, text_link",
			"long":      "3 messages with 150 of 150 lines",
			"file":      "document " + fileName + ", 28 bytes",
			"picture":   "photo",
			"buttons":   "2 buttons",
			"edit":      "shown as it was sent, 0 buttons",
			"thread":    "a reply to the first message",
			"read back": "file shown as it was sent",
		},
		decodeSent: decodeTelegramMessage,
	}
}

// decodeTelegramMessage returns the message in a response of Telegram.
func decodeTelegramMessage(answer []byte) (m message, ok bool) {
	var got struct {
		Result struct {
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
		} `json:"result"`
	}
	sent := &got.Result
	if json.Unmarshal(answer, &got) != nil || sent.ID == 0 {
		return message{}, false
	}
	m = message{text: sent.Text, formats: []string{}}
	for _, e := range sent.Entities {
		m.formats = append(m.formats, e.Type)
	}
	for _, row := range sent.Markup.Rows {
		m.buttons += len(row)
	}
	switch {
	case sent.Document != nil:
		m.fileRef, m.fileInfo = sent.Document.ID, fmt.Sprintf("document %s, %d bytes", sent.Document.Name, sent.Document.Size)
	case len(sent.Photo) > 0:
		m.fileInfo = "photo"
	}
	if sent.ReplyTo != nil {
		m.replyTo, m.relation = strconv.FormatInt(sent.ReplyTo.ID, 10), "a reply to"
	}
	return m, true
}
