package openai

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"strings"

	"oneclaw/agent"
)

// Vision says whether a model is shown the pictures that come with a message.
type Vision string

// The values of [Vision].
const (
	// VisionAuto goes by the name of the model.
	VisionAuto Vision = "auto"
	// VisionOn shows them.
	VisionOn Vision = "on"
	// VisionOff names the files alone.
	VisionOff Vision = "off"
)

func parseVision(v Vision) (Vision, error) {
	switch v = cmp.Or(v, VisionAuto); v {
	case VisionAuto, VisionOn, VisionOff:
		return v, nil
	}
	return "", fmt.Errorf("openai: vision must be %s, %s or %s", VisionAuto, VisionOn, VisionOff)
}

var (
	// seeing are the families that can see, whoever's name stands before theirs.
	seeing = regexp.MustCompile(`(^|/)(ft:)?((chat)?gpt-4o|gpt-4\.1|gpt-([5-9]|[1-9][0-9])|claude|gemini)`)
	// blind are the models of these families that can not.
	blind = regexp.MustCompile(`claude-(2|instant)|gemini(-1\.0)?-pro$|-audio|-realtime|-transcribe|-tts`)
)

func sees(v Vision, model string) bool {
	if v != VisionAuto {
		return v == VisionOn
	}
	model = strings.ToLower(model)
	return seeing.MatchString(model) && !blind.MatchString(model)
}

// Bounds of what one request shows. Anthropic takes 5 MB a picture, Gemini 20 MB a
// request, both of them encoded (platform.claude.com/docs/en/build-with-claude/vision,
// ai.google.dev/gemini-api/docs/image-understanding).
const (
	maxPicture     = 5 << 20 * 3 / 4
	maxPictures    = 10
	maxPictureSize = 12 << 20
)

// picture is one that the model is shown.
type picture struct {
	kind string
	data []byte
}

// appendURL appends an address that holds the picture itself.
func (p picture) appendURL(buf []byte) []byte {
	buf = append(append(append(buf, "data:"...), p.kind...), ";base64,"...)
	return base64.StdEncoding.AppendEncode(buf, p.data)
}

// show is what is shown with one of the messages of a request.
type show struct {
	at       int
	pictures []picture
}

// with returns the pictures of the messages first to last.
func (s show) with(first, last int) []picture {
	if s.at < first || s.at > last {
		return nil
	}
	return s.pictures
}

// look reads the pictures of the message that is answered. What can not be read, or is
// no picture, is left out: the message names it all the same.
func (c *Client) look(req agent.Request) show {
	s := show{at: -1}
	if req.ReadFile == nil || !sees(c.cfg.Vision, c.cfg.Model) {
		return s
	}
	for i := range req.Messages {
		if m := &req.Messages[i]; m.Role == agent.RoleUser && len(m.Files) > 0 {
			s.at = i
		}
	}
	if s.at < 0 {
		return s
	}
	left := int64(maxPictureSize)
	for _, f := range req.Messages[s.at].Files {
		if len(s.pictures) == maxPictures || !maybePicture(f.Path) {
			continue
		}
		data, err := req.ReadFile(f.Path, min(maxPicture, left))
		if err != nil {
			c.log.Warn("picture not shown to the model", "model", c.cfg.Model, "file", f.Path, "err", err)
			continue
		}
		if kind := http.DetectContentType(data); pictureKind(kind) {
			s.pictures = append(s.pictures, picture{kind, data})
			left -= int64(len(data))
		}
	}
	return s
}

// maybePicture spares the reading of what is no picture by its name.
func maybePicture(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case "", ".png", ".jpg", ".jpeg", ".gif", ".webp":
		return true
	}
	return false
}

// pictureKind reports whether models take pictures of a kind.
func pictureKind(kind string) bool {
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

// user writes a user message for Chat Completions.
func (e *encoder) user(text string, pictures []picture) {
	if len(pictures) == 0 {
		e.message("user", text)
		return
	}
	e.open("user")
	e.raw(`,"content":[{"type":"text"`)
	e.field("text", text)
	e.raw(`}`)
	for _, p := range pictures {
		e.raw(`,{"type":"image_url","image_url":{"url":"`)
		e.buf = p.appendURL(e.buf)
		e.raw(`"}}`)
	}
	e.raw(`]}`)
}

// userInput writes a user message for the Responses API.
func (e *encoder) userInput(text string, pictures []picture) {
	if len(pictures) == 0 {
		e.message("user", text)
		return
	}
	e.open("user")
	e.raw(`,"content":[{"type":"input_text"`)
	e.field("text", text)
	e.raw(`}`)
	for _, p := range pictures {
		e.raw(`,{"type":"input_image","image_url":"`)
		e.buf = p.appendURL(e.buf)
		e.raw(`"}`)
	}
	e.raw(`]}`)
}
