package platformtest

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"oneclaw/agent"
)

// Photographer is a [Service] in which users can send pictures; the properties of pictures are skipped
// for others.
type Photographer interface {
	// Photograph makes a user send a picture with a text to the bot.
	Photograph(in Place, by, text string, picture []byte)
}

func pictureProperties() []property {
	return []property{
		{"PictureStays", "A picture that somebody sent is shown to the model with the next question, too, also after a restart.", keepsPictures},
	}
}

func keepsPictures(t testing.TB, w *world) {
	p, sends := w.harness.Service.(Photographer)
	if !sends {
		t.Skip("nobody can send pictures on the platform")
	}
	var sent bytes.Buffer
	if err := png.Encode(&sent, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	w.see = func(turn agent.Turn) string {
		shown := agent.Arrange(turn.History)
		var text strings.Builder
		text.WriteString("I see")
		for _, s := range agent.Shown(shown) {
			data, err := turn.ReadFile(shown[s.Message].Files[s.File].Path, agent.MaxPicture)
			if err != nil || !bytes.Equal(data, sent.Bytes()) {
				return fmt.Sprintf("I see %q, %v", data, err)
			}
			fmt.Fprintf(&text, " %d by %d", s.Picture.Width, s.Picture.Height)
		}
		return text.String()
	}
	const seen = "I see 3 by 2"
	w.start()
	place := w.open(Shared, w.harness.Member)
	p.Photograph(place, w.harness.Member, "look", sent.Bytes())
	w.want(w.shown(place, 1), seen)
	w.say(place, "and its colour?")
	w.want(w.shown(place, 2), seen, seen)
	w.stop()
	w.start()
	w.say(place, "and now?")
	for _, s := range w.shown(place, 3) { // an earlier one may have been cut off, and says so
		w.contains(s, seen)
		if strings.Count(s.Text, "by") > 1 && !marked(s) {
			t.Errorf("there stands %q", s.Text)
		}
	}
}
