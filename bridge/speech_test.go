package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/toolgroups"
)

// speaking is a platform that takes recordings, unless it refuses one.
type speaking struct {
	*platform
	refuse error
	// hold, if not nil, is where a recording waits for a rate limit.
	hold func()
}

func (speaking) VoiceFormat() string { return chats.VoiceOpus }

func (p speaking) SendVoice(ctx context.Context, to chats.Address, file chats.OutFile) (string, error) {
	if p.refuse != nil {
		return "", p.refuse
	}
	if p.hold != nil {
		p.hold()
	}
	if err := mayBeSent(ctx); err != nil {
		return "", err
	}
	sound, err := io.ReadAll(io.NewSectionReader(file.Content, 0, file.Size))
	if err != nil {
		return "", err
	}
	return p.show(sent{to: to, text: string(sound)})
}

// speakingHarness is a bridge whose answers in a direct chat are spoken with a function.
func speakingHarness(t *testing.T, think thinker, refuse error, speak func(ctx context.Context, text string) ([]byte, error)) *harness {
	r := newHarness(t, think)
	r.cfg.Platforms = []chats.Platform{speaking{platform: r.platform, refuse: refuse}}
	spokenBy(speak)(&r.cfg)
	r.cfg.Limits.MaxTurns = 1
	r.restart()
	return r
}

func spokenBy(speak func(ctx context.Context, text string) ([]byte, error)) func(*bridge.Config) {
	return func(cfg *bridge.Config) {
		cfg.Turns.SpeechFor = func(_ context.Context, scope toolgroups.Scope, _ bool) func(context.Context, string, string) ([]byte, error) {
			if !scope.Direct {
				return nil
			}
			return func(ctx context.Context, text, _ string) ([]byte, error) { return speak(ctx, text) }
		}
	}
}

func aloud(_ context.Context, text string) ([]byte, error) { return []byte("<" + text + ">"), nil }

// A server that does not answer, and a platform that puts a recording off, hold a chat up for seconds, and
// other chats not at all.
func TestSpeechDoesNotHoldAChatUp(t *testing.T) {
	t.Parallel()
	never := func(ctx context.Context, _ string) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	later := func(after time.Duration) error {
		return &chats.SendError{Outcome: chats.Later, RetryAfter: after, Err: errors.New("flood")}
	}
	for name, c := range map[string]struct {
		refuse error
		speak  func(context.Context, string) ([]byte, error)
		most   time.Duration
	}{
		"server": {nil, never, 31 * time.Second}, "platform": {later(time.Hour), aloud, time.Second}, "pauses": {later(10 * time.Second), aloud, 21 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := speakingHarness(t, echo, c.refuse, c.speak)
				began := time.Now()
				r.accept(direct("1", "one"))
				r.platform.wait(t, 1)
				r.accept(direct("2", "two"), group("3", "5", "other"))
				// Where a recording is only put off, the second answer may come first.
				r.platform.until(t, "answer in another chat", func(all []sent) bool {
					return slices.ContainsFunc(all, func(s sent) bool { return s.text == "re: other" })
				})
				if took := time.Since(began); took > time.Second {
					t.Errorf("another chat waited %s, %v", took, r.platform.texts())
				}
				r.platform.wait(t, 3)
				if took := time.Since(began); took > c.most {
					t.Errorf("the next answer took %s", took)
				}
				r.stop()
			})
		})
	}
}

// Only what the user has as text is spoken, and no sentence about a failure.
func TestWhatIsNotSpoken(t *testing.T) {
	t.Parallel()
	refused := outcomes(map[int]*chats.SendError{1: {Outcome: chats.Refused, Err: errors.New("no")}})
	for name, c := range map[string]struct {
		fail   func(int, bool) error
		want   string
		spoken int
	}{
		"an answer":          {nil, "[one two <one two.>]", 1},
		"a part was refused": {refused, "[two]", 0},
		"a failure": {func(n int, _ bool) error {
			if n <= 2 {
				panic("platform")
			}
			return nil
		}, "Incident", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spoken := 0
				r := speakingHarness(t, answering("one\ftwo"), nil, func(ctx context.Context, text string) ([]byte, error) {
					spoken++
					return aloud(ctx, text)
				})
				r.platform.fail = c.fail
				r.accept(direct("1", "x"))
				r.platform.wait(t, 1)
				synctest.Wait()
				r.stop()
				if got := fmt.Sprint(r.platform.texts()); !strings.Contains(got, c.want) || spoken != c.spoken {
					t.Errorf("spoken %d times, shown %s, want %s", spoken, got, c.want)
				}
			})
		})
	}
}
