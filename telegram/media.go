package telegram

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"oneclaw/bridge"
)

// maxFile is what getFile hands out (core.telegram.org/bots/api#getfile).
const maxFile = 20 << 20

// unreadable are the contents that the bot cannot read, by the field that holds
// them, in the words for the user.
var unreadable = []struct{ field, what string }{
	{"voice", "a voice message"},
	{"video", "a video"},
	{"video_note", "a video message"},
	{"sticker", "a sticker"},
	{"venue", "a place"},
	{"location", "a location"},
	{"contact", "a contact"},
	{"poll", "a poll"},
	{"checklist", "a checklist"},
	{"dice", "a die"},
	{"game", "a game"},
	{"story", "a story"},
	{"paid_media", "paid media"},
	{"rich_message", "a rich message"},
	{"invoice", "an invoice"},
	{"giveaway", "a giveaway"},
}

// attachments returns the files of a message, and what of it cannot be read.
func (m *message) attachments(raw json.RawMessage) (files []bridge.Attachment, skipped []string) {
	add := func(f *file, name, kind string) {
		if f == nil || f.ID == "" {
			return
		}
		a := bridge.Attachment{Ref: f.ID, Name: f.Name, Size: max(f.Size, 0), Type: f.Type}
		if a.Name == "" {
			a.Name = name
		}
		if a.Type == "" {
			a.Type = kind
		}
		if a.Size > maxFile {
			skipped = append(skipped, fmt.Sprintf("%s (%s): Telegram hands files of at most %d MB to a bot", a.Name, megabytes(a.Size), maxFile>>20))
			return
		}
		files = append(files, a)
	}
	add(largest(m.Photo), "photo.jpg", "image/jpeg")
	// Telegram repeats an animation as a document, for clients that are older.
	if m.Animation != nil {
		add(m.Animation, "animation.mp4", "video/mp4")
	} else {
		add(m.Document, "document", "")
	}
	add(m.Audio, "audio.mp3", "audio/mpeg")
	if m.Text == "" && len(files) == 0 && len(skipped) == 0 {
		skipped = unread(raw)
	}
	return files, skipped
}

// largest is the size of a photo with the most pixels.
func largest(sizes []file) *file {
	var best *file
	for i := range sizes {
		if f := &sizes[i]; best == nil || f.Width*f.Height >= best.Width*best.Height {
			best = f
		}
	}
	return best
}

// unread names what there is in a message besides text and files. A venue comes
// with its location: one line is enough.
func unread(raw json.RawMessage) []string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	for _, u := range unreadable {
		if v, ok := fields[u.field]; ok && !bytes.Equal(v, []byte("null")) {
			return []string{u.what + ": I can read text and files only"}
		}
	}
	return nil
}

func megabytes(n int64) string {
	return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + " MB"
}
