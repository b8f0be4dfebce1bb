package openai

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"

	"oneclaw/agent"
	"oneclaw/toolgroups"
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

// show is what is shown with the messages of a request, by their places.
type show struct {
	pictures map[int][]picture
	// blind says that the model cannot see.
	blind bool
}

// with returns the pictures of the messages first to last.
func (s show) with(first, last int) (all []picture) {
	for i := first; i <= last && len(s.pictures) > 0; i++ {
		all = append(all, s.pictures[i]...)
	}
	return all
}

// look reads the pictures of a request. What cannot be read, or is no picture any more, is
// left out: the message names it all the same.
func (c *Client) look(req agent.Request, q quirks) show {
	if q.blind || c.Facts().Sees.No() {
		return show{blind: true}
	}
	return look(&req, func(file string, err error) {
		c.cfg.Logger.Warn("picture not shown to the model", "model", c.cfg.Model, "file", file, "err", err)
	})
}

// errChanged is why a picture is not shown whose file is another one by now.
var errChanged = errors.New("the file has changed since")

func look(req *agent.Request, skipped func(file string, err error)) show {
	seen := agent.Shown(req.Messages)
	s := show{blind: len(seen) > 0 && req.ReadFile == nil}
	if s.blind || len(seen) == 0 {
		return s
	}
	s.pictures = make(map[int][]picture)
	for _, one := range seen {
		name := req.Messages[one.Message].Files[one.File].Path
		data, err := req.ReadFile(name, agent.MaxPicture)
		if sum := sha256.Sum256(data); err == nil && one.Picture.Sum != "" && one.Picture.Sum != hex.EncodeToString(sum[:]) {
			err = errChanged
		}
		if err != nil {
			skipped(name, err)
			continue
		}
		if kind := http.DetectContentType(data); pictureKind(kind) {
			s.pictures[one.Message] = append(s.pictures[one.Message], picture{kind, data})
		}
	}
	return s
}

// pictureKind reports whether models take pictures of a kind.
func pictureKind(kind string) bool {
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

// fileLine names a file in a message, and says of a picture that it cannot be seen.
func fileLine(f *toolgroups.File, blind bool) string {
	switch {
	case f.Picture == nil:
	case blind:
		return "[file: " + f.Path + ", a picture, which you cannot see]"
	case f.Picture.Gone:
		return "[file: " + f.Path + ", a picture, which you are not shown any more]"
	}
	return "[file: " + f.Path + "]"
}

// madeText is what stands with the pictures of results.
func madeText(messages []agent.Message) string {
	var names []string
	for i := range messages {
		for k := range messages[i].Files {
			if f := &messages[i].Files[k]; f.Picture != nil && !f.Picture.Gone {
				names = append(names, f.Path)
			}
		}
	}
	return "[made by tools: " + strings.Join(names, ", ") + "]"
}
