package agent

import (
	"slices"

	"oneclaw/toolgroups"
)

// Bounds of the pictures of one request. Anthropic takes 5 MB a picture and, of more than
// twenty, smaller ones alone; Gemini takes 20 MB a request, all of them encoded
// (platform.claude.com/docs/en/build-with-claude/vision,
// ai.google.dev/gemini-api/docs/image-understanding).
const (
	// MaxPicture is how many bytes a picture may have that is shown.
	MaxPicture = 5 << 20 * 3 / 4
	// MaxPictures is how many are shown at once, MaxPictureBytes what they have together.
	MaxPictures     = 20
	MaxPictureBytes = 12 << 20
)

// What a picture costs in tokens, by Anthropic's rule, which is the dearest: its pixels, once
// it is made to fit, divided by a number (the same page).
const (
	pictureSide    = 1568
	pixelsPerToken = 750
	mostTokens     = 1600
	leastTokens    = 85
)

// PictureTokens says roughly what a picture costs.
func PictureTokens(p *toolgroups.Picture) int {
	w, h := p.Width, p.Height
	if w <= 0 || h <= 0 || w > 1<<20 || h > 1<<20 {
		return mostTokens
	}
	if longest := max(w, h); longest > pictureSide {
		w, h = w*pictureSide/longest, h*pictureSide/longest
	}
	return min(max(w*h/pixelsPerToken, leastTokens), mostTokens)
}

// pictureTokens is what the pictures of a message cost.
func pictureTokens(m *Message) (n int) {
	for i := range m.Files {
		if p := m.Files[i].Picture; p != nil && !p.Gone {
			n += PictureTokens(p)
		}
	}
	return n
}

// Seen is a picture of a request: of the message at an index, the file at another.
type Seen struct {
	Message, File int
	Picture       *toolgroups.Picture
}

// Shown lists the pictures that a model which can see is shown: those of what people sent and
// of what tools made, in their order. Where there are more than a request may have, the newest
// are; the first of them moves seldom and far, so that a prompt cache holds in between.
func Shown(messages []Message) []Seen {
	var list []Seen
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
			list = append(list, Seen{i, k, p})
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

// FewerPictures is the record that a conversation needs whose pictures cost more than budget
// tokens, or of which a request would not hold more for long: the newest that take half of that
// stay. It returns false where they may all stay. A negative budget has none stay.
func FewerPictures(history []Message, budget int) (Message, bool) {
	seen := Shown(Arrange(history))
	if len(seen) == 0 {
		return Message{}, false
	}
	within := func(stay []Seen, tokens, number int, size int64) bool {
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

// withoutPictures marks the pictures that records of RolePictures take out, and leaves out the
// records.
func withoutPictures(history []Message) []Message {
	out := make([]Message, 0, len(history))
	for i := range history {
		if m := &history[i]; m.Role == RolePictures {
			hide(out, m.Pictures)
		} else {
			out = append(out, *m)
		}
	}
	return out
}

// hide marks all pictures but the last so many. The messages are the caller's own, their files
// are not.
func hide(messages []Message, stay int) {
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
