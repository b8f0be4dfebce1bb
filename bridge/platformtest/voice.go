package platformtest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"oneclaw/bridge/turn"
	"oneclaw/toolgroups"
)

// Speaker is a [Service] in which users can send voice notes. A service whose adapter is a
// [chats.FileFetcher] must be one; the properties of voice are skipped for others.
type Speaker interface {
	// Speak makes a user send a voice note to the bot. Its file is the sound that the suite passes.
	Speak(in Place, by string, sound []byte)
}

func voiceProperties() []property {
	return []property{
		{"VoiceHeard", "What somebody says in a voice note is shown under it in one line, and answered.", hearsVoice},
		{"VoiceOnce", "A voice note whose words were kept when the bot stopped is not heard again: its line and its answer are shown once.", hearsOnce},
		{"VoiceSilent", "A voice note without words is answered with one sentence, and the model is not asked.", hearsNothing},
	}
}

// ears transcribes voice notes, whose sound is their text after a mark.
type ears struct{ heard atomic.Int32 }

// soundMark begins the sounds of the suite.
const soundMark = "OggS sounds like "

func (e *ears) hear(_ context.Context, _ toolgroups.Scope, r turn.Recording) (string, error) {
	e.heard.Add(1)
	sound, err := io.ReadAll(r.Content)
	words, ok := strings.CutPrefix(string(sound), soundMark)
	if err == nil && !ok {
		err = fmt.Errorf("no sound: %.100q", sound)
	}
	return words, err
}

// speaker gives the world ears, or skips the test.
func (w *world) speaker() (Speaker, *ears) {
	w.t.Helper()
	s, speaks := w.harness.Service.(Speaker)
	if !speaks {
		w.t.Skip("nobody can speak on the platform")
	}
	e := &ears{}
	w.cfg.Turns.Transcribe = e.hear
	w.think = func(_ context.Context, said []string) string {
		last := said[len(said)-1]
		return reply(strings.TrimSpace(last[strings.LastIndex(last, "\n")+1:])) // after the line that says where it was spoken
	}
	return s, e
}

// wantSpoken checks that a place shows the transcript and the answer to what was asked, once and in
// either order: neither waits for the other.
func (w *world) wantSpoken(place Place, words, asked string) {
	w.t.Helper()
	line, answer := "🎤 “"+words+"”", reply(asked)
	w.await("the answer to "+words, func(v View) bool {
		shown := texts(v.in(place))
		return slices.Contains(shown, line) && slices.Contains(shown, answer)
	})
	got := texts(w.settled(place))
	if slices.Sort(got); !slices.Equal(got, []string{answer, line}) {
		w.t.Errorf("there stands %q, want %q and %q", got, line, answer)
	}
}

func hearsVoice(t testing.TB, w *world) {
	s, e := w.speaker()
	w.start()
	places := w.everywhere()
	for i, place := range places {
		words := fmt.Sprintf("buy milk %d", i)
		s.Speak(place, w.harness.Member, []byte(soundMark+words))
		w.wantSpoken(place, words, words)
	}
	if n := e.heard.Load(); int(n) != len(places) {
		t.Errorf("%d notes were heard %d times", len(places), n)
	}
}

func hearsOnce(t testing.TB, w *world) {
	s, e := w.speaker()
	kept, stopping := make(chan struct{}), make(chan struct{})
	once, release := sync.OnceFunc(func() { close(kept) }), sync.OnceFunc(func() { close(stopping) })
	defer release()
	w.store.onJob(func(_ context.Context, j record, write func() error) error {
		err := write()
		if err == nil && len(j.Work.Transcripts) > 0 {
			once()
			<-stopping
			err = errStopping
		}
		return err
	})
	w.start()
	place := w.open(Shared, w.harness.Member)
	s.Speak(place, w.harness.Member, []byte(soundMark+"call the plumber"))
	until(t, "the words to be kept", kept)
	stop, ended := w.stop, make(chan struct{})
	go func() {
		defer close(ended)
		stop()
	}()
	until(t, "the bot to receive no more", w.received)
	release()
	until(t, "the bot to end", ended)
	w.store.onJob(nil)
	w.start()
	w.wantSpoken(place, "call the plumber", "call the plumber")
	if n := e.heard.Load(); n != 1 {
		t.Errorf("it was heard %d times", n)
	}
}

func hearsNothing(_ testing.TB, w *world) {
	s, _ := w.speaker()
	w.start()
	place := w.open(Direct, w.harness.Member)
	s.Speak(place, w.harness.Member, []byte(soundMark+" "))
	w.want(w.settled(place), "Your recording has no words in it that I could hear.")
}
