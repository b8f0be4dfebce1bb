package openai

import (
	"encoding/base64"
	"net/http"
	"path"
	"strings"

	"oneclaw/agent"
)

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

// look reads the pictures of the message that is answered. What cannot be read, or is
// no picture, is left out: the message names it all the same.
func (c *Client) look(req agent.Request, q quirks) show {
	if q.blind || c.Facts().Sees.No() {
		return show{at: -1}
	}
	return look(&req, func(file string, err error) {
		c.cfg.Logger.Warn("picture not shown to the model", "model", c.cfg.Model, "file", file, "err", err)
	})
}

func look(req *agent.Request, skipped func(file string, err error)) show {
	s := show{at: -1}
	if req.ReadFile == nil {
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
			skipped(f.Path, err)
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
