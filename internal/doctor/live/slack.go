package live

import "encoding/json"

// slackSpec describes Slack.
func slackSpec() platformSpec {
	return platformSpec{
		want: map[string]string{
			"text":      "shown as it was sent",
			"formatted": "shown as it was sent",
			"long":      "3 messages with 150 of 150 lines",
			"file":      "file " + fileName,
			"picture":   "file " + pictureName,
			"buttons":   "2 buttons",
			"edit":      "shown as it was sent, 0 buttons",
			"thread":    "in the thread of the first message",
			"read back": "text shown as it was sent, file shown as it was sent",
		},
		decodeSent:      decodeSlackMessage,
		repliesInThread: true,
	}
}

// decodeSlackMessage returns the message or the file in a response of Slack.
func decodeSlackMessage(answer []byte) (m message, ok bool) {
	var got struct {
		Message *struct {
			Text   string `json:"text"`
			Thread string `json:"thread_ts"`
			Blocks []struct {
				Type     string     `json:"type"`
				Elements []struct{} `json:"elements"`
			} `json:"blocks"`
		} `json:"message"`
		Files []struct {
			ID    string `json:"id"`
			Title string `json:"title"`
		} `json:"files"`
	}
	if json.Unmarshal(answer, &got) != nil || got.Message == nil && len(got.Files) == 0 {
		return message{}, false
	}
	if len(got.Files) > 0 {
		m.fileRef, m.fileInfo = "file:"+got.Files[0].ID, "file "+got.Files[0].Title
	}
	if sent := got.Message; sent != nil {
		m.text, m.replyTo, m.relation = sent.Text, sent.Thread, "in the thread of"
		for _, b := range sent.Blocks {
			if b.Type == "actions" {
				m.buttons += len(b.Elements)
			}
		}
	}
	return m, true
}
