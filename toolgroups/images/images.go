// Package images is the group of tools that make and change pictures. The pictures come from a [Maker],
// which also charges users for them; the tools read and write the files, and the outbox delivers them.
package images

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // decodes sizes
	_ "image/png"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"oneclaw/internal/named"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

// Error codes of these tools, in addition to those of a [Maker].
const (
	CodeNoPicture = "not_a_picture"
	CodeNoRoom    = "no_room"
)

const (
	// maxPrompt is OpenAI's limit, in characters
	// (developers.openai.com/api/reference/resources/images/methods/generate).
	maxPrompt = 32_000
	// maxSource bounds a picture that is changed, in bytes. OpenAI takes 50 MB.
	maxSource = 25 << 20
	// roomNeeded is the space in the workspace without which no picture is made, in bytes.
	roomNeeded = 12 << 20
	// maxParallel bounds the pictures made in parallel; other calls wait.
	maxParallel = 4
	// maxSlug bounds the words of the prompt in a file name, in bytes.
	maxSlug = 40
	// folder is the folder of the pictures in the workspace.
	folder = "pictures/"
)

// The values of size, in pixels. All of OpenAI's models make these (the same page).
const (
	square    = "1024x1024"
	landscape = "1536x1024"
	portrait  = "1024x1536"
)

// Maker makes pictures.
type Maker interface {
	// MakeImage makes a picture of the given size, such as 1024x1024, and charges it to the user of the
	// scope. If source is not nil, it makes the change that the prompt describes to the picture source.
	// An error is a *[toolgroups.Error], or the cause of ctx.
	MakeImage(ctx context.Context, scope toolgroups.Scope, prompt, size string, source []byte) ([]byte, error)
}

//go:embed images.json
var manifests embed.FS

// Images holds the tools.
type Images struct {
	maker Maker
	now   func() time.Time
	slots chan struct{}
}

// New makes the tools.
func New(maker Maker, now func() time.Time) *Images {
	return &Images{maker: maker, now: now, slots: make(chan struct{}, maxParallel)}
}

// Group returns the two tools.
func (i *Images) Group() (toolgroups.Group, error) {
	return toolgroups.ReadGroup(manifests, "images", map[string]toolgroups.Handler{
		"generate_image": toolgroups.TypedHandler(i.generate),
		"edit_image":     toolgroups.TypedHandler(i.edit),
	})
}

type arguments struct {
	Path   string `json:"path"`
	Prompt string `json:"prompt"`
	Size   string `json:"size"`
}

func (i *Images) generate(ctx context.Context, call toolgroups.Call, in arguments) (toolgroups.Result, error) {
	return i.makeImage(ctx, call, in.Prompt, pixels(in.Size, square), nil)
}

func (i *Images) edit(ctx context.Context, call toolgroups.Call, in arguments) (toolgroups.Result, error) {
	source, err := readPicture(call.Scope, in.Path)
	if err != nil {
		return toolgroups.Result{}, err
	}
	return i.makeImage(ctx, call, in.Prompt, pixels(in.Size, sizeLike(source)), source)
}

// makeImage makes a picture and saves it. It checks the prompt and the free space before the picture is
// paid for.
func (i *Images) makeImage(ctx context.Context, call toolgroups.Call, prompt, size string, source []byte) (toolgroups.Result, error) {
	prompt = strings.TrimSpace(prompt)
	switch n := utf8.RuneCountInString(prompt); {
	case n == 0:
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "'prompt' is empty. Describe the picture.")
	case n > maxPrompt:
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "'prompt' has %d characters, more than the limit of %d. Shorten it.", n, maxPrompt)
	}
	if err := checkRoom(call.Scope); err != nil {
		return toolgroups.Result{}, err
	}
	if err := named.AcquireSlot(ctx, i.slots); err != nil {
		return toolgroups.Result{}, err
	}
	defer func() { <-i.slots }()
	picture, err := i.maker.MakeImage(ctx, call.Scope, prompt, size, source)
	if err != nil {
		return toolgroups.Result{}, err
	}
	kind := kindOf(picture)
	if kind == "" {
		return toolgroups.Result{}, toolgroups.Errorf(CodeNoPicture,
			"What came back is not a PNG, JPEG or WebP, although it was paid. Do not try again; tell the user that the picture could not be made.")
	}
	rel, err := files.SaveNew(call.Scope, folder+slug(prompt), "."+kind, i.now(), picture)
	if err != nil {
		return toolgroups.Result{}, files.ToolError(folder, err, maxSource, CodeNoRoom)
	}
	return toolgroups.Result{
		Text:  fmt.Sprintf("Made and sent: %s (%s, %d bytes). The user sees it below your answer; do not make it again.", rel, size, len(picture)),
		Files: []toolgroups.File{{Path: rel}},
	}, nil
}

// pixels returns the width and height for a value of size, or otherwise for any other value.
func pixels(size, otherwise string) string {
	switch size {
	case "square":
		return square
	case "landscape":
		return landscape
	case "portrait":
		return portrait
	}
	return otherwise
}

// sizeLike returns the size that is most like that of a picture.
func sizeLike(source []byte) string {
	about, _, err := image.DecodeConfig(bytes.NewReader(source))
	switch {
	case err != nil: // a WebP
		return square
	case about.Width*4 > about.Height*5:
		return landscape
	case about.Height*4 > about.Width*5:
		return portrait
	}
	return square
}

// readPicture reads a picture that can be changed.
func readPicture(scope toolgroups.Scope, name string) ([]byte, error) {
	f, rel, _, err := files.Open(scope, name, maxSource)
	if err != nil {
		return nil, files.ToolError(name, err, maxSource, CodeNoPicture)
	}
	defer func() { _ = f.Close() }() // The file is only read.
	data, err := io.ReadAll(io.LimitReader(f, maxSource))
	if err != nil {
		return nil, files.ToolError(name, err, maxSource, CodeNoPicture)
	}
	if kindOf(data) == "" {
		return nil, toolgroups.Errorf(CodeNoPicture,
			"'%s' is not a PNG, JPEG or WebP. Ask the user for the picture in one of these formats.", files.SingleLine(rel))
	}
	return data, nil
}

// kindOf returns the format of a picture, as in the extension of a file name; "" for other formats.
func kindOf(data []byte) string {
	switch http.DetectContentType(data) {
	case "image/png":
		return "png"
	case "image/jpeg":
		return "jpg"
	case "image/webp":
		return "webp"
	}
	return ""
}

// checkRoom returns an error if a picture may not fit into the workspace.
func checkRoom(scope toolgroups.Scope) error {
	err := files.WithWorkspace(scope, func(root *workspace.Root) error {
		free, err := root.FreeBytes()
		if err == nil && free < roomNeeded {
			err = workspace.ErrFull
		}
		return err
	})
	if errors.Is(err, workspace.ErrFull) || errors.Is(err, workspace.ErrDiskFull) {
		return toolgroups.Errorf(CodeNoRoom, "No picture was made, because there is no room for it: %v. Tell the user; some files have to be deleted first.", err)
	}
	return err
}

// slug returns a few words of a prompt for a file name.
func slug(prompt string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(strings.ToLower(prompt), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if b.Len()+len(word)+1 > maxSlug {
			break
		}
		if b.Len() > 0 {
			b.WriteByte('-')
		}
		b.WriteString(word)
	}
	if b.Len() == 0 {
		return "picture"
	}
	return b.String()
}
