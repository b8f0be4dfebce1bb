package slack

import (
	"errors"
	"strings"
	"testing"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/slack/manifest"
)

// growing is a preview of a text.
func growing(text string) chats.Preview {
	return chats.Preview{Part: chats.Part{Text: text, Buttons: [][]chats.Button{{{Label: "Stop", Data: "stop:1"}}}}, Text: text, UnclosedText: text}
}

// Where Slack does not stream, or does no more, answers are edited as ever.
func TestWithoutStreamsAnswersAreEdited(t *testing.T) {
	for name, c := range map[string]struct {
		fault emulator.Fault
		begun int // how often a stream is begun for two answers
	}{
		"an old workspace":  {emulator.Fault{Method: "chat.startStream", Effect: emulator.Refuse, Error: "unknown_method"}, 1},
		"an app without":    {emulator.Fault{Method: "chat.startStream", Effect: emulator.Refuse, Error: "missing_scope"}, 1},
		"too many":          {emulator.Fault{Method: "chat.startStream", Effect: emulator.TooManyRequests, RetryAfter: 1, Times: 1}, 1},
		"no such thread":    {emulator.Fault{Method: "chat.startStream", Effect: emulator.Refuse, Error: "invalid_thread_ts"}, 2},
		"ended by slack":    {emulator.Fault{Method: "chat.appendStream", Effect: emulator.Refuse, Error: "message_not_in_streaming_state"}, 2},
		"appends forbidden": {emulator.Fault{Method: "chat.appendStream", Effect: emulator.Refuse, Error: "access_denied"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t, quick(), nil)
			if err := f.Install(manifest.YAML()); err != nil {
				t.Fatal(err)
			}
			f.run()
			f.inject(c.fault)
			for range 2 {
				asked := f.say(f.dm, "tell", nil)
				f.in.wait(t, 1)
				to := chats.Address{Chat: chatOf(f.dm, asked.TS)}
				id, err := f.p.Begin(t.Context(), to, growing("one "))
				if err != nil {
					t.Fatal(err)
				}
				if err := f.p.Update(t.Context(), to, id, growing("one two ")); err != nil {
					t.Fatal(err)
				}
				if m := f.message(f.dm, id); !m.IsStreaming && (!strings.HasPrefix(m.Shown, "one two") || len(m.Buttons) != 1) {
					t.Errorf("there stands %+v", m)
				}
				if err := f.p.Finish(t.Context(), to, id, chats.Part{Text: "one two three"}); err != nil {
					t.Fatal(err)
				}
				if m := f.message(f.dm, id); m.Shown != "one two three" || m.IsStreaming || len(m.Buttons) > 0 || m.Thread != asked.TS {
					t.Errorf("there stands %+v", m)
				}
			}
			f.View(func(s emulator.State) {
				if n := s.CallCount("chat.startStream"); n != c.begun {
					t.Errorf("%d streams were begun, want %d", n, c.begun)
				}
			})
			if n := strings.Count(f.log.String(), "slack refuses the app"); n > 1 {
				t.Errorf("the log says %d times what slack refuses", n)
			}
		})
	}
}

// Only who talks to the bot alone sees an answer stream; those in a channel see it edited.
func TestChannelsAreEdited(t *testing.T) {
	f := setup(t, quick(), nil)
	if err := f.Install(manifest.YAML()); err != nil {
		t.Fatal(err)
	}
	f.run()
	asked := f.say(f.channel, "<@"+f.BotUser()+"> tell", nil)
	f.in.wait(t, 1)
	id, err := f.p.Begin(t.Context(), chats.Address{Chat: chatOf(f.channel, asked.TS)}, growing("one"))
	if err != nil {
		t.Fatal(err)
	}
	if m := f.message(f.channel, id); m.IsStreaming || len(m.Buttons) != 1 {
		t.Errorf("there stands %+v", m)
	}
}

// Slack refuses the edit of a preview, and then another process may own the chat. The preview may still be a stream of
// an earlier process, so its part is not sent anew behind it.
func TestAStreamThatAnotherProcessMayEndIsNotGivenUp(t *testing.T) {
	f := setup(t, quick(), nil)
	asked := f.say(f.dm, "tell", nil)
	to := chats.Address{Chat: chatOf(f.dm, asked.TS)}
	id, err := f.send(to.Chat, chats.Part{Text: "one two"})
	if err != nil {
		t.Fatal(err)
	}
	f.inject(emulator.Fault{Method: "chat.update", Times: 1, Effect: emulator.Refuse, Error: "edit_window_closed"})
	checks, errElsewhere := 0, errors.New("owned elsewhere")
	ctx := chats.WithPrecondition(t.Context(), func() error {
		if checks++; checks == 2 {
			return errElsewhere // only for a moment
		}
		return nil
	})
	var failure *chats.SendError
	err = f.p.Finish(ctx, to, id, chats.Part{Text: "one two three"})
	if !errors.As(err, &failure) || failure.Outcome != chats.Later || !errors.Is(err, errElsewhere) {
		t.Errorf("Finish = %v, want the error of the precondition", err)
	}
}

// Slack refuses the edit of a stream that an earlier process began. The text of the stream stands there, whatever
// is known of its end, so a part sent below it has to be marked.
func TestAPartBelowTheStreamOfAnEarlierProcessIsMarked(t *testing.T) {
	for name, c := range map[string]struct {
		streams bool
		effect  emulator.Effect // of the call that ends the stream
		want    bool
	}{
		"the stream is ended":               {true, "", true},
		"the answer to its end is lost":     {true, emulator.CutAfter, true},
		"its end meets an error of Slack":   {true, emulator.ServerError, true},
		"a message that was never streamed": {false, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t, quick(), nil)
			if err := f.Install(manifest.YAML()); err != nil {
				t.Fatal(err)
			}
			f.run()
			asked := f.say(f.dm, "tell", nil)
			f.in.wait(t, 1)
			to := chats.Address{Chat: chatOf(f.dm, asked.TS)}
			id, err := f.send(to.Chat, chats.Part{Text: "one two"})
			if c.streams {
				id, err = f.p.Begin(t.Context(), to, growing("one two"))
			}
			if err != nil {
				t.Fatal(err)
			}
			f.stop()
			f.inject(emulator.Fault{Method: "chat.update", Times: 1, Effect: emulator.Refuse, Error: "edit_window_closed"})
			if c.effect != "" {
				f.inject(emulator.Fault{Method: "chat.stopStream", Effect: c.effect})
			}
			var failure *chats.SendError
			err = f.twin(nil, nil).p.Finish(t.Context(), to, id, chats.Part{Text: "one two three"})
			if !errors.As(err, &failure) || failure.Outcome != chats.Refused || failure.MessageRemains != c.want {
				t.Errorf("Finish = %+v, want a refusal whose message remains: %t", err, c.want)
			}
		})
	}
}
