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
	"image/png"
	"iter"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/record"
	"oneclaw/internal/retry"
	"oneclaw/internal/runes"
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
		"long":      "3 messages with all 150 lines",
		"file":      "document " + fileName + ", 28 bytes",
		"picture":   "photo",
		"buttons":   "2 buttons",
		"edit":      "changed, 0 buttons",
		"thread":    "a reply to the first message",
		"read back": "the file as it was sent",
	},
	"slack": {
		"text":      "shown as it was sent",
		"formatted": "shown as it was sent",
		"long":      "3 messages with all 150 lines",
		"file":      "file " + fileName,
		"picture":   "file " + pictureName,
		"buttons":   "2 buttons",
		"edit":      "changed, 0 buttons",
		"thread":    "in the thread of the first message",
		"read back": "the first message and the file as they were sent",
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

// Platform sends one message of each kind to a chat. Seen returns what was exchanged with
// the service since it was last called.
func Platform(ctx context.Context, p chats.Platform, to chats.Chat, seen func() []record.Line) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		t := &trial{platform: p, to: chats.Address{Chat: to}, seen: seen}
		for _, step := range steps {
			seen()
			did, err := step.run(t, ctx)
			row := Row{Where: p.Name(), Step: step.name, Service: did, Emulator: emulators[p.Name()][step.name], Err: err}
			if !yield(row) || ctx.Err() != nil {
				return
			}
		}
	}
}

// trial is one platform that is tried.
type trial struct {
	platform chats.Platform
	to       chats.Address
	seen     func() []record.Line
	// first is the id of the first message, press that of the one with buttons, file what
	// the service calls the file.
	first, press, ref string
}

// maxWait bounds how long a service may have a message wait, and maxTries how often.
const (
	maxWait  = time.Minute
	maxTries = 3
)

// send sends parts to an address, and returns the id of the last message and what the
// service says of each.
func (t *trial) send(ctx context.Context, to chats.Address, parts ...chats.Part) (id string, shown []message, err error) {
	for _, part := range parts {
		if err := patiently(ctx, func() (err error) { id, err = t.platform.Send(ctx, to, part); return err }); err != nil {
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
	id, shown, err := t.send(ctx, t.to, t.platform.Render(plainText)...)
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
	return "“" + runes.Clip(strings.Join(strings.Fields(text), " "), 60) + "”"
}

func (t *trial) formatted(ctx context.Context) (string, error) {
	parts := t.platform.Render(formatted)
	_, shown, err := t.send(ctx, t.to, parts...)
	if err != nil {
		return "", err
	}
	if shown[0].Telegram {
		var kinds []string
		for _, e := range shown[0].Entities {
			kinds = append(kinds, e.Type)
		}
		slices.Sort(kinds)
		return cmp.Or(strings.Join(slices.Compact(kinds), ", "), "no formatting"), nil
	}
	return compared(shown[0].Text, parts[0].Text), nil
}

func (t *trial) long(ctx context.Context) (string, error) {
	var text, all strings.Builder
	for n := range longLines {
		fmt.Fprintf(&text, longLine, n+1)
	}
	_, shown, err := t.send(ctx, t.to, t.platform.Render(text.String())...)
	if err != nil {
		return "", err
	}
	for _, m := range shown {
		all.WriteString(m.Text + "\n")
	}
	there := 0
	for n := range longLines {
		if strings.Contains(all.String(), strings.TrimSpace(fmt.Sprintf(longLine, n+1))) {
			there++
		}
	}
	if there == longLines {
		return fmt.Sprintf("%d messages with all %d lines", len(shown), longLines), nil
	}
	return fmt.Sprintf("%d messages with %d of %d lines", len(shown), there, longLines), nil
}

func (t *trial) file(ctx context.Context) (string, error) {
	shown, err := t.upload(ctx, fileName, []byte(fileText))
	t.ref = shown.ref()
	return shown.attached(), err
}

func (t *trial) picture(ctx context.Context) (string, error) {
	img := image.NewRGBA(image.Rect(0, 0, 160, 90))
	for x := range 160 {
		for y := range 90 {
			img.Set(x, y, color.RGBA{uint8(x), uint8(2 * y), 160, 255})
		}
	}
	var data bytes.Buffer
	if err := png.Encode(&data, img); err != nil {
		return "", fmt.Errorf("draw a picture: %w", err)
	}
	shown, err := t.upload(ctx, pictureName, data.Bytes())
	return shown.attached(), err
}

func (t *trial) upload(ctx context.Context, name string, data []byte) (message, error) {
	p, ok := t.platform.(chats.Uploader)
	if !ok {
		return message{}, errNot
	}
	err := patiently(ctx, func() error {
		_, err := p.SendFile(ctx, t.to, chats.OutFile{Name: name, Caption: "OneClaw tries this chat out.", Size: int64(len(data)), Content: bytes.NewReader(data)})
		return err
	})
	return lastOf(t.seen()), err
}

// errNot says that an adapter has no such ability.
var errNot = errors.New("the adapter cannot do that")

func (t *trial) buttons(ctx context.Context) (string, error) {
	part := t.platform.Render("OneClaw tries this chat out: buttons.")[0]
	part.Buttons = [][]chats.Button{{{Label: "One", Data: "try:1"}, {Label: "Two", Data: "try:2", Style: chats.StyleDanger}}}
	id, shown, err := t.send(ctx, t.to, part)
	if err != nil {
		return "", err
	}
	t.press = id
	return fmt.Sprintf("%d buttons", shown[0].buttons()), nil
}

func (t *trial) edit(ctx context.Context) (string, error) {
	p, ok := t.platform.(chats.Editor)
	if !ok {
		return "", errNot
	}
	if t.press == "" {
		return "", errors.New("there is no message to edit")
	}
	part := t.platform.Render("OneClaw tries this chat out: edited.")[0]
	if err := patiently(ctx, func() error { return p.Edit(ctx, t.to, t.press, part) }); err != nil {
		return "", err
	}
	shown := lastOf(t.seen())
	if shown.Text != "OneClaw tries this chat out: edited." {
		return "shown as " + quoted(shown.Text), nil
	}
	return fmt.Sprintf("changed, %d buttons", shown.buttons()), nil
}

func (t *trial) thread(ctx context.Context) (string, error) {
	if t.first == "" {
		return "", errors.New("there is no message to answer")
	}
	to := t.to
	if t.platform.Name() == "slack" {
		to.Chat.Thread = t.first
	} else {
		to.ReplyTo = t.first
	}
	_, shown, err := t.send(ctx, to, t.platform.Render("OneClaw tries this chat out: an answer to the first message.")...)
	if err != nil {
		return "", err
	}
	return shown[0].place(t.first), nil
}

// reader is a platform that tells what a message of the bot says.
type reader interface {
	Shown(ctx context.Context, chat chats.Chat, id string) (string, error)
}

func (t *trial) readBack(ctx context.Context) (string, error) {
	var same []string
	if p, ok := t.platform.(reader); ok {
		text, err := p.Shown(ctx, t.to.Chat, t.first)
		if err != nil {
			return "", err
		}
		if text != plainText {
			return "the first message is " + quoted(text), nil
		}
		same = append(same, "the first message")
	}
	if p, ok := t.platform.(chats.Fetcher); ok && t.ref != "" {
		var data bytes.Buffer
		if err := p.Fetch(ctx, chats.Attachment{Ref: t.ref, Type: "text/plain"}, &data); err != nil {
			return "", err
		}
		if data.String() != fileText {
			return "the file is " + quoted(data.String()), nil
		}
		same = append(same, "the file")
	}
	switch len(same) {
	case 0:
		return "nothing", nil
	case 1:
		return same[0] + " as it was sent", nil
	}
	return strings.Join(same, " and ") + " as they were sent", nil
}
