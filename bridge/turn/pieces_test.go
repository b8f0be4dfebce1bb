package turn_test

import (
	"testing"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/turn"
)

// A caption under a further picture of an album is about that picture.
func TestACaptionOfAnAlbumStaysWithItsPicture(t *testing.T) {
	picture := func(caption string) chats.Message {
		return chats.Message{Kind: chats.KindText, Group: "album", Text: caption, Files: []chats.Attachment{{Ref: "f", Name: "photo.jpg"}}}
	}
	for name, tt := range map[string]struct {
		captions []string
		want     string
	}{
		"the first":  {[]string{"which is better?", "", ""}, "which is better?"},
		"the second": {[]string{"", "this one is broken", ""}, "[to file 2] this one is broken"},
		"several":    {[]string{"good", "broken", "new"}, "good\n[to file 2] broken\n[to file 3] new"},
	} {
		var pieces []*queue.Run
		for _, caption := range tt.captions[1:] {
			pieces = append(pieces, &queue.Run{Job: queue.Job{Message: picture(caption)}})
		}
		if got := turn.MergePieces(picture(tt.captions[0]), pieces); got.Text != tt.want || len(got.Files) != len(tt.captions) {
			t.Errorf("%s: %q with %d files, want %q", name, got.Text, len(got.Files), tt.want)
		}
	}
}
