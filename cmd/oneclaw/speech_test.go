package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
)

// withSpeech sets up the models that listen and speak.
func (w *harness) withSpeech() {
	w.env["ONECLAW_VOICE_MODEL"], w.env["ONECLAW_SPEECH_MODEL"], w.env["ONECLAW_BUDGET_USER_USD"] = openai.DefaultModel, openai.SpeechModel, "1"
}

// voiceNotes waits until there are n recordings, and returns them.
func (s *botChat) voiceNotes(n int) (notes []shown) {
	s.t.Helper()
	s.until("recordings", func(all []shown) bool {
		notes = slices.DeleteFunc(slices.Clone(all), func(m shown) bool { return m.file.data == nil })
		return len(notes) == n
	})
	return notes
}

// TestAnswersAreSpoken: who speaks gets a spoken answer with its text, who writes gets a text, and each
// chat decides for itself. Telegram gets a voice note, Slack a file that it plays.
func TestAnswersAreSpoken(t *testing.T) {
	t.Parallel()
	onBothPlatforms(t, false, openai.Offline{}, func(s *botChat) {
		s.w.withSpeech()
		s.start()
		s.say(0, "hello")
		s.one("Hello!")
		s.speak(saying{text: "what time is it?", voice: true})
		s.one("The clock says: ")
		note := s.voiceNotes(1)[0].file
		switch {
		case s.sign == "/" && (!bytes.HasPrefix(note.data, []byte("OggS")) || !bytes.Contains(note.data, []byte("The clock says: "))):
			s.t.Errorf("Telegram got %.80q", note.data)
		case s.sign == "!" && (note.name != "answer.mp3" || !bytes.HasPrefix(note.data, []byte("\xff\xfb"))):
			s.t.Errorf("Slack got %s, %.10q", note.name, note.data)
		}
		s.say(0, s.sign+"voice")
		s.one("I speak here when you do")
		s.say(0, s.sign+"voice on")
		s.one("I speak my answers here.")
		s.say(0, "hello")
		s.voiceNotes(2)
		s.say(0, s.sign+"voice off")
		s.one("I don't speak here.")
		s.speak(saying{text: "what time is it in Tokyo?", voice: true})
		s.one("The clock in Asia/Tokyo says: ")
		s.say(0, s.sign+"voice loud")
		s.one("(when you speak, I do)")
		s.say(0, s.sign+"usage")
		s.one("of $1.00")
		spoken := s.w.model.Spoken()
		if len(spoken) != 2 || !strings.HasPrefix(spoken[0].Input, "The clock says: ") || spoken[0].Voice != "alloy" {
			s.t.Errorf("spoken %+v", spoken)
		}
		s.voiceNotes(2)
	})
}

// TestSpeechThatFailsIsText: whatever goes wrong, the answer is there, and the next one is spoken again.
func TestSpeechThatFailsIsText(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	w.withSpeech()
	s := telegramChatIn(t, w, false)
	fate := make(chan *openai.Error, 1)
	w.model.OnSpeech(func(openai.SpeechRequest) *openai.Error { return <-fate })
	bot := s.start()
	s.say(0, "/voice on")
	s.one("I speak my answers here.")
	for n, failure := range []*openai.Error{
		{Status: 500, Type: "server_error", Message: "Down."}, {Status: 429, Message: "Slow down.", Code: "rate_limit_exceeded"}, {Status: 401, Message: "No key."},
	} {
		fate <- failure
		s.say(0, []string{"1+1", "1+2", "1+3"}[n])
		s.one([]string{"1+1 =", "1+2 =", "1+3 ="}[n])
	}
	if _, err := w.telegram.Inject(telegram.Fault{Method: "sendVoice", Times: 1, Effect: telegram.ServerError, Status: 500}); err != nil {
		t.Fatal(err)
	}
	fate <- nil
	s.say(0, "1+4")
	s.one("1+4 =")
	fate <- nil
	s.say(0, "1+5")
	s.one("1+5 =")
	if notes := s.voiceNotes(1); !bytes.Contains(notes[0].file.data, []byte("1+5 = 6.")) {
		t.Errorf("%.80q", notes[0].file.data)
	}
	bot.kill(syscall.SIGTERM)
}

// TestLongAnswersAreNotSpoken: an answer of more than a thousand characters, and one of code alone.
func TestLongAnswersAreNotSpoken(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	w.withSpeech()
	s := telegramChatIn(t, w, false)
	bot := s.start()
	s.say(0, "/voice on")
	s.one("I speak my answers here.")
	s.say(0, "Which tool groups are there?")
	s.one("Tool groups that I load")
	s.say(0, "1+1")
	s.one("1+1 =")
	s.voiceNotes(1)
	if spoken := w.model.Spoken(); len(spoken) != 1 {
		t.Errorf("spoken %+v", spoken)
	}
	bot.kill(syscall.SIGTERM)
}

// TestAKillDuringSpeech: the text arrived once and without a mark, the speech is paid and not made again, and
// later answers are spoken.
func TestAKillDuringSpeech(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	w.withSpeech()
	reached, free := make(chan struct{}), make(chan struct{})
	w.model.OnSpeech(func(openai.SpeechRequest) *openai.Error {
		close(reached)
		<-free
		return nil
	})
	s := telegramChatIn(t, w, false)
	bot := s.start()
	s.say(0, "/voice on")
	s.one("I speak my answers here.")
	s.say(0, "1+1")
	s.one("1+1 =")
	<-reached
	bot.kill(syscall.SIGKILL)
	close(free)
	w.model.OnSpeech(nil)
	bot = s.start()
	s.say(0, "1+2")
	s.one("1+2 =")
	if note := s.voiceNotes(1)[0]; !bytes.Contains(note.file.data, []byte("1+2 = 3.")) {
		t.Errorf("spoken %.80q", note.file.data)
	}
	s.say(0, "/usage")
	s.one("$0.000")
	all := s.until("an answer", func(all []shown) bool { return len(all) > 0 })
	texts := slices.DeleteFunc(all, func(m shown) bool { return !strings.Contains(m.text, "1+1 =") })
	if n := len(w.model.Spoken()); n != 2 || len(texts) != 1 || strings.Contains(texts[0].text, "repeat") {
		t.Errorf("spoken %d times, as text %+v", n, texts)
	}
	bot.kill(syscall.SIGTERM)
}

// TestRecordingsAreExportedAndForgotten: the recording that a person sent and its words are in their copy, and
// are gone when they are forgotten. What the bot said is kept as a text alone.
func TestRecordingsAreExportedAndForgotten(t *testing.T) {
	t.Parallel()
	onBothPlatforms(t, false, openai.Offline{}, func(s *botChat) {
		s.w.withSpeech()
		s.w.env["ONECLAW_ALLOW"] = "*"
		bot := s.start()
		s.speak(saying{text: "remember that my colour is heliotrope", voice: true})
		s.voiceNotes(1)
		s.say(0, s.sign+"voice on")
		s.one("I speak my answers here.")
		s.say(0, s.sign+"export")
		s.one("This is your data: 1 conversation and 1 file")
		var file []byte
		s.until("the copy", func(all []shown) bool {
			i := slices.IndexFunc(all, func(m shown) bool { return strings.HasSuffix(m.file.name, ".zip") })
			if i >= 0 {
				file = all[i].file.data
			}
			return i >= 0
		})
		s.holds(file, map[string]string{"files/": "heliotrope", "conversations/0001": "heliotrope", "choices.json": `"on"`})
		s.say(0, s.sign+"forget")
		card := s.card("Shall I forget you?")
		s.press(0, card, card.buttons["Forget me"], false)
		s.one("I have forgotten you")
		s.say(0, s.sign+"voice")
		s.one("I speak here when you do")
		bot.kill(syscall.SIGTERM)
		s.start().kill(syscall.SIGTERM) // which writes the file anew
		s.lacks(s.w.env["ONECLAW_DATA_DIR"], "heliotrope")
	})
}

// TestAChoiceOfAChannelHoldsInItsThreads: on Slack each answer is in a thread, so the choice of a channel or
// of a direct chat holds in threads that have none of their own.
func TestAChoiceOfAChannelHoldsInItsThreads(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	w.withSpeech()
	server, channel, people := w.withSlack(t, "Ann")
	install(t, server)
	dm, err := server.AddChannel(slack.ChannelSpec{Kind: slack.DM, Members: people})
	if err != nil {
		t.Fatal(err)
	}
	bot := start(t, w.env, "run")
	waitSlack(t, server, "socket", func(s slack.State) bool { return s.ActiveSockets() > 0 })
	shows := func(chat, text string) {
		t.Helper()
		waitSlack(t, server, text, func(s slack.State) bool {
			return slices.ContainsFunc(s.Answers(chat), func(m slack.Message) bool { return strings.Contains(m.Shown, text) })
		})
	}
	recordings := func(n int) {
		t.Helper()
		waitSlack(t, server, fmt.Sprint(n, " recordings"), func(s slack.State) bool {
			files := 0
			for _, m := range slices.Concat(s.Answers(channel), s.Answers(dm)) {
				files += len(m.Files)
			}
			return files == n
		})
	}
	if _, err := server.Command(channel, people[0], "/oneclaw", "voice on"); err != nil {
		t.Fatal(err)
	}
	shows(channel, "I speak my answers here.")
	mention := "<@" + server.BotUser() + "> "
	thread := sayTo(t, server, channel, people[0], mention+"1+1", "").TS
	recordings(1)
	sayTo(t, server, channel, people[0], mention+"!voice off", thread)
	shows(channel, "I don't speak here.")
	sayTo(t, server, channel, people[0], mention+"1+2", thread)
	shows(channel, "1+2 =")

	sayTo(t, server, dm, people[0], "!voice on", "") // in the agent view it begins a thread, as the next message does
	shows(dm, "I speak my answers here.")
	sayTo(t, server, dm, people[0], "1+3", "")
	recordings(2)
	bot.kill(syscall.SIGTERM)
	if n := len(w.model.Spoken()); n != 2 {
		t.Errorf("spoken %d times", n)
	}
}
