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

// Photographer is a [Service] in which users can send pictures; for other services the properties of
// pictures are skipped.
type Photographer interface {
	// Photograph makes a user send a picture with a text to the bot.
	Photograph(in Place, by, text string, picture []byte)
}

func pictureProperties() []property {
	return []property{
		{"PictureStays", "A picture from a user is also shown to the model with the next question, even after a restart.", testPictureStays},
	}
}

func testPictureStays(t testing.TB, w *world) {
	p, sends := w.harness.Service.(Photographer)
	if !sends {
		t.Skip("users cannot send pictures on the platform")
	}
	var sent bytes.Buffer
	if err := png.Encode(&sent, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	w.respondToTurn = func(turn agent.Turn) string {
		shown := agent.Arrange(turn.History)
		var text strings.Builder
		text.WriteString("I see")
		for _, s := range agent.ShownPictures(shown) {
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
	w.want(w.awaitShown(place, 1), seen)
	w.say(place, "and its colour?")
	w.want(w.awaitShown(place, 2), seen, seen)
	w.stop()
	w.start()
	w.say(place, "and now?")
	for _, s := range w.awaitShown(place, 3) { // an earlier answer may have been interrupted, and is marked
		w.wantContains(s, seen)
		if strings.Count(s.Text, "by") > 1 && !isMarked(s) {
			t.Errorf("shown: %q", s.Text)
		}
	}
}
