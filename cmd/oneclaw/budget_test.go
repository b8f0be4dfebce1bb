package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneclaw/internal/config"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

// newest is the newest message of the bot in a private chat.
func (w *harness) newest(who int64) telegram.Message {
	w.t.Helper()
	var m telegram.Message
	w.telegram.View(func(s telegram.State) {
		if all := s.Answers(who); len(all) > 0 {
			m = all[len(all)-1]
		}
	})
	return m
}

// tap presses a button of the newest message in a private chat, twice where a delivery is
// repeated, and returns what the person is told.
func (w *harness) tap(p *process, who int64, label string) string {
	w.t.Helper()
	m := w.newest(who)
	for _, row := range m.Buttons {
		for _, b := range row {
			if b.Text != label {
				continue
			}
			sent, err := w.telegram.Press(who, m.ID, who, b.CallbackData)
			if err != nil {
				w.t.Fatal(err)
			}
			toast := ""
			w.until(p, "answer to the press of "+label, func(s telegram.State) bool {
				c, ok := s.Callback(sent.Callback)
				toast = c.Text
				return ok && c.Answered
			})
			return toast
		}
	}
	w.t.Fatalf("no button %q under %q: %v", label, m.Text, m.Buttons)
	return ""
}

// shows waits until the newest message in a private chat has a text, and returns it.
func (w *harness) shows(p *process, who int64, part string) string {
	w.t.Helper()
	text := ""
	w.until(p, fmt.Sprintf("a message with %q", part), func(s telegram.State) bool {
		all := s.Answers(who)
		if len(all) == 0 {
			return false
		}
		text = all[len(all)-1].Text
		return strings.Contains(text, part)
	})
	return text
}

// TestBudgetIsUsedUpAndRaised: the budget of a user is used up, they are told so and
// ask an administrator, who raises it; then they are answered. All of it outlives restarts.
func TestBudgetIsUsedUpAndRaised(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann, bob := w.person("Ann"), w.person("Bob")
	w.env["ONECLAW_ADMINS"] = fmt.Sprint("telegram:", bob)
	settings := "budget:\n  user_usd: 0.50\nprices:\n  " + openai.DefaultModel + ": {input: 100, cached_input: 100, output: 1000}\n"
	if err := os.WriteFile(filepath.Join(w.env["ONECLAW_DATA_DIR"], config.ConfigName), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	bot := w.run()
	wantIn(t, w.ask(bot, bob, "hello", nil), "I am OneClaw")
	refused := ""
	for range 20 {
		if refused = w.ask(bot, ann, "hello", nil); strings.Contains(refused, "Today's budget") {
			break
		}
	}
	wantIn(t, refused, "Today's budget is used up: you have used $0.", "of $0.50. It is free again at 00:00", "An administrator can raise it.")
	if strings.Contains(refused, "Incident") {
		t.Errorf("a refusal is an incident: %q", refused)
	}
	wantIn(t, w.ask(bot, ann, "/usage", nil), "you: ", " tokens in 2 calls", "of $0.50 ($0.00 left)", "This chat since it began: ", "were saved")
	wantIn(t, w.ask(bot, bob, "/usage", nil), "everybody this month: ", "tokens in 3 calls")
	asked := w.model.Count()
	bot.kill(syscall.SIGTERM)
	bot = w.run()
	wantIn(t, w.ask(bot, ann, "are you sure?", nil), "Today's budget is used up")
	wantIn(t, w.tap(bot, ann, "Raise by $0.50 for today"), "Only an administrator")
	wantIn(t, w.tap(bot, ann, "Ask an administrator"), "Asked.")
	w.shows(bot, ann, "I have asked an administrator")
	if w.model.Count() != asked {
		t.Errorf("the model was asked %d times without a budget", w.model.Count()-asked)
	}
	plea := w.shows(bot, bob, "asks for more budget")
	wantIn(t, plea, "Ann", fmt.Sprint("telegram:", ann), "Used by them: $0.")
	wantIn(t, w.tap(bot, bob, "Raise by $0.50 for today"), "Raised.")
	w.shows(bot, bob, "The budget was raised to $1.00 for today. I have told them.")
	w.shows(bot, ann, "The budget was raised to $1.00 for today. Please send your message again.")
	bot.kill(syscall.SIGTERM)
	bot = w.run()
	wantIn(t, w.ask(bot, ann, "hello", nil), "not by an AI")
	bot.kill(syscall.SIGTERM)
	w.did(fmt.Sprintf("raise a budget: telegram:%d Bob in telegram:%[1]d: telegram:%d", bob, ann))
}

// TestCrashWhileTheModelThinks: a call that kill -9 cut off holds no budget afterwards.
func TestCrashWhileTheModelThinks(t *testing.T) {
	t.Parallel()
	began := make(chan struct{}, 10)
	hang := true
	w := newHarness(t, openai.ResponderFunc(func(ctx context.Context, _ openai.Request) (openai.Reply, error) {
		began <- struct{}{}
		if hang {
			hang = false
			<-ctx.Done()
			return openai.Reply{}, ctx.Err()
		}
		return openai.Reply{Text: "here I am"}, nil
	}))
	w.env["ONECLAW_BUDGET_USER_TOKENS"] = "1"
	ann := w.person("Ann")
	bot := w.run()
	w.say(ann, "hello", nil)
	<-began
	bot.kill(syscall.SIGKILL)
	bot = w.run()
	w.shows(bot, ann, "here I am")
	wantIn(t, w.ask(bot, ann, "again", nil), "Today's budget is used up: you have used ", " of 1 tokens.")
}

// TestAForwardJoinsItsCommentAndBothCallsAreCharged: Telegram gives a comment before what it is
// about. The model is asked anew with both, and the call that was broken off counts.
func TestAForwardJoinsItsCommentAndBothCallsAreCharged(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 30)
	w := newHarness(t, openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		last := req.Messages[len(req.Messages)-1].Content
		asked <- last
		if !strings.Contains(last, "> Guten Tag") {
			select {
			case <-ctx.Done():
				return openai.Reply{}, ctx.Err()
			case <-time.After(10 * time.Second): // what comes after that joins nothing
				return openai.Reply{Text: "this"}, nil
			}
		}
		return openai.Reply{Text: "Good day"}, nil
	}))
	w.env["ONECLAW_STEERING"], w.env["ONECLAW_BUDGET_USER_TOKENS"] = "true", "1000000"
	bob := w.person("Bob")
	bot := w.run()
	for n := range 5 {
		ann := w.person(fmt.Sprint("Ann", n))
		w.say(ann, "what does this mean?", nil)
		<-asked
		if _, err := w.telegram.Say(ann, ann, "Guten Tag", &telegram.SayOptions{References: telegram.References{Forward: &telegram.Origin{Kind: telegram.OriginUser, User: bob}}}); err != nil {
			t.Fatal(err)
		}
		w.shows(bot, ann, "Good day")
		joined := <-asked
		if len(w.answers(ann)) > 1 {
			continue // a busy machine has brought the forward too late
		}
		wantIn(t, joined, "what does this mean?", "> Guten Tag")
		wantIn(t, w.ask(bot, ann, "/usage", nil), " tokens in 2 calls")
		bot.kill(syscall.SIGTERM)
		if got := w.answers(ann); len(got) != 2 {
			t.Errorf("answers: %q", got)
		}
		return
	}
	t.Error("a forward never joins its comment")
}
