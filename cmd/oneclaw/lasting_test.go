package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/storage"
)

// lastingRules let people allow for longer what the model of the kill tests does most often. A
// webhook, which never can, does it unasked.
const lastingRules = "\n- {tool: get_current_time, policy: ask, lasting: true}\n- {tool: get_current_time, chat: scheduled, policy: allow}\n" +
	"- {tool: save_memory, policy: allow}\n- {tool: start_background_task, policy: allow}\n" // which ask behind the result of a task

const (
	clockCard   = "May I run get_current_time?"
	lastsLabel  = "Allow here until /clear"
	lastsLabelS = "Allow here until !clear"
)

// isCard reports whether a text of the bot is the question whether it may look at the clock.
func isCard(text string) bool { return strings.Contains(strings.ReplaceAll(text, "`", ""), clockCard) }

// withoutCards returns the texts that are no such questions, no notices that a result waits for the answer,
// no lines about background tasks and facts and no answers to /clear.
func withoutCards(texts []string) []string {
	return slices.DeleteFunc(texts, func(text string) bool {
		return isCard(text) || isCleared(text) || strings.Contains(text, "I am waiting for the decision above.") || strings.Contains(text, "I remember from now on") ||
			strings.Contains(text, " while I used “") || slices.Contains([]string{"⏳", "✔", "✖", "⏹"}, strings.Fields(text + " .")[0])
	})
}

// isCleared reports whether a text answers a /clear.
func isCleared(text string) bool { return strings.Contains(text, "Conversation cleared") }

// allowClocks presses, for everybody in a direct chat on Telegram, the button that lets the bot look
// at the clock for longer.
func (w *harness) allowClocks(people []int64) {
	w.t.Helper()
	for _, who := range people {
		var card telegram.Message
		w.until(nil, "question about the clock", func(s telegram.State) bool {
			for _, m := range s.Answers(who) {
				if isCard(m.Text) && len(m.Buttons) > 0 || isCleared(m.Text) { // a copy from before may have buttons
					card = m
				}
			}
			return isCard(card.Text)
		})
		for _, b := range slices.Concat(card.Buttons...) {
			if b.Text != lastsLabel {
				continue
			}
			if _, err := w.telegram.Press(who, card.ID, who, b.CallbackData, false); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// allowClockIn is allowClocks for a thread of Slack.
func allowClockIn(t *testing.T, server *slack.Server, channel, root, who string) {
	t.Helper()
	var card slack.Message
	waitSlack(t, server, "question about the clock", func(s slack.State) bool {
		for _, m := range s.Thread(channel, root) {
			if m.FromBot && (isCard(m.Text) && len(m.Buttons) > 0 || isCleared(m.Text)) {
				card = m
			}
		}
		return isCard(card.Text)
	})
	for _, b := range slices.Concat(card.Buttons...) {
		if b.Label != lastsLabelS {
			continue
		}
		if _, err := server.Press(channel, card.TS, who, b.Value, true); err != nil { // the answer may come first
			t.Fatal(err)
		}
	}
}

// checkLasting checks that so many conversations asked once each, and once more after a /clear, and that
// each has its approval.
func checkLasting(t complainer, conversations int, store storage.KV) {
	t.Helper()
	asked, all, allowed := 0, 0, 0
	for prefix, count := range map[string]func([]byte){
		receipts.Prefix: func(data []byte) {
			var r receipts.Receipt
			if err := json.Unmarshal(data, &r); err != nil {
				t.Errorf("%v", err)
			}
			asked += len(r.Turn.Approvals)
		},
		"allowed/": func([]byte) { all++ },
		"audit/": func(data []byte) {
			if bytes.Contains(data, []byte(`"allow calls until clear"`)) {
				allowed++
			}
		},
	} {
		for entry, err := range store.List(context.Background(), storage.Range{Prefix: prefix}) {
			if err != nil {
				t.Errorf("%v", err)
				continue
			}
			count(entry.Value)
		}
	}
	if asked != 2*conversations || all != conversations || allowed != 2*conversations {
		t.Errorf("%d conversations asked %d times, %d approvals last, and the audit has %d", conversations, asked, all, allowed)
	}
}

// onBothEngines runs a test in a direct chat of each platform, and with each engine: what is said does not
// depend on both at once.
func onBothEngines(t *testing.T, brain openai.Responder, test func(*botChat)) {
	t.Helper()
	t.Run("bolt", func(t *testing.T) {
		t.Parallel()
		test(telegramChat(t, false, brain))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		w := newHarness(t, brain)
		w.onServer(t)
		test(slackChatIn(t, w, false))
	})
}

// A command that its user has allowed until /clear runs without a question, also after a kill, until
// the user ends that in /approvals or clears the conversation.
func TestACommandIsAllowedUntilClear(t *testing.T) {
	t.Parallel()
	onBothEngines(t, doing("exec", counting), func(s *botChat) {
		t := s.t
		label := strings.ReplaceAll(lastsLabel, "/", s.sign)
		nth := func(text string, n int) {
			t.Helper()
			s.until(fmt.Sprint(text, " ", n), func(all []shown) bool {
				got := 0
				for i, m := range thoseWith(all, text) {
					if i == 0 || !strings.Contains(m.text, chats.RepeatNotice) { // the kill makes one come twice
						got++
					}
				}
				return got >= n
			})
		}
		// The kill may leave a copy of the first card, whose buttons do nothing.
		asked := func() (card shown) {
			t.Helper()
			s.until("card below everything", func(all []shown) bool {
				card = all[len(all)-1]
				return strings.Contains(card.text, "May I run") && len(card.buttons) > 0
			})
			return card
		}
		bot := s.start()
		s.say(0, "do it")
		card := s.card("May I run this command?", "“"+label+"” also lets me run exactly this command again", s.sign+"approvals ends that.")
		if got := s.press(0, card, card.buttons[label], false)(); got != "Allowed here until "+s.sign+"clear." {
			t.Errorf("toast %q", got)
		}
		bot.kill(syscall.SIGKILL)
		s.start()
		nth("Then:", 1)
		s.one("May I run", "Allowed here until "+s.sign+"clear")
		s.say(0, "do it")
		nth("Then:", 2)
		s.say(0, s.sign+"approvals")
		list := s.card("You have allowed this here", "echo once")
		s.press(0, list, list.buttons["✕ 1"], false)
		s.one("I ask each time here again.")
		s.say(0, "do it")
		again := asked()
		s.press(0, again, again.buttons[label], false)
		nth("Then:", 3)
		s.say(0, "do it")
		nth("Then:", 4)
		s.say(0, s.sign+"clear")
		s.one("Conversation cleared")
		s.say(0, "do it")
		asked()
		// The kill may have met the first run.
		if n := s.w.runs(); n != 4 && n != 3 {
			t.Errorf("it ran %d times", n)
		}
	})
}

// thoseWith returns the messages that have a text.
func thoseWith(all []shown, text string) []shown {
	return slices.DeleteFunc(slices.Clone(all), func(m shown) bool { return !strings.Contains(m.text, text) })
}

// What a person has allowed for longer is in their export.
func TestLastingApprovalsAreExported(t *testing.T) {
	t.Parallel()
	w := newHarness(t, doing("exec", counting))
	s := telegramChatIn(t, w, false)
	s.start()
	s.say(0, "do it")
	card := s.card("May I run")
	s.press(0, card, card.buttons[lastsLabel], false)
	s.one("Then:", "it has run")
	s.say(0, "/export")
	var file shown
	s.until("export", func(all []shown) bool {
		i := slices.IndexFunc(all, func(m shown) bool { return m.file.name != "" })
		if i >= 0 {
			file = all[i]
		}
		return i >= 0
	})
	s.holds(file.file.data, map[string]string{"approvals.json": "echo once"})
}
