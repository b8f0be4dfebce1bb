// Package live tests a platform with one message of each kind, and a model with one tool call,
// and compares the service's behaviour with its emulator's.
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
	"oneclaw/internal/record"
	"oneclaw/internal/retry"
	"oneclaw/internal/wording"
)

// Row is the result of a step.
type Row struct {
	Where, Step string
	// Service is the service's behaviour, Emulator its emulator's.
	Service, Emulator string
	Err               error
}

// Same reports whether the service behaved like its emulator.
func (r Row) Same() bool { return r.Err == nil && r.Service == r.Emulator }

// known is a platform that can be tried.
type known struct {
	// rows are its emulator's results by step, which a test checks.
	rows map[string]string
	// sent returns the message in a service's response; false if there is none.
	sent func(answer []byte) (message, bool)
	// threads says that a reply to a message begins a thread.
	threads bool
}

// platforms returns the platforms that can be tried.
func platforms() map[string]known {
	return map[string]known{"telegram": ofTelegram(), "slack": ofSlack()}
}

// Names returns the names of the platforms that can be tried.
func Names() []string { return slices.Sorted(maps.Keys(platforms())) }

// message is a message in a service's response.
type message struct {
	text string
	// formats are the kinds of formatting; nil if the service keeps the text unchanged.
	formats []string
	// ref is the service's reference to the file, file describes it; both may be empty.
	ref, file string
	buttons   int
	// answers is the id of the message that it replies to, as says how.
	answers, as string
}

// last returns the last message in the service's responses.
func (t *trial) last() (last message) {
	for _, l := range t.seen() {
		if m, ok := t.sent(l.Response); ok {
			last = m
		}
	}
	return last
}

// The contents sent.
const (
	plainText = "OneClaw tries this chat out: plain text."
	formatted = "**bold**, *italic*, ~~struck~~, `code`, [a link](https://example.com/)\n\n```go\nfmt.Println(1)\n```\n\n> a quote\n\n- an item"
	longLines = 150
	longLine  = "Line %d of a long answer that has to go in several messages.\n\n"

	fileName    = "oneclaw-try.txt"
	fileText    = "OneClaw tries this chat out."
	pictureName = "oneclaw-try.png"
)

// steps are the messages in order.
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

// Messages describes what [Platform] sends.
const Messages = "9 messages (plain, formatted, a long one in 3 parts, a file, a picture, buttons, which an edit takes away again, a reply)"

// service is what a platform must implement.
type service interface {
	chats.Platform
	chats.Editor
	chats.FileSender
	chats.FileFetcher
}

// Platform sends one message of each kind to a chat. seen returns the requests and responses
// since its last call.
func Platform(ctx context.Context, p chats.Platform, to chats.Chat, seen func() []record.Line) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		able, ok := p.(service)
		about, tried := platforms()[p.Name()]
		if !ok || !tried {
			yield(Row{Where: p.Name(), Err: errors.New("the adapter cannot send all of that")})
			return
		}
		t := &trial{service: able, known: about, to: chats.Address{Chat: to}, seen: seen}
		for _, step := range steps {
			seen()
			did, err := step.run(t, ctx)
			if !yield(Row{p.Name(), step.name, did, t.rows[step.name], err}) || ctx.Err() != nil {
				return
			}
		}
	}
}

// trial is the test of one platform.
type trial struct {
	service
	known
	to   chats.Address
	seen func() []record.Line
	// first is the id of the first message, press that of the one with buttons, ref the service's
	// reference to the file.
	first, press, ref string
}

// maxWait bounds how long a service may delay a message, and maxTries how often.
const (
	maxWait  = time.Minute
	maxTries = 3
)

// send sends a text, optionally with buttons, and returns the id of the last message and the
// service's response to each.
func (t *trial) send(ctx context.Context, to chats.Address, markdown string, buttons ...[]chats.Button) (id string, shown []message, err error) {
	for _, part := range t.Render(markdown) {
		part.Buttons = buttons
		if err := retryDelayed(ctx, func() (err error) { id, err = t.Send(ctx, to, part); return err }); err != nil {
			return "", nil, err
		}
		shown = append(shown, t.last())
	}
	return id, shown, nil
}

// retryDelayed repeats an action that the service delays.
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

func (t *trial) text(ctx context.Context) (string, error) {
	id, shown, err := t.send(ctx, t.to, plainText)
	if err != nil {
		return "", err
	}
	t.first = id
	return compared(shown[0].text, plainText), nil
}

func compared(got, want string) string {
	if got == want {
		return "shown as it was sent"
	}
	return "shown as " + quoted(got)
}

// quoted returns a service's text on one short line.
func quoted(text string) string {
	return "“" + wording.Clip(strings.Join(strings.Fields(text), " "), 60) + "”"
}

func (t *trial) formatted(ctx context.Context) (string, error) {
	_, shown, err := t.send(ctx, t.to, formatted)
	if err != nil {
		return "", err
	}
	kinds := shown[0].formats
	if kinds == nil {
		return compared(shown[0].text, t.Render(formatted)[0].Text), nil
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

func (t *trial) file(ctx context.Context) (string, error) {
	shown, err := t.upload(ctx, fileName, []byte(fileText))
	t.ref = shown.ref
	return cmp.Or(shown.file, "no file"), err
}

func (t *trial) picture(ctx context.Context) (string, error) {
	img := image.NewRGBA(image.Rect(0, 0, 160, 90))
	draw.Draw(img, img.Bounds(), image.NewUniform(color.RGBA{40, 120, 160, 255}), image.Point{}, draw.Src)
	var data bytes.Buffer
	if err := png.Encode(&data, img); err != nil {
		return "", fmt.Errorf("draw a picture: %w", err)
	}
	shown, err := t.upload(ctx, pictureName, data.Bytes())
	return cmp.Or(shown.file, "no file"), err
}

func (t *trial) upload(ctx context.Context, name string, data []byte) (message, error) {
	err := retryDelayed(ctx, func() error {
		_, err := t.SendFile(ctx, t.to, chats.OutFile{Name: name, Caption: fileText, Size: int64(len(data)), Content: bytes.NewReader(data)})
		return err
	})
	return t.last(), err
}

func (t *trial) buttons(ctx context.Context) (string, error) {
	id, shown, err := t.send(ctx, t.to, "OneClaw tries this chat out: buttons.",
		[]chats.Button{{Label: "One", Data: "try:1"}, {Label: "Two", Data: "try:2", Style: chats.StyleDanger}})
	if err != nil {
		return "", err
	}
	t.press = id
	return fmt.Sprintf("%d buttons", shown[0].buttons), nil
}

func (t *trial) edit(ctx context.Context) (string, error) {
	if t.press == "" {
		return "", errors.New("there is no message to edit")
	}
	const text = "OneClaw tries this chat out: edited."
	if err := retryDelayed(ctx, func() error { return t.Edit(ctx, t.to, t.press, t.Render(text)[0]) }); err != nil {
		return "", err
	}
	shown := t.last()
	return fmt.Sprintf("%s, %d buttons", compared(shown.text, text), shown.buttons), nil
}

func (t *trial) thread(ctx context.Context) (string, error) {
	if t.first == "" {
		return "", errors.New("there is no message to answer")
	}
	to := t.to
	if t.threads {
		to.Chat.Thread = t.first
	} else {
		to.ReplyTo = t.first
	}
	_, shown, err := t.send(ctx, to, "OneClaw tries this chat out: an answer to the first message.")
	if err != nil {
		return "", err
	}
	if m := shown[0]; m.answers == t.first {
		return m.as + " the first message", nil
	}
	return "beside the first message", nil
}

// reader is a platform that can return the text of a bot's message.
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
