package openai

import (
	"encoding/base64"
	"strings"

	"oneclaw/agent"
	"oneclaw/agent/provider"
)

// appendURL appends an address that holds the picture itself.
func appendURL(buf []byte, p provider.Picture) []byte {
	buf = append(append(append(buf, "data:"...), p.Kind...), ";base64,"...)
	return base64.StdEncoding.AppendEncode(buf, p.Data)
}

// show is what is shown with the messages of a request, by their places.
type show struct {
	pictures map[int][]provider.Picture
	// blind says that the model cannot see.
	blind bool
}

// with returns the pictures of the messages first to last.
func (s show) with(first, last int) (all []provider.Picture) {
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
	pictures, blind := provider.Pictures(&req, func(file string, err error) {
		c.cfg.Logger.Warn("picture not shown to the model", "model", c.cfg.Model, "file", file, "err", err)
	})
	return show{pictures, blind}
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
