package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
)

// shown is a message of the bot as people see it.
type shown struct {
	id, text string
	// buttons are the data of the buttons by label.
	buttons map[string]string
	// file is what came with it, by its name.
	file struct {
		name string
		data []byte
	}
}

// stage is a chat with the bot on either platform, direct with the first person or
// shared by all.
type stage struct {
	t *testing.T
	w *harness
	// users are the people as the bot names them.
	users []string
	// sign is what commands begin with.
	sign  string
	start func() *process
	say   func(who int, text string)
	// speak has a person send a voice note, where the chat is direct.
	speak func(who int, sound []byte)
	// react has a person react to a message with 👍 or 👎.
	react func(who int, on shown, good bool)
	// seen waits until so many messages of people bear 👀.
	seen func(n int)
	// session waits until the platform shows this of the conversation, where it shows anything.
	session func(status string)
	// until returns what the bot has written, without what one person alone sees, once it
	// is as it should be.
	until func(what string, cond func([]shown) bool) []shown
	// press has a person press a button; the returned function waits for the toast.
	// Forged, nothing with this data has to be there.
	press func(who int, on shown, data string, forged bool) (toast func() string)
}

// onBothPlatforms runs a test in a chat of each platform.
func onBothPlatforms(t *testing.T, shared bool, brain openai.Responder, test func(*stage)) {
	t.Helper()
	t.Run("telegram", func(t *testing.T) { test(telegramStage(t, shared, brain)) })
	t.Run("slack", func(t *testing.T) { test(slackStage(t, shared, brain)) })
}

func telegramStage(t *testing.T, shared bool, brain openai.Responder) *stage {
	return telegramStageIn(t, newTown(t, brain), shared)
}

func telegramStageIn(t *testing.T, w *harness, shared bool) *stage {
	people := []int64{w.person("Ann"), w.person("Bob"), w.person("Zoe")}
	chat := people[0]
	mention := ""
	if shared {
		group, err := w.telegram.AddChat(telegram.ChatSpec{Kind: telegram.Supergroup, Title: "Team", User: people[0], Members: people[1:]})
		if err != nil {
			t.Fatal(err)
		}
		chat, mention = group, "@"+w.telegram.Bot().Username+" "
	}
	s := &stage{t: t, w: w, sign: "/", start: w.run, session: func(string) {}}
	for _, id := range people {
		s.users = append(s.users, fmt.Sprint("telegram:", id))
	}
	s.say = func(who int, text string) {
		if _, err := w.telegram.Say(chat, people[who], mention+text, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.speak = func(who int, sound []byte) {
		w.say(people[who], "", &telegram.Attachment{Kind: telegram.KindVoice, MIME: "audio/ogg", Data: sound, Seconds: 2})
	}
	s.react = func(who int, on shown, good bool) {
		id, err := strconv.ParseInt(on.id, 10, 64)
		emoji := map[bool]string{true: "👍", false: "👎"}[good]
		if err == nil {
			_, err = w.telegram.React(chat, id, people[who], emoji)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.seen = func(n int) {
		w.until(nil, "signs", func(s telegram.State) bool {
			signs := 0
			for _, m := range s.Messages(chat) {
				signs += len(m.Reactions)
			}
			return signs == n
		})
	}
	s.until = func(what string, cond func([]shown) bool) (all []shown) {
		w.until(nil, what, func(s telegram.State) bool {
			all = nil
			for _, m := range s.Answers(chat) {
				one := shown{id: fmt.Sprint(m.ID), text: m.Text, buttons: map[string]string{}}
				for _, b := range slices.Concat(m.Buttons...) {
					one.buttons[b.Text] = b.CallbackData
				}
				if m.File != nil {
					one.file.name, one.file.data = m.File.Name, m.File.Data
				}
				all = append(all, one)
			}
			return cond(all)
		})
		return all
	}
	s.press = func(who int, on shown, data string, forged bool) func() string {
		id, err := strconv.ParseInt(on.id, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sent, err := w.telegram.Press(chat, id, people[who], data, forged)
		if err != nil {
			t.Fatal(err)
		}
		return func() (text string) {
			w.until(nil, "answer to the press", func(s telegram.State) bool {
				c, _ := s.Callback(sent.Callback)
				text = c.Text
				return c.Answered
			})
			return text
		}
	}
	return s
}

func slackStage(t *testing.T, shared bool, brain openai.Responder) *stage {
	return slackStageIn(t, newTown(t, brain), shared)
}

func slackStageIn(t *testing.T, w *harness, shared bool) *stage {
	server, chat, people := w.withSlack(t, "Ann", "Bob", "Zoe")
	install(t, server)
	mention := "<@" + server.BotUser() + "> "
	if !shared {
		dm, err := server.AddChannel(slack.ChannelSpec{Kind: slack.DM, Members: people[:1]})
		if err != nil {
			t.Fatal(err)
		}
		chat, mention = dm, ""
	}
	s := &stage{t: t, w: w, sign: "!", start: func() *process {
		before := 0
		server.View(func(s slack.State) { before = s.OpenedSockets() })
		p := start(t, w.env, "run")
		waitSlack(t, server, "socket", func(s slack.State) bool { return s.OpenedSockets() > before && s.ActiveSockets() > 0 })
		return p
	}}
	for _, id := range people {
		s.users = append(s.users, "slack:"+id)
	}
	thread := ""
	s.say = func(who int, text string) {
		sent := sayTo(t, server, chat, people[who], mention+text, thread)
		if thread == "" {
			thread = sent.TS // the conversation is the thread, also in a direct chat
		}
	}
	s.session = func(status string) {
		waitSlack(t, server, "session that is "+status, func(s slack.State) bool { return s.Session(chat, thread) == status })
	}
	s.speak = func(who int, sound []byte) {
		clip := slack.Attachment{Name: "audio_message.webm", MIME: "audio/webm", Data: sound, ClipSeconds: 2}
		sent, err := server.Say(chat, people[who], "", &slack.SayOptions{Thread: thread, Files: []slack.Attachment{clip}})
		if err != nil {
			t.Fatal(err)
		}
		if thread == "" {
			thread = sent.TS
		}
	}
	s.react = func(who int, on shown, good bool) {
		name := map[bool]string{true: "+1", false: "-1"}[good]
		if _, err := server.React(chat, on.id, people[who], name, false); err != nil {
			t.Fatal(err)
		}
	}
	s.seen = func(n int) {
		waitSlack(t, server, "signs", func(s slack.State) bool {
			signs := 0
			for _, m := range s.Messages(chat) {
				signs += len(m.Reactions)
			}
			return signs == n
		})
	}
	s.until = func(what string, cond func([]shown) bool) (all []shown) {
		waitSlack(t, server, what, func(s slack.State) bool {
			all = nil
			for _, m := range s.Answers(chat) {
				if m.Ephemeral != "" {
					continue
				}
				one := shown{id: m.TS, text: m.Shown, buttons: map[string]string{}}
				for _, b := range slices.Concat(m.Buttons...) {
					one.buttons[b.Label] = b.Value
				}
				for _, f := range m.Files {
					one.file.name, one.file.data = f.Name, f.Data
				}
				all = append(all, one)
			}
			return cond(all)
		})
		return all
	}
	s.press = func(who int, on shown, data string, forged bool) func() string {
		told := func(s slack.State) (texts []string) {
			for _, m := range s.Messages(chat) {
				if m.Ephemeral == people[who] {
					texts = append(texts, m.Shown)
				}
			}
			return texts
		}
		before := 0
		server.View(func(s slack.State) { before = len(told(s)) })
		if _, err := server.Press(chat, on.id, people[who], data, forged); err != nil {
			t.Fatal(err)
		}
		return func() (text string) {
			waitSlack(t, server, "answer to the press", func(s slack.State) bool {
				all := told(s)
				if len(all) > before {
					text = all[before]
				}
				return len(all) > before
			})
			return text
		}
	}
	return s
}

// why asks what became of the last message until the answer holds a text.
func (s *stage) why(want string) {
	s.t.Helper()
	for range 50 {
		before := 0
		s.until("look", func(all []shown) bool { before = len(all); return true })
		s.say(0, s.sign+"why")
		if all := s.until("answer to /why", func(all []shown) bool { return len(all) > before }); strings.Contains(all[before].text, want) {
			return
		}
	}
	s.t.Errorf("/why never told %q", want)
}

// one waits for a message that holds all these texts and returns it as it then is.
func (s *stage) one(texts ...string) (found shown) {
	s.t.Helper()
	s.until(fmt.Sprintf("message with %q", texts), func(all []shown) bool {
		i := slices.IndexFunc(all, func(m shown) bool {
			return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(m.text, text) })
		})
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}

// card waits for a message with these texts that has buttons.
func (s *stage) card(texts ...string) (found shown) {
	s.t.Helper()
	s.until(fmt.Sprintf("card with %q", texts), func(all []shown) bool {
		i := slices.IndexFunc(all, func(m shown) bool {
			return len(m.buttons) > 0 && !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(m.text, text) })
		})
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}
