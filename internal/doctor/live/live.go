// Package live tries a platform with one message of each kind, and a model with one call
// of a tool, and says what the service did beside what its emulator does.
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
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/record"
	"oneclaw/internal/retry"
	"oneclaw/internal/wording"
)

// Row is what came of a step.
type Row struct {
	Where, Step string
	// Service is what the service did, Emulator what its emulator does.
	Service, Emulator string
	Err               error
}

// Same reports whether the service did as its emulator.
func (r Row) Same() bool { return r.Err == nil && r.Service == r.Emulator }

// emulators are what the emulators do, by platform and step. A test looks whether it is so.
var emulators = map[string]map[string]string{
	"telegram": {
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
	"slack": {
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
	record.Model: {
		"round 1": "calls add(1234, 5678)",
		"round 2": "says 6912",
		"usage":   "tells the tokens",
	},
}

// What is sent.
const (
	plainText = "OneClaw tries this chat out: plain text."
	formatted = "**bold**, *italic*, ~~struck~~, `code`, [a link](https://example.com/)\n\n```go\nfmt.Println(1)\n```\n\n> a quote\n\n- an item"
	longLines = 150
	longLine  = "Line %d of a long answer that has to go in several messages.\n\n"

	fileName    = "oneclaw-try.txt"
	fileText    = "OneClaw tries this chat out."
	pictureName = "oneclaw-try.png"
)

// steps are the messages, in their order.
var steps = []struct {
	name string
	run  func(*trial, context.Context) (string, error)
}{
	{"text", (*trial).text},
	{"formatted", (*trial).formatted},
	{"long", (*trial).long},
	{"file", (*trial).file},
	{"picture", (*trial).picture},
	{"buttons", (*trial).buttons},
	{"edit", (*trial).edit},
	{"thread", (*trial).thread},
	{"read back", (*trial).readBack},
}

// Messages says what [Platform] sends.
const Messages = "9 messages (plain, formatted, a long one in 3 parts, a file, a picture, buttons, which an edit takes away again, a reply)"

// service is what a platform has to be able to do.
type service interface {
	chats.Platform
	chats.Editor
	chats.FileSender
	chats.FileFetcher
}

// Platform sends one message of each kind to a chat. Seen returns what was exchanged with
// the service since it was last called.
func Platform(ctx context.Context, p chats.Platform, to chats.Chat, seen func() []record.Line) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		able, ok := p.(service)
		if !ok {
			yield(Row{Where: p.Name(), Err: errors.New("the adapter cannot send all of that")})
			return
		}
		t := &trial{service: able, to: chats.Address{Chat: to}, seen: seen}
		for _, step := range steps {
			seen()
			did, err := step.run(t, ctx)
			if !yield(Row{p.Name(), step.name, did, emulators[p.Name()][step.name], err}) || ctx.Err() != nil {
				return
			}
		}
	}
}

// trial is one platform that is tried.
type trial struct {
	service
	to   chats.Address
	seen func() []record.Line
	// first is the id of the first message, press that of the one with buttons, ref what
	// the service calls the file.
	first, press, ref string
}

// maxWait bounds how long a service may have a message wait, and maxTries how often.
const (
	maxWait  = time.Minute
	maxTries = 3
)

// send sends a text, with buttons if there are some, and returns the id of the last message
// and what the service says of each.
func (t *trial) send(ctx context.Context, to chats.Address, markdown string, buttons ...[]chats.Button) (id string, shown []message, err error) {
	for _, part := range t.Render(markdown) {
		part.Buttons = buttons
		if err := patiently(ctx, func() (err error) { id, err = t.Send(ctx, to, part); return err }); err != nil {
			return "", nil, err
		}
		shown = append(shown, lastOf(t.seen()))
	}
	return id, shown, nil
}

// patiently does something again that the service puts off.
func patiently(ctx context.Context, do func() error) error {
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

func (t *trial) text(ctx context.Context) (string, error) {
	id, shown, err := t.send(ctx, t.to, plainText)
	if err != nil {
		return "", err
	}
	t.first = id
	return compared(shown[0].Text, plainText), nil
}

func compared(got, want string) string {
	if got == want {
		return "shown as it was sent"
	}
	return "shown as " + quoted(got)
}

// quoted is a text of a service on one short line.
func quoted(text string) string {
	return "“" + wording.Clip(strings.Join(strings.Fields(text), " "), 60) + "”"
}

func (t *trial) formatted(ctx context.Context) (string, error) {
	_, shown, err := t.send(ctx, t.to, formatted)
	if err != nil {
		return "", err
	}
	if !shown[0].Telegram {
		return compared(shown[0].Text, t.Render(formatted)[0].Text), nil
	}
	var kinds []string
	for _, e := range shown[0].Entities {
		kinds = append(kinds, e.Type)
	}
	slices.Sort(kinds)
	return cmp.Or(strings.Join(slices.Compact(kinds), ", "), "no formatting"), nil
}

func (t *trial) long(ctx context.Context) (string, error) {
	var text, all strings.Builder
	for n := range longLines {
		fmt.Fprintf(&text, longLine, n+1)
	}
	_, shown, err := t.send(ctx, t.to, text.String())
	for _, m := range shown {
		all.WriteString(m.Text + "\n\n")
	}
	there := 0
	for n := range longLines {
		if strings.Contains(all.String(), fmt.Sprintf(longLine, n+1)) {
			there++
		}
	}
	return fmt.Sprintf("%d messages with %d of %d lines", len(shown), there, longLines), err
}

func (t *trial) file(ctx context.Context) (string, error) {
	shown, err := t.upload(ctx, fileName, []byte(fileText))
	t.ref = shown.ref()
	return shown.attached(), err
}

func (t *trial) picture(ctx context.Context) (string, error) {
	img := image.NewRGBA(image.Rect(0, 0, 160, 90))
	draw.Draw(img, img.Bounds(), image.NewUniform(color.RGBA{40, 120, 160, 255}), image.Point{}, draw.Src)
	var data bytes.Buffer
	if err := png.Encode(&data, img); err != nil {
		return "", fmt.Errorf("draw a picture: %w", err)
	}
	shown, err := t.upload(ctx, pictureName, data.Bytes())
	return shown.attached(), err
}

func (t *trial) upload(ctx context.Context, name string, data []byte) (message, error) {
	err := patiently(ctx, func() error {
		_, err := t.SendFile(ctx, t.to, chats.OutFile{Name: name, Caption: fileText, Size: int64(len(data)), Content: bytes.NewReader(data)})
		return err
	})
	return lastOf(t.seen()), err
}

func (t *trial) buttons(ctx context.Context) (string, error) {
	id, shown, err := t.send(ctx, t.to, "OneClaw tries this chat out: buttons.",
		[]chats.Button{{Label: "One", Data: "try:1"}, {Label: "Two", Data: "try:2", Style: chats.StyleDanger}})
	if err != nil {
		return "", err
	}
	t.press = id
	return fmt.Sprintf("%d buttons", shown[0].buttons()), nil
}

func (t *trial) edit(ctx context.Context) (string, error) {
	if t.press == "" {
		return "", errors.New("there is no message to edit")
	}
	const text = "OneClaw tries this chat out: edited."
	if err := patiently(ctx, func() error { return t.Edit(ctx, t.to, t.press, t.Render(text)[0]) }); err != nil {
		return "", err
	}
	shown := lastOf(t.seen())
	return fmt.Sprintf("%s, %d buttons", compared(shown.Text, text), shown.buttons()), nil
}

func (t *trial) thread(ctx context.Context) (string, error) {
	if t.first == "" {
		return "", errors.New("there is no message to answer")
	}
	to := t.to
	if t.Name() == "slack" {
		to.Chat.Thread = t.first
	} else {
		to.ReplyTo = t.first
	}
	_, shown, err := t.send(ctx, to, "OneClaw tries this chat out: an answer to the first message.")
	if err != nil {
		return "", err
	}
	return shown[0].place(t.first), nil
}

// reader is a platform that tells what a message of the bot says.
type reader interface {
	Shown(ctx context.Context, chat chats.Chat, id string) (string, error)
}

func (t *trial) readBack(ctx context.Context) (did string, err error) {
	if p, ok := t.service.(reader); ok {
		text, err := p.Shown(ctx, t.to.Chat, t.first)
		if err != nil {
			return "", err
		}
		did = "text " + compared(text, plainText) + ", "
	}
	var data bytes.Buffer
	err = t.FetchFile(ctx, chats.Attachment{Ref: t.ref, Type: "text/plain"}, &data)
	return did + "file " + compared(data.String(), fileText), err
}
