package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"oneclaw/bridge/chats"
	"oneclaw/internal/cache"
	"oneclaw/internal/markdown"
	"oneclaw/internal/rescue"
)

// Limits of inline keyboards and of answers to presses
// (core.telegram.org/bots/api#inlinekeyboardbutton, #answercallbackquery).
const (
	maxData  = 64  // bytes
	maxToast = 200 // UTF-16 units
)

// shortToast bounds an answer to a press that is shown briefly over the chat, in UTF-16 units. A longer
// one is shown in a dialog.
const shortToast = 80

const (
	// deadPressTimeout bounds an answer to a dead press.
	deadPressTimeout = 5 * time.Second
	// maxDismissing bounds the concurrent answers.
	maxDismissing = 8
)

// deadButtonText is the answer to a press of a button that no longer works.
const deadButtonText = "This button no longer works."

type inlineButton struct {
	Text  string            `json:"text"`
	Data  string            `json:"callback_data,omitempty"`
	URL   string            `json:"url,omitempty"`
	Style chats.ButtonStyle `json:"style,omitempty"`
}

// keyboard returns the reply_markup for buttons, or "" if there are none.
func keyboard(rows [][]chats.Button) string {
	var markup struct {
		Rows [][]inlineButton `json:"inline_keyboard"`
	}
	for _, row := range rows {
		var list []inlineButton
		for _, b := range row {
			button := inlineButton{Text: b.Label, Data: b.Data, URL: b.URL, Style: b.Style}
			if b.URL != "" {
				button.Data = "" // a button has one or the other
			}
			list = append(list, button)
		}
		if list != nil {
			markup.Rows = append(markup.Rows, list)
		}
	}
	if markup.Rows == nil {
		return ""
	}
	body, err := json.Marshal(markup)
	if err != nil {
		return "" // strings always encode
	}
	return string(body)
}

// Edit replaces the text and the buttons of a message by the bot. Telegram refuses an edit that changes
// nothing, which counts as success. If Telegram refuses the HTML, the message gets the plain text.
func (p *platform) Edit(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	w := ephemeralPattern.FindStringSubmatch(id)
	if n, err := strconv.ParseInt(id, 10, 64); w == nil && (err != nil || n <= 0) {
		return &chats.SendError{Outcome: chats.Refused, Err: fmt.Errorf("telegram: edit: %q is no id of a message", id)}
	}
	if err := p.prepareSend(ctx, to); err != nil {
		return err
	}
	d := &delivery{to: to, part: part, plain: part.Text == "", topicGone: p.displaced.Has(messageKey{to.Chat.ID, id})}
	var answer json.RawMessage
	request := func() error {
		method, params := "editMessageText", tgbotapi.Params{"chat_id": chatID(to.Chat), "message_id": id}
		if w != nil {
			method, params = editEphemeral, tgbotapi.Params{"chat_id": to.Chat.ID, "ephemeral_message_id": w[1], "receiver_user_id": w[2]}
		}
		d.setBody(params)
		return p.api.call(ctx, method, params, &answer)
	}
	err := p.sendWithFallback(d, request)
	var edited pressedMessage
	if err == nil && !d.topicGone && to.Chat.Thread != "" && json.Unmarshal(answer, &edited) == nil && edited.ID != 0 && !edited.IsTopic {
		// An earlier run of the program sent it outside of its topic.
		d.topicGone = true
		p.noteDisplaced(d, id)
		err = p.sendWithFallback(d, request)
	}
	if err == nil || isBadRequest(err, "message is not modified") {
		return nil
	}
	return p.sendError(to, err)
}

// AnswerPress confirms the press on the user's screen, and shows the user a text. It returns nil for a
// press that Telegram has forgotten, as it does within minutes: nothing is left to confirm.
func (p *platform) AnswerPress(ctx context.Context, press chats.Message, text string) error {
	if markdown.UTF16Len(text) > maxToast {
		text = text[:prefixLen(text, maxToast-1)] + "…"
	}
	params := tgbotapi.Params{"callback_query_id": press.ID}
	if text != "" {
		params["text"] = text
	}
	if markdown.UTF16Len(text) > shortToast {
		params["show_alert"] = "true"
	}
	err := p.api.call(ctx, "answerCallbackQuery", params, nil)
	if isBadRequest(err, "query is too old") {
		return nil
	}
	return err
}

// decodePress decodes a press. A press is dead if no button of the bot can have sent it, or if its message
// is deleted or too old for bots to see.
func (d *decoder) decodePress(c *callback) event {
	var m pressedMessage
	switch {
	case !isPresent(c.Message), len(c.Data) < 1, len(c.Data) > maxData, c.From.ID == 0, c.From.IsBot:
		return event{deadPress: c.ID}
	case json.Unmarshal(c.Message, &m) != nil, m.Chat.ID == 0, m.ID == 0 && m.Ephemeral == 0, m.Date == 0:
		return event{deadPress: c.ID}
	}
	if m.Chat.IsForum {
		d.forums.Put(m.Chat.ID, true, cache.Forever)
	}
	msg := &chats.Message{
		Chat:     chatOf(m.Chat.ID),
		ID:       c.ID,
		Kind:     chats.KindPress,
		User:     strconv.FormatInt(c.From.ID, 10),
		UserName: c.From.name(),
		Direct:   m.Chat.Type == "private",
		Text:     c.Data,
		TargetID: strconv.FormatInt(m.ID, 10),
	}
	if m.Ephemeral != 0 {
		msg.TargetID = ephemeralID(m.Ephemeral, msg.User)
	}
	if m.DirectTopic != nil && m.Chat.IsDirectMessages {
		msg.Chat, msg.Opener = directChat(m.Chat.ID, m.DirectTopic.ID), m.DirectTopic.opener()
	}
	if m.IsTopic && m.ThreadID != 0 {
		msg.Chat.Thread = strconv.FormatInt(m.ThreadID, 10)
	}
	return event{message: msg}
}

// answerDeadPress answers a dead press on a best-effort basis: if many wait, some get no answer.
func (r *receiver) answerDeadPress(ctx context.Context, id string) {
	select {
	case r.slots <- struct{}{}:
	default:
		return
	}
	r.tasks.Go(func() {
		defer func() { <-r.slots }()
		if r.hook.address != "" {
			ctx = context.WithoutCancel(ctx) // the request that brought it has ended
		}
		ctx, cancel := context.WithTimeout(ctx, deadPressTimeout)
		defer cancel()
		if err := rescue.Do(func() error { return r.AnswerPress(ctx, chats.Message{ID: id}, deadButtonText) }); err != nil {
			r.log.Debug("press of a button not answered", "err", err)
		}
	})
}
