package platformtest

import (
	"slices"
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
)

// TestAForwardedVoiceNoteIsHeard has somebody forward a voice note, and answer one: only the
// former is their message.
func TestAForwardedVoiceNoteIsHeard(t *testing.T) {
	t.Parallel()
	m := newMemory(t, "")
	w := newWorld(t, Harness{Service: m, Member: "ann", Admin: "chief", Stranger: "eve", Limit: memoryLimit})
	defer w.close()
	_, e := w.startSpeaker()
	w.textOf = func(m agent.Message) string {
		if strings.Contains(m.Quoted, "\n> water the plants\n") && m.Text == "" {
			return "forwarded"
		}
		return m.Text
	}
	w.start()
	place := w.open(Direct, w.harness.Member)
	point := func(how chats.ReferenceKind, text string) {
		m.tell(place, w.harness.Member, text, chats.Quoted{Kind: how, By: "bob", Files: []chats.Attachment{
			{Ref: m.keep([]byte(soundMark + "water the plants")), Name: "voice.ogg", Sound: chats.Sound{Kind: chats.SoundSpoken}},
		}})
	}
	point(chats.RefForward, "")
	w.wantSpoken(place, "water the plants", "forwarded")
	point(chats.RefReply, "thanks")
	w.await("the answer to the reply", func(v View) bool { return slices.Contains(texts(v.inPlace(place)), reply("thanks")) })
	if n := e.count.Load(); n != 1 {
		t.Errorf("%d notes were heard", n)
	}
}
