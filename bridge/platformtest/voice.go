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
// [chats.FileFetcher] must be one; for other services the properties of voice are skipped.
type Speaker interface {
	// Speak makes a user send a voice note to the bot. sound is the content of its file.
	Speak(in Place, by string, sound []byte)
}

func voiceProperties() []property {
	return []property{
		{"VoiceHeard", "The words of a voice note are shown below it in one line, and answered.", testVoiceHeard},
		{"VoiceOnce", "A voice note whose transcript was stored when the bot stopped is not transcribed again: the transcript and the answer are shown once.", testVoiceOnce},
		{"VoiceSilent", "A voice note without words is answered with one sentence, without the model.", testVoiceSilent},
	}
}

// fakeTranscriber transcribes voice notes whose sound is soundMark and then the text.
type fakeTranscriber struct{ count atomic.Int32 }

// soundMark begins the sounds of the suite.
const soundMark = "OggS sounds like "

func (e *fakeTranscriber) transcribe(_ context.Context, _ toolgroups.Scope, r turn.Recording) (string, error) {
	e.count.Add(1)
	sound, err := io.ReadAll(r.Content)
	words, ok := strings.CutPrefix(string(sound), soundMark)
	if err == nil && !ok {
		err = fmt.Errorf("no sound: %.100q", sound)
	}
	return words, err
}

// startSpeaker configures a fakeTranscriber for the world and returns it with the service, or skips the
// test.
func (w *world) startSpeaker() (Speaker, *fakeTranscriber) {
	w.t.Helper()
	s, speaks := w.harness.Service.(Speaker)
	if !speaks {
		w.t.Skip("users cannot send voice notes on the platform")
	}
	e := &fakeTranscriber{}
	w.cfg.Turns.Transcribe = e.transcribe
	w.respond = func(_ context.Context, said []string) string {
		last := said[len(said)-1]
		return reply(strings.TrimSpace(last[strings.LastIndex(last, "\n")+1:])) // after the line that describes the voice note
	}
	return s, e
}

// wantSpoken checks that a place shows the transcript and the answer to the question, once and in either
// order, because neither waits for the other.
func (w *world) wantSpoken(place Place, words, asked string) {
	w.t.Helper()
	line, answer := "🎤 “"+words+"”", reply(asked)
	w.await("the answer to "+words, func(v View) bool {
		shown := texts(v.inPlace(place))
		return slices.Contains(shown, line) && slices.Contains(shown, answer)
	})
	got := texts(w.awaitSettled(place))
	if slices.Sort(got); !slices.Equal(got, []string{answer, line}) {
		w.t.Errorf("shown: %q, want %q and %q", got, line, answer)
	}
}

func testVoiceHeard(t testing.TB, w *world) {
	s, e := w.startSpeaker()
	w.start()
	places := w.openAll()
	for i, place := range places {
		words := fmt.Sprintf("buy milk %d", i)
		s.Speak(place, w.harness.Member, []byte(soundMark+words))
		w.wantSpoken(place, words, words)
	}
	if n := e.count.Load(); int(n) != len(places) {
		t.Errorf("%d notes were transcribed %d times", len(places), n)
	}
}

func testVoiceOnce(t testing.TB, w *world) {
	s, e := w.startSpeaker()
	kept, stopping := make(chan struct{}), make(chan struct{})
	once, release := sync.OnceFunc(func() { close(kept) }), sync.OnceFunc(func() { close(stopping) })
	defer release()
	w.store.onJob(func(_ context.Context, j jobRecord, write func() error) error {
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
	waitFor(t, "the words to be kept", kept)
	stop, ended := w.stop, make(chan struct{})
	go func() {
		defer close(ended)
		stop()
	}()
	waitFor(t, "the bot to receive no more", w.received)
	release()
	waitFor(t, "the bot to end", ended)
	w.store.onJob(nil)
	w.start()
	w.wantSpoken(place, "call the plumber", "call the plumber")
	if n := e.count.Load(); n != 1 {
		t.Errorf("it was transcribed %d times", n)
	}
}

func testVoiceSilent(_ testing.TB, w *world) {
	s, _ := w.startSpeaker()
	w.start()
	place := w.open(Direct, w.harness.Member)
	s.Speak(place, w.harness.Member, []byte(soundMark+" "))
	w.want(w.awaitSettled(place), "Your recording has no words in it that I could hear.")
}
