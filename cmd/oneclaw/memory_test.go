package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/storage"
	"oneclaw/toolgroups/memory"
)

// TestAPersonSeesAndForgetsWhatIsRemembered: /memory shows what is remembered, a button forgets it and
// another brings it back, once each, also if the bot is killed meanwhile.
func TestAPersonSeesAndForgetsWhatIsRemembered(t *testing.T) {
	t.Parallel()
	onBothEngines(t, openai.Offline{}, seeAndForget)
}

func seeAndForget(s *botChat) {
	s.w.env["ONECLAW_ALLOW"] = "*"
	// On Slack the answer to the command is quoted from the thread, which counts as words of others.
	s.w.settings("approvals: [{tool: save_memory, policy: allow}]\n")
	bot := s.start()
	s.say(0, s.sign+"memory")
	s.one("I remember nothing about you yet.")
	s.tell("remember that my cat is called Minka", "Noted: Your cat is called Minka.")
	s.tell("remember that I like tea", "Noted: You like tea.")
	s.say(0, s.sign+"memory")
	card := s.card("What I remember about you", "(2)", "I like tea", "my cat is called Minka")
	forget := card.buttons["✕ 2"]
	if got := s.press(0, card, forget, false)(); got != "Forgotten." {
		s.t.Errorf("the button says %q", got)
	}
	bot.kill(syscall.SIGKILL)
	bot = s.start()
	card = s.card("What I remember about you", "(1)", "Forgotten or replaced last: “my cat is called Minka”")
	told := ""
	for range 5 { // the kill may have the answer to the press before it repeated
		if told = s.press(0, card, forget, true)(); told != "Forgotten." {
			break
		}
	}
	if told != "This has just changed. Please look again." {
		s.t.Errorf("the old button says %q", told)
	}
	for range 5 { // the card may be shown anew after the kill, with new buttons
		card = s.card("What I remember about you", "(1)")
		if told = s.press(0, card, card.buttons["↩ Undo"], false)(); told == "It is back." {
			break
		}
	}
	if told != "It is back." {
		s.t.Errorf("undo says %q", told)
	}
	s.card("What I remember about you", "(2)")

	s.tell("forget that I like tea", "Forgotten: You like tea. ")
	s.tell("forget that my cat is called Minka", "Forgotten: Your cat is called Minka. ")
	s.tell("remember that my cat is called Luna", "Noted: Your cat is called Luna.")
	s.say(0, s.sign+"clear")
	s.one("cleared")
	s.tell("what do you remember about me?", "You told me:\n• my cat is called Luna", "You told me:\n- my cat is called Luna", "my cat is called Luna")
	s.say(0, s.sign+"memory")
	card = s.card("What I remember about you", "(1)", "my cat is called Luna", "Forgotten or replaced last: “my cat is called Minka”")
	if _, ok := card.buttons["↩ Undo"]; !ok || len(card.buttons) != 2 {
		s.t.Errorf("buttons %v", card.buttons)
	}
	bot.kill(syscall.SIGTERM)
}

// tell says a text and waits for an answer that holds one of the wanted texts.
func (s *botChat) tell(text string, want ...string) {
	s.t.Helper()
	s.say(0, text)
	s.until("answer to "+text, func(all []shown) bool {
		return slices.ContainsFunc(all, func(m shown) bool {
			return slices.ContainsFunc(want, func(w string) bool { return w != "" && strings.Contains(m.text, w) })
		})
	})
}

// TestTheMemoryOfAChatIsChangedByThoseWhoMay: in a shared chat a fact is forgotten by the person who had
// it saved and by administrators, and nobody else.
func TestTheMemoryOfAChatIsChangedByThoseWhoMay(t *testing.T) {
	t.Parallel()
	onBothPlatforms(t, true, openai.Offline{}, func(s *botChat) {
		s.w.env["ONECLAW_ALLOW"], s.w.env["ONECLAW_ADMINS"] = "*", s.users[2]
		s.start()
		s.tell("remember that the stand-up is at nine", "Noted: The stand-up is at nine.")
		s.say(1, s.sign+"memory")
		card := s.card("What I remember in this chat", "(1)", "the stand-up is at nine")
		const denied = "Only the person who had this saved, or an administrator, can do that."
		if got := s.press(1, card, card.buttons["✕ 1"], false)(); got != denied {
			s.t.Errorf("another member is told %q", got)
		}
		if got := s.press(0, card, card.buttons["✕ 1"], false)(); got != "Forgotten." {
			s.t.Errorf("the author is told %q", got)
		}
		card = s.card("I remember nothing in this chat yet.", "Forgotten or replaced last")
		if got := s.press(1, card, card.buttons["↩ Undo"], false)(); got != denied {
			s.t.Errorf("another member is told %q", got)
		}
		if got := s.press(2, card, card.buttons["↩ Undo"], false)(); got != "It is back." {
			s.t.Errorf("an administrator is told %q", got)
		}
		s.card("What I remember in this chat", "(1)")
	})
}

// callOfMemory is a message that asks scriptedMemory to call a tool.
var callOfMemory = regexp.MustCompile(`(save|update|forget)_memory (\{.*\})`)

// scriptedMemory calls the tools that messages name, loads their group first, and answers with the result.
// The word ENDLESS in arguments is longer than a fact may be.
func scriptedMemory(_ context.Context, req openai.Request) (openai.Reply, error) {
	last := req.Messages[len(req.Messages)-1]
	asked := ""
	for _, m := range req.Messages {
		if m.Role == "user" {
			asked = m.Content
		}
	}
	call := callOfMemory.FindStringSubmatch(asked)
	if last.Role == "user" || strings.HasPrefix(last.Content, "Loaded ") {
		return useTool(req, "memory", call[1]+"_memory", strings.ReplaceAll(call[2], "ENDLESS", strings.Repeat("ж", memory.MaxNoteLength+1)))
	}
	return openai.Reply{Text: "The tool says: " + last.Content}, nil
}

// TestFactsAreCorrectedAndForgottenByTools: update_memory and forget_memory through the bot, in both chats
// and on both engines. Bad input gets an error that says what to do, changes nothing and loses nothing, and
// what is changed outlives a kill.
func TestFactsAreCorrectedAndForgottenByTools(t *testing.T) {
	t.Parallel()
	onBothEngines(t, openai.ResponderFunc(scriptedMemory), correctAndForget)
}

func correctAndForget(s *botChat) {
	s.w.env["ONECLAW_ALLOW"] = "*"
	bot := s.start()
	s.tell(`save_memory {"content":"Lives in Leeds"}`, "Saved in Notes.")
	s.tell(`update_memory {"memory":"Lives in Leeds","content":"Lives in Bristol"}`, "Updated. It took the place of 'Lives in Leeds'.")
	s.tell(`update_memory {"memory":"Lives in Bristol","content":"ENDLESS"}`, "'content' must have 1 to 5000 characters.")
	s.tell(`save_memory {"content":"ENDLESS "}`, "Save a short note.")
	s.tell(`update_memory {"memory":"aaaaaaaa","content":"Lives in York"}`, "There is no such memory here.")
	bot.kill(syscall.SIGKILL)
	bot = s.start()
	s.say(0, s.sign+"memory")
	card := s.card("What I remember about you", "(1)", "Lives in Bristol", "Forgotten or replaced last: “Lives in Leeds”")
	if got := s.press(0, card, card.buttons["✕ 1"], false)(); got != "Forgotten." {
		s.t.Errorf("the button says %q", got)
	}
	s.tell(`forget_memory {"memory":"bbbbbbbb"}`, "Nothing is remembered here.")
	card = s.card("I remember nothing about you yet.", "Forgotten or replaced last: “Lives in Bristol”")
	if got := s.press(0, card, card.buttons["↩ Undo"], false)(); got != "It is back." {
		s.t.Errorf("undo says %q", got)
	}
	s.tell(`forget_memory {"memory":"lives in BRISTOL"}`, "Forgotten: 'Lives in Bristol'.")
	bot.kill(syscall.SIGKILL)
	bot = s.start()
	s.say(0, s.sign+"memory")
	s.card("I remember nothing about you yet.", "Forgotten or replaced last: “Lives in Bristol”")
	bot.kill(syscall.SIGTERM)
}

// TestToolsChangeNobodyElsesFacts: in a shared chat the tools change a fact for the person who had it saved
// and for administrators.
func TestToolsChangeNobodyElsesFacts(t *testing.T) {
	t.Parallel()
	onBothPlatforms(t, true, openai.ResponderFunc(scriptedMemory), func(s *botChat) {
		s.w.env["ONECLAW_ALLOW"], s.w.env["ONECLAW_ADMINS"] = "*", s.users[2]
		// What another member had saved makes changes of what is remembered ask.
		s.w.settings("approvals: [{tool: update_memory, policy: allow}, {tool: forget_memory, policy: allow}]\n")
		s.start()
		s.tell(`save_memory {"content":"Lunch is at noon"}`, "Saved in Notes.")
		denied := func(call string) {
			s.t.Helper()
			count := func(all []shown) (n int) {
				for _, m := range all {
					n += strings.Count(m.text, "Nothing was changed: in a shared chat only the person who had it saved")
				}
				return n
			}
			before := 0
			s.until("look", func(all []shown) bool { before = count(all); return true })
			s.say(1, call)
			s.until("refusal of "+call, func(all []shown) bool { return count(all) > before })
		}
		denied(`forget_memory {"memory":"Lunch is at noon"}`)
		denied(`update_memory {"memory":"Lunch is at noon","content":"Lunch is off"}`)
		s.say(2, `update_memory {"memory":"Lunch is at noon","content":"Lunch is at one"}`)
		s.one("Updated. It took the place of 'Lunch is at noon'.")
		s.tell(`forget_memory {"memory":"Lunch is at one"}`, "Forgotten: 'Lunch is at one'.")
	})
}

// isFact says for which messages of the kill tests the model saves a fact.
func isFact(message int) bool { return message%6 == 3 }

// factCalls begins the ids of the calls that save facts.
const factCalls = "fact_"

func factOf(message string) string { return "Pebble " + message }

// remembering is a model like repeating that saves a fact for some messages. The answer ends with "noted N"
// for each fact that it was told is saved.
func remembering(ctx context.Context, req openai.Request) (openai.Reply, error) {
	n, ok := numberOf(strings.Join(unanswered(req), joined))
	if ok && isFact(n) && req.Messages[len(req.Messages)-1].Role == "user" {
		number := strconv.Itoa(n)
		return openai.Reply{Calls: []openai.ToolCall{{ID: factCalls + number, Name: "save_memory", Arguments: fmt.Sprintf(`{"content":%q}`, factOf(number))}}}, nil
	}
	reply, err := repeating(ctx, req)
	noted := ""
	for _, m := range req.Messages {
		if m.Role == "assistant" && len(m.ToolCalls) == 0 {
			noted = ""
		}
		if number, own := strings.CutPrefix(m.ToolCallID, factCalls); own && strings.HasPrefix(m.Content, "Saved in") {
			noted += joined + "noted " + number
		}
	}
	if ok && len(reply.Calls) == 0 {
		reply.Text += noted
	}
	return reply, err
}

// checkFacts checks that a person's memory has each fact that an answer calls noted, and each once.
func checkFacts(t *testing.T, store storage.KV, who int64, answers []string) (noted int) {
	t.Helper()
	entry, err := store.Get(t.Context(), fmt.Sprint("memory/telegram:", who))
	if err != nil {
		t.Error(err)
		return 0
	}
	var saved struct {
		Notes []struct{ Text string }
	}
	if err := json.Unmarshal(entry.Value, &saved); err != nil {
		t.Error(err)
	}
	count := map[string]int{}
	for _, n := range saved.Notes {
		if count[n.Text]++; count[n.Text] > 1 {
			t.Errorf("%d remembers %q twice", who, n.Text)
		}
	}
	for _, answer := range answers {
		all, _, _ := saidIn(answer)
		for _, text := range all {
			number, ok := strings.CutPrefix(text, "noted ")
			if ok && count[factOf(number)] == 0 {
				t.Errorf("%d was told %q, but remembers %v", who, text, saved.Notes)
			}
			if ok {
				noted++
			}
		}
	}
	return noted
}
