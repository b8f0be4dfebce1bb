package agent

import (
	"slices"

	"oneclaw/toolgroups"
)

// Bounds of the pictures of one request. Anthropic takes 5 MB a picture and, if there are more than
// twenty, only smaller ones; Gemini takes 20 MB a request, all of them encoded
// (platform.claude.com/docs/en/build-with-claude/vision,
// ai.google.dev/gemini-api/docs/image-understanding).
const (
	// MaxPicture bounds a picture that is shown, in bytes.
	MaxPicture = 5 << 20 * 3 / 4
	// MaxPictures bounds how many are shown in a request, MaxPictureBytes their total size.
	MaxPictures     = 20
	MaxPictureBytes = 12 << 20
)

// The cost of a picture in tokens by Anthropic's rule, which is the most expensive: the number of pixels
// after scaling down, divided by pixelsPerToken (the same page).
const (
	pictureSide      = 1568
	pixelsPerToken   = 750
	maxPictureTokens = 1600
	minPictureTokens = 85
)

// PictureTokens estimates the cost of a picture.
func PictureTokens(p *toolgroups.Picture) int {
	w, h := p.Width, p.Height
	if w <= 0 || h <= 0 || w > 1<<20 || h > 1<<20 {
		return maxPictureTokens
	}
	if longest := max(w, h); longest > pictureSide {
		w, h = w*pictureSide/longest, h*pictureSide/longest
	}
	return min(max(w*h/pixelsPerToken, minPictureTokens), maxPictureTokens)
}

// messagePictureTokens estimates the cost of a message's pictures.
func messagePictureTokens(m *Message) (n int) {
	for i := range m.Files {
		if p := m.Files[i].Picture; p != nil && !p.Gone {
			n += PictureTokens(p)
		}
	}
	return n
}

// PictureRef identifies a picture in a request by the indexes of its message and its file.
type PictureRef struct {
	Message, File int
	Picture       *toolgroups.Picture
}

// ShownPictures returns the pictures to send to a model with vision, in order: those that users sent and
// those that tools made. If there are more than a request may have, only the newest are sent. Old ones
// are dropped rarely and many at a time, so that a prompt cache remains valid in between.
func ShownPictures(messages []Message) []PictureRef {
	var list []PictureRef
	size := int64(0)
	for i := range messages {
		if r := messages[i].Role; r != RoleUser && r != RoleTool {
			continue
		}
		for k := range messages[i].Files {
			p := messages[i].Files[k].Picture
			if p == nil || p.Gone {
				continue
			}
			list = append(list, PictureRef{i, k, p})
			if size += p.Size; len(list) > MaxPictures || size > MaxPictureBytes {
				for len(list) > 1 && (len(list) > MaxPictures/2 || size > MaxPictureBytes/2) {
					size -= list[0].Picture.Size
					list = list[1:]
				}
			}
		}
	}
	return list
}

// TrimPictures returns a record that drops the oldest pictures from requests, if the pictures cost more
// than budget tokens or approach the bounds of a request. The newest that fit in half of the budget are
// kept. It returns false if all can be kept. If budget is negative, none are kept.
func TrimPictures(history []Message, budget int) (Message, bool) {
	seen := ShownPictures(Arrange(history))
	if len(seen) == 0 {
		return Message{}, false
	}
	within := func(stay []PictureRef, tokens, number int, size int64) bool {
		for _, s := range stay {
			tokens -= PictureTokens(s.Picture)
			size -= s.Picture.Size
		}
		return tokens >= 0 && len(stay) <= number && size >= 0
	}
	if within(seen, budget, MaxPictures/2, MaxPictureBytes/2) {
		return Message{}, false
	}
	stay := len(seen)
	for stay > 0 && !within(seen[len(seen)-stay:], budget/2, MaxPictures/4, MaxPictureBytes/4) {
		stay--
	}
	return Message{Role: RolePictures, Pictures: stay}, true
}

// hidePictures marks all pictures except the newest (stay is their number) as gone, in place.
func hidePictures(messages []Message, stay int) {
	for i := len(messages) - 1; i >= 0; i-- {
		m := &messages[i]
		own := false
		for k := len(m.Files) - 1; k >= 0; k-- {
			switch p := m.Files[k].Picture; {
			case p == nil || p.Gone:
			case stay > 0:
				stay--
			default:
				if !own {
					m.Files, own = slices.Clone(m.Files), true
				}
				gone := *p
				gone.Gone = true
				m.Files[k].Picture = &gone
			}
		}
	}
}
