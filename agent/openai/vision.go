package openai

import (
	"encoding/base64"
	"strings"

	"oneclaw/agent"
	"oneclaw/agent/provider"
)

// appendDataURL appends the picture as a data URL.
func appendDataURL(buf []byte, p provider.Picture) []byte {
	buf = append(append(append(buf, "data:"...), p.MediaType...), ";base64,"...)
	return base64.StdEncoding.AppendEncode(buf, p.Data)
}

// pictureSet holds the pictures in a request, by the index of their message.
type pictureSet struct {
	pictures map[int][]provider.Picture
	// noVision is set if the model does not accept pictures, or the request has no ReadFile for its
	// pictures.
	noVision bool
}

// inMessages returns the pictures in the messages from index first to last, both included.
func (s pictureSet) inMessages(first, last int) (all []provider.Picture) {
	for i := first; i <= last && len(s.pictures) > 0; i++ {
		all = append(all, s.pictures[i]...)
	}
	return all
}

// readPictures reads the pictures in a request. Files that are unreadable or no longer pictures are left
// out; the message still names them.
func (c *Client) readPictures(req agent.Request, q quirks) pictureSet {
	if q.noVision || c.Facts().Sees.No() {
		return pictureSet{noVision: true}
	}
	pictures, blind := provider.ReadPictures(&req, func(file string, err error) {
		c.cfg.Logger.Warn("picture left out of a model request", "model", c.cfg.Model, "file", file, "err", err)
	})
	return pictureSet{pictures, blind}
}

// resultPicturesText returns the text that precedes the pictures of results.
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
