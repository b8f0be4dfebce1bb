package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"oneclaw/bridge/chats"
	"oneclaw/internal/markdown"
)

// Limits of the files that a bot sends to Telegram's own server (core.telegram.org/bots/api#sending-files, #sendphoto).
const (
	maxUpload  = 50 << 20
	maxPhoto   = 10 << 20
	maxCaption = 1024 // UTF-16 units
)

// uploadTimeout bounds one upload: 50 MB at about 1.5 Mbit/s.
const uploadTimeout = 5 * time.Minute

// MaxFile returns the size limit of a file, in bytes. A self-hosted server with --local takes 2,000 MB
// (core.telegram.org/bots/api#using-a-local-bot-api-server), so with one that may be such it is tried.
func (p *platform) MaxFile() int64 {
	if is := p.api.isLocal.Load(); p.api.official || is != nil && !*is {
		return maxUpload
	}
	return chats.MaxFile
}

// SendFile sends a PNG or JPEG as a photo, and any other file, or an image that Telegram refuses as a
// photo, as a document. Otherwise it retries no more than [platform.Send] does.
func (p *platform) SendFile(ctx context.Context, to chats.Address, f chats.OutFile) (string, error) {
	if err := p.prepareSend(ctx, to); err != nil {
		return "", err
	}
	photo, err := isPhoto(f)
	if err != nil {
		return "", &chats.SendError{Outcome: chats.Later, Err: fmt.Errorf("telegram: read file: %w", err)}
	}
	d := &delivery{to: to, part: chats.Part{Repeat: f.Repeat}, plain: true}
	var id string
	err = p.sendWithFallback(d, func() (err error) {
		if photo {
			if id, err = p.upload(ctx, d, f, "sendPhoto", "photo"); !isPhotoRefusal(err) {
				return err
			}
			p.log.Warn("photo refused: sending a document", "chat", to.Chat.String(), "err", err)
			photo = false
		}
		id, err = p.upload(ctx, d, f, "sendDocument", "document")
		return err
	})
	if err != nil {
		failure := p.sendError(to, err)
		if ce, is := errors.AsType[*callError](err); is && ce.code == http.StatusRequestEntityTooLarge {
			p.api.isLocal.CompareAndSwap(nil, new(false))
			failure.Err = fmt.Errorf("%w: %w", chats.ErrTooLarge, err)
		}
		return "", failure
	}
	return id, nil
}

// VoiceFormat returns Opus in Ogg, which Telegram shows as a voice note
// (core.telegram.org/bots/api#sendvoice).
func (p *platform) VoiceFormat() string { return chats.VoiceOpus }

// SendVoice sends a recording as a voice note. Premium users can forbid these; then it is refused.
func (p *platform) SendVoice(ctx context.Context, to chats.Address, f chats.OutFile) (string, error) {
	if err := p.prepareSend(ctx, to); err != nil {
		return "", err
	}
	d := &delivery{to: to, part: chats.Part{Repeat: f.Repeat}, plain: true}
	var id string
	err := p.sendWithFallback(d, func() (err error) {
		id, err = p.upload(ctx, d, f, "sendVoice", "voice")
		return err
	})
	if err != nil {
		return "", p.sendError(to, err)
	}
	return id, nil
}

// upload calls a method that sends a file in the given field, and returns the id of the message.
func (p *platform) upload(ctx context.Context, d *delivery, f chats.OutFile, method, field string) (string, error) {
	params := d.addressParams()
	if caption := d.caption(f.Caption); caption != "" {
		params["caption"] = caption
	}
	var sent struct {
		ID int64 `json:"message_id"`
	}
	// Each attempt has its own reader, as the library may still be reading from the last one.
	content := io.NewSectionReader(f.Content, 0, f.Size)
	name := fileNameEscaper.Replace(f.Name)
	file := tgbotapi.RequestFile{Name: field, Data: tgbotapi.FileReader{Name: name, Reader: content}}
	err := p.api.upload(ctx, method, params, file, chats.FormLength(params, field, name, f.Size), &sent)
	if err == nil && sent.ID == 0 {
		err = errors.New("telegram: " + method + ": the response has no message id")
	}
	return strconv.FormatInt(sent.ID, 10), err
}

// fileNameEscaper escapes a name for a form: Telegram decodes percent signs, and older self-hosted
// servers end the name at a quote or a semicolon.
var fileNameEscaper = strings.NewReplacer("%", "%25", `"`, "%22", ";", "%3B", `\`, "%5C", "\r", "%0D", "\n", "%0A")

// isPhoto reports whether to try a file as a photo.
func isPhoto(f chats.OutFile) (bool, error) {
	if f.Size > maxPhoto {
		return false, nil
	}
	head := make([]byte, 512) // the part that DetectContentType reads
	n, err := f.Content.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	kind := http.DetectContentType(head[:n])
	return kind == "image/png" || kind == "image/jpeg", nil
}

// isPhotoRefusal reports whether Telegram refused a file as a photo.
func isPhotoRefusal(err error) bool {
	var ce *callError
	if !errors.As(err, &ce) {
		return false
	}
	return ce.code == http.StatusRequestEntityTooLarge || ce.fromTelegram && ce.code == http.StatusBadRequest &&
		(strings.Contains(ce.description, "PHOTO_") || strings.Contains(ce.description, "IMAGE_") || strings.Contains(ce.description, "too big"))
}

func (d delivery) addressParams() tgbotapi.Params {
	id, topic := splitID(d.to.Chat)
	params := tgbotapi.Params{"chat_id": id}
	if topic != "" {
		params["direct_messages_topic_id"] = topic
	}
	if d.to.Chat.Thread != "" && !d.topicGone {
		params["message_thread_id"] = d.to.Chat.Thread
	}
	// The replied-to message may be in the topic that is gone.
	if id, err := strconv.ParseInt(d.to.ReplyTo, 10, 64); err == nil && id > 0 && !d.topicGone {
		reply, err := json.Marshal(map[string]any{"message_id": id, "allow_sending_without_reply": true})
		if err == nil {
			params["reply_parameters"] = string(reply)
		}
	}
	return params
}

// caption returns a text cut to the maximum length of a caption, including the additional lines.
func (d delivery) caption(text string) string {
	text = breakMentions(strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD")))
	room := maxCaption + 1 - markdown.UTF16Len(d.text("-", plainLine)) // the text takes one unit
	if markdown.UTF16Len(text) > room {
		text = text[:prefixLen(text, room-1)] + "…"
	}
	return strings.TrimSpace(d.text(text, plainLine))
}

// upload calls a method with a file, and with a longer timeout. length is the length of the request.
func (c *client) upload(ctx context.Context, method string, params tgbotapi.Params, file tgbotapi.RequestFile, length int64, into any) error {
	ctx, cancel := context.WithTimeout(ctx, max(c.timeout, uploadTimeout))
	defer cancel()
	return c.request(ctx, method, into, length, func(bot *tgbotapi.BotAPI) (*tgbotapi.APIResponse, error) {
		return bot.UploadFiles(method, params, []tgbotapi.RequestFile{file})
	})
}
