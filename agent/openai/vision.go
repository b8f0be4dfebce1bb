package openai

import (
	"encoding/base64"
	"strings"

	"oneclaw/agent"
	"oneclaw/agent/provider"
)

// appendURL appends a data URL of the picture.
func appendURL(buf []byte, p provider.Picture) []byte {
	buf = append(append(append(buf, "data:"...), p.Kind...), ";base64,"...)
	return base64.StdEncoding.AppendEncode(buf, p.Data)
}

// pictureSet holds the pictures of a request, by the index of their message.
type pictureSet struct {
	pictures map[int][]provider.Picture
	// blind says that the model cannot see.
	blind bool
}

// with returns the pictures of the messages first to last.
func (s pictureSet) with(first, last int) (all []provider.Picture) {
	for i := first; i <= last && len(s.pictures) > 0; i++ {
		all = append(all, s.pictures[i]...)
	}
	return all
}

// readPictures reads the pictures of a request. Unreadable files, or files that are no longer pictures, are
// left out; the message still names them.
func (c *Client) readPictures(req agent.Request, q quirks) pictureSet {
	if q.blind || c.Facts().Sees.No() {
		return pictureSet{blind: true}
	}
	pictures, blind := provider.Pictures(&req, func(file string, err error) {
		c.cfg.Logger.Warn("picture not shown to the model", "model", c.cfg.Model, "file", file, "err", err)
	})
	return pictureSet{pictures, blind}
}

// resultPicturesText is the text in front of the pictures of results.
func resultPicturesText(messages []agent.Message) string {
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
