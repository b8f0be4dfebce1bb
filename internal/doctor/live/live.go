// Package live tests a platform with one message of each kind, and a model with one tool call, and
// compares the behaviour of the service with that of its emulator.
package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/retry"
	"oneclaw/internal/wording"
)

// Row is the result of one step of a test.
type Row struct {
	Where, Step string
	// Service is the behaviour of the service, Emulator that of its emulator.
	Service, Emulator string
	Err               error
}

// matchesEmulator reports whether the service behaved like its emulator.
func (r Row) matchesEmulator() bool { return r.Err == nil && r.Service == r.Emulator }

// platformSpec describes a platform that can be tested.
type platformSpec struct {
	// want has the emulator's results by step, which a unit test checks.
	want map[string]string
	// decodeSent returns the message in a response of the service; false if there is none.
	decodeSent func(answer []byte) (message, bool)
	// repliesInThread is set if a reply to a message begins a thread.
	repliesInThread bool
}

// platformSpecs returns the platforms that can be tested.
func platformSpecs() map[string]platformSpec {
	return map[string]platformSpec{"telegram": telegramSpec(), "slack": slackSpec()}
}

// Names returns the names of the platforms that can be tested.
func Names() []string { return slices.Sorted(maps.Keys(platformSpecs())) }

// message is a message in a response of the service.
type message struct {
	text string
	// formats are the kinds of formatting; nil if the service returns the text unchanged.
	formats []string
	// fileRef is the service's reference to the file, fileInfo its description; both may be empty.
	fileRef, fileInfo string
	buttons           int
	// replyTo is the id of the message that it replies to, relation describes how.
	replyTo, relation string
}

// lastMessage returns the last message in the new responses of the service.
func (t *trial) lastMessage() (last message) {
	for _, response := range t.responses.take() {
		if m, ok := t.decodeSent(response); ok {
			last = m
		}
	}
	return last
}

// The contents of the messages.
const (
	plainText     = "OneClaw tries this chat out: plain text."
	formattedText = "**bold**, *italic*, ~~struck~~, `code`, [a link](https://example.com/)\n\n```go\nfmt.Println(1)\n```\n\n> a quote\n\n- an item"
	longLines     = 150
	longLine      = "Line %d of a long answer that has to go in several messages.\n\n"

	fileName    = "oneclaw-try.txt"
	fileText    = "OneClaw tries this chat out."
	pictureName = "oneclaw-try.png"
)

// steps are the steps of a platform's test, in order.
var steps = []struct {
	name string
	run  func(*trial, context.Context) (string, error)
}{
	{"text", (*trial).sendText},
	{"formatted", (*trial).sendFormatted},
	{"long", (*trial).sendLong},
	{"file", (*trial).sendDocument},
	{"picture", (*trial).sendPicture},
	{"buttons", (*trial).sendButtons},
	{"edit", (*trial).editButtons},
	{"thread", (*trial).sendReply},
	{"read back", (*trial).readBack},
}

// Messages describes the messages that [TryPlatform] sends.
const Messages = "9 messages (plain, formatted, a long one in 3 parts, a file, a picture, buttons, which an edit takes away again, a reply)"

// service is the interface that a platform must implement to be tested.
type service interface {
	chats.Platform
	chats.Editor
	chats.FileSender
	chats.FileFetcher
}

// TryPlatform sends one message of each kind to a chat and yields the results. seen has
// the responses of the platform.
func TryPlatform(ctx context.Context, p chats.Platform, to chats.Chat, seen *Responses) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		able, ok := p.(service)
		about, tried := platformSpecs()[p.Name()]
		if !ok || !tried {
			yield(Row{Where: p.Name(), Err: errors.New("the adapter does not support all kinds of messages")})
			return
		}
		t := &trial{service: able, platformSpec: about, address: chats.Address{Chat: to}, responses: seen}
		for _, step := range steps {
			seen.take()
			did, err := step.run(t, ctx)
			if !yield(Row{p.Name(), step.name, did, t.want[step.name], err}) || ctx.Err() != nil {
				return
			}
		}
	}
}

// trial is the test of one platform.
type trial struct {
	service
	platformSpec
	address   chats.Address
	responses *Responses
	// firstID is the id of the first message, buttonsID that of the message with buttons, fileRef the
	// service's reference to the file.
	firstID, buttonsID, fileRef string
}

// maxWait bounds the delay that a service asks for, and maxTries the number of attempts.
const (
	maxWait  = time.Minute
	maxTries = 3
)

// send sends a text as one or more messages, optionally with buttons. It returns the id of the last
// message, and all messages as the service returned them.
func (t *trial) send(ctx context.Context, to chats.Address, markdown string, buttons ...[]chats.Button) (id string, shown []message, err error) {
	for _, part := range t.Render(markdown) {
		part.Buttons = buttons
		if err := retryDelayed(ctx, func() (err error) { id, err = t.Send(ctx, to, part); return err }); err != nil {
			return "", nil, err
		}
		shown = append(shown, t.lastMessage())
	}
	return id, shown, nil
}

// retryDelayed calls do, and retries after a pause if the service asks for one.
func retryDelayed(ctx context.Context, do func() error) error {
	for n := 1; ; n++ {
		err := do()
		failure, ok := errors.AsType[*chats.SendError](err)
		if !ok || failure.Outcome != chats.Later || failure.Outage || failure.RetryAfter > maxWait || n == maxTries {
			return err
		}
		if err := retry.Wait(ctx, max(failure.RetryAfter, time.Second)); err != nil {
			return err
		}
	}
}

func (t *trial) sendText(ctx context.Context) (string, error) {
	id, shown, err := t.send(ctx, t.address, plainText)
	if err != nil {
		return "", err
	}
	t.firstID = id
	return describeMatch(shown[0].text, plainText), nil
}

func describeMatch(got, want string) string {
	if got == want {
		return "shown as it was sent"
	}
	return "shown as " + quote(got)
}

// quote returns a text of the service in quotes, clipped and on one line.
func quote(text string) string {
	return "“" + wording.Clip(strings.Join(strings.Fields(text), " "), 60) + "”"
}

func (t *trial) sendFormatted(ctx context.Context) (string, error) {
	_, shown, err := t.send(ctx, t.address, formattedText)
	if err != nil {
		return "", err
	}
	kinds := shown[0].formats
	if kinds == nil {
		return describeMatch(shown[0].text, t.Render(formattedText)[0].Text), nil
	}
	slices.Sort(kinds)
	return cmp.Or(strings.Join(slices.Compact(kinds), ", "), "no formatting"), nil
}

func (t *trial) sendLong(ctx context.Context) (string, error) {
	var text, all strings.Builder
	for n := range longLines {
		fmt.Fprintf(&text, longLine, n+1)
	}
	_, shown, err := t.send(ctx, t.address, text.String())
	for _, m := range shown {
		all.WriteString(m.text + "\n\n")
	}
	there := 0
	for n := range longLines {
		if strings.Contains(all.String(), fmt.Sprintf(longLine, n+1)) {
			there++
		}
	}
	return fmt.Sprintf("%d messages with %d of %d lines", len(shown), there, longLines), err
}

func (t *trial) sendDocument(ctx context.Context) (string, error) {
	shown, err := t.upload(ctx, fileName, []byte(fileText))
	t.fileRef = shown.fileRef
	return cmp.Or(shown.fileInfo, "no file"), err
}

func (t *trial) sendPicture(ctx context.Context) (string, error) {
	img := image.NewRGBA(image.Rect(0, 0, 160, 90))
	draw.Draw(img, img.Bounds(), image.NewUniform(color.RGBA{40, 120, 160, 255}), image.Point{}, draw.Src)
	var data bytes.Buffer
	if err := png.Encode(&data, img); err != nil {
		return "", fmt.Errorf("draw a picture: %w", err)
	}
	shown, err := t.upload(ctx, pictureName, data.Bytes())
	return cmp.Or(shown.fileInfo, "no file"), err
}

func (t *trial) upload(ctx context.Context, name string, data []byte) (message, error) {
	err := retryDelayed(ctx, func() error {
		_, err := t.SendFile(ctx, t.address, chats.OutFile{Name: name, Caption: fileText, Size: int64(len(data)), Content: bytes.NewReader(data)})
		return err
	})
	return t.lastMessage(), err
}

func (t *trial) sendButtons(ctx context.Context) (string, error) {
	id, shown, err := t.send(ctx, t.address, "OneClaw tries this chat out: buttons.",
		[]chats.Button{{Label: "One", Data: "try:1"}, {Label: "Two", Data: "try:2", Style: chats.StyleDanger}})
	if err != nil {
		return "", err
	}
	t.buttonsID = id
	return fmt.Sprintf("%d buttons", shown[0].buttons), nil
}

func (t *trial) editButtons(ctx context.Context) (string, error) {
	if t.buttonsID == "" {
		return "", errors.New("there is no message to edit")
	}
	const text = "OneClaw tries this chat out: edited."
	if err := retryDelayed(ctx, func() error { return t.Edit(ctx, t.address, t.buttonsID, t.Render(text)[0]) }); err != nil {
		return "", err
	}
	shown := t.lastMessage()
	return fmt.Sprintf("%s, %d buttons", describeMatch(shown.text, text), shown.buttons), nil
}

func (t *trial) sendReply(ctx context.Context) (string, error) {
	if t.firstID == "" {
		return "", errors.New("there is no message to answer")
	}
	to := t.address
	if t.repliesInThread {
		to.Chat.Thread = t.firstID
	} else {
		to.ReplyTo = t.firstID
	}
	_, shown, err := t.send(ctx, to, "OneClaw tries this chat out: an answer to the first message.")
	if err != nil {
		return "", err
	}
	if m := shown[0]; m.replyTo == t.firstID {
		return m.relation + " the first message", nil
	}
	return "beside the first message", nil
}

// textReader is implemented by platforms that can return the text of a bot's message.
type textReader interface {
	Shown(ctx context.Context, chat chats.Chat, id string) (string, error)
}

func (t *trial) readBack(ctx context.Context) (did string, err error) {
	if p, ok := t.service.(textReader); ok {
		text, err := p.Shown(ctx, t.address.Chat, t.firstID)
		if err != nil {
			return "", err
		}
		did = "text " + describeMatch(text, plainText) + ", "
	}
	var data bytes.Buffer
	err = t.FetchFile(ctx, chats.Attachment{Ref: t.fileRef, Type: "text/plain"}, &data)
	return did + "file " + describeMatch(data.String(), fileText), err
}
