package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

// waitedNotice stands above the first answer to what seems to have waited.
var waitedNotice = regexp.MustCompile(`^I was away: this waited for [a-z0-9 ]+\.\n\n`)

// TestTrialClockJumpsInAFlood sets the clock of the running program an hour forward, an
// hour back and a day back while messages come in, and kills it where the clock is wrong.
// Nothing is lost, nothing comes twice, each chat keeps its order.
func TestTrialClockJumpsInAFlood(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(repeating))
	clock := newOffClock(t, w)
	var people []int64
	for n := range 6 {
		people = append(people, w.person(fmt.Sprint("person ", n)))
	}
	said, found := 0, 0
	say := func() {
		for range 2 {
			said++
			for _, who := range people {
				w.say(who, fmt.Sprint("message ", said), nil)
			}
		}
	}
	bot := w.run()
	for n, off := range []time.Duration{time.Hour, 0, -time.Hour, -24 * time.Hour, 0, 24 * time.Hour, 0} {
		say()
		clock.jump(off)
		say()
		// What is said last is on its way when the clock is set next.
		w.until(bot, "answers", func(s telegram.State) bool { return s.CountAnswers(0) >= len(people)*(said-1) })
		if n%3 == 2 {
			bot.kill(syscall.SIGKILL)
			found += w.sending()
			bot = w.run()
		}
	}
	last := fmt.Sprint("re: message ", said)
	w.until(bot, "answer to everything", func(s telegram.State) bool {
		for _, who := range people {
			answers := s.Answers(who)
			if len(answers) == 0 || !strings.Contains(answers[len(answers)-1].Text, last) {
				return false
			}
		}
		return true
	})
	bot.kill(syscall.SIGTERM)
	marks, notices := 0, 0
	for _, who := range people {
		answers := w.answers(who)
		for n, text := range answers {
			if answers[n] = waitedNotice.ReplaceAllString(text, ""); answers[n] != text {
				notices++
			}
		}
		marks += checkFlood(t, answers, said)
	}
	if marks > found || notices == 0 || notices > 4*len(people) {
		t.Errorf("%d answers are marked as possible repeats, %d were found while they were sent, %d say that they waited", marks, found, notices)
	}
	t.Logf("%d messages, %d effects, %d marks, %d say that they waited", said*len(people), w.effects(t), marks, notices)
}

// TestTrialClockBehindAClear clears a conversation while the clock is ahead. What is said
// when it is right again, and after a kill, is answered in the new conversation.
func TestTrialClockBehindAClear(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(repeating))
	clock := newOffClock(t, w)
	ann := w.person("Ann")
	bot := w.run()
	check := func(n int) {
		t.Helper()
		text := fmt.Sprint("message ", n)
		got := w.ask(bot, ann, text, nil)
		if strings.Contains(got, chats.RepeatNotice) {
			// The kill came before the receipt of the answer: that comes once more.
			before := 0
			w.telegram.View(func(s telegram.State) { before = len(s.Answers(ann)) })
			w.until(bot, "answer to "+text, func(s telegram.State) bool {
				all := s.Answers(ann)
				got = all[len(all)-1].Text
				return len(all) > before || !strings.Contains(got, chats.RepeatNotice)
			})
		}
		if got = waitedNotice.ReplaceAllString(got, ""); got != "re: "+text {
			t.Errorf("%q is answered with %q", text, got)
		}
	}
	check(1)
	clock.jump(25 * time.Hour)
	check(2)
	w.ask(bot, ann, "/clear", nil)
	clock.jump(0)
	check(4)
	bot.kill(syscall.SIGKILL)
	bot = w.run()
	check(7)
	clock.jump(-24 * time.Hour)
	check(8)
	w.ask(bot, ann, "/clear", nil)
	check(11)
	requests := w.model.Requests()
	var seen []string
	for _, m := range requests[len(requests)-1].Messages {
		if m.Role == "user" {
			seen = append(seen, m.Content)
		}
	}
	if fmt.Sprint(seen) != "[message 11]" {
		t.Errorf("after the second /clear the model is shown %q", seen)
	}
}

// TestTrialClockRingsTasksOnce has a task for once and one for every day in half an hour,
// and sets the clock over that time and back. Then many are due at once, and the program is
// killed while they ring: none is lost, and none rings twice but where a kill found its
// answer in the middle of its sending.
func TestTrialClockRingsTasksOnce(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		last := req.Messages[len(req.Messages)-1]
		if _, rest, ok := strings.Cut(last.Content, "RING "); ok && last.Role == "user" && !strings.HasPrefix(last.Content, "schedule_task") {
			name, _, _ := strings.Cut(rest, "\n")
			return openai.Reply{Text: "rang: " + name}, nil
		}
		return calling(ctx, req)
	}))
	clock := newOffClock(t, w)
	now := time.Now().UTC()
	behind := now.Hour() - 11 // it is eleven there, so that no jump but those of a day crosses midnight
	w.env["ONECLAW_TIMEZONE"], w.env["ONECLAW_ROUTING"] = fmt.Sprintf("Etc/GMT%+d", behind), "all"
	due := now.Add(-time.Duration(behind) * time.Hour).Add(30 * time.Minute)
	ann := w.person("Ann")
	bot := w.run()
	plan := func(name, kind string, at time.Time) {
		t.Helper()
		data, err := json.Marshal(map[string]any{
			"name": name, "prompt": "RING " + name, "schedule_type": kind, "hour": at.Hour(), "minute": at.Minute(), "date": at.Format("2006-01-02"),
			"cron": fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour()),
		})
		if err != nil {
			t.Fatal(err)
		}
		w.say(ann, "schedule_task "+string(data), nil)
		w.until(bot, "answer to the plan of "+name, func(s telegram.State) bool {
			return slices.ContainsFunc(s.Answers(ann), func(m telegram.Message) bool { return strings.Contains(m.Text, "Scheduled '"+name+"'") })
		})
	}
	far := 0
	// awake plans something far away: a changed plan has all looked through at once.
	awake := func() {
		t.Helper()
		far++
		plan(fmt.Sprint("far", far), "one_time", due.Add(30*24*time.Hour))
	}
	rang := func(s telegram.State, name string) (n int) {
		for _, m := range s.Answers(ann) {
			n += strings.Count(m.Text, "rang: "+name)
		}
		return n
	}
	wait := func(once, daily int) {
		t.Helper()
		w.until(bot, fmt.Sprintf("%d rings of once and %d of daily", once, daily), func(s telegram.State) bool {
			return rang(s, "once") >= once && rang(s, "daily") >= daily && rang(s, "cron") >= daily
		})
	}
	plan("once", "one_time", due)
	plan("daily", "daily", due)
	plan("cron", "cron", due)
	awake()
	clock.jump(time.Hour)
	awake()
	wait(1, 1)
	clock.jump(0)
	awake()
	clock.jump(-24 * time.Hour)
	awake()
	bot.kill(syscall.SIGKILL)
	bot = w.run()
	awake()
	clock.jump(0)
	awake()
	clock.jump(25 * time.Hour)
	awake()
	wait(1, 2)
	clock.jump(0)
	awake()
	w.telegram.View(func(s telegram.State) {
		if once, daily, cron := rang(s, "once"), rang(s, "daily"), rang(s, "cron"); once != 1 || daily != 2 || cron != 2 {
			t.Errorf("once rang %d times, daily %d times and cron %d times on two days", once, daily, cron)
		}
	})
	const many = 9
	for n := range many {
		plan(fmt.Sprint("kill", n), "one_time", due.Add(time.Hour))
	}
	clock.jump(2 * time.Hour)
	awake()
	found := 0
	for _, answers := range []int{1, 4, 7} {
		w.until(bot, "rings before a kill", func(s telegram.State) bool { return rang(s, "kill") >= answers })
		bot.kill(syscall.SIGKILL)
		found += w.sending()
		bot = w.run()
	}
	w.until(bot, "every ring", func(s telegram.State) bool {
		for n := range many {
			if rang(s, fmt.Sprint("kill", n)) == 0 {
				return false
			}
		}
		return true
	})
	bot.kill(syscall.SIGTERM)
	w.telegram.View(func(s telegram.State) {
		if n := rang(s, "kill"); n > many+found {
			t.Errorf("%d tasks rang %d times, and the kills found %d in the middle of their sending", many, n, found)
		}
	})
}

// TestTrialClockAndWhatExpires sets the clock over the time of a claim and of a card, and
// back while a card is open.
func TestTrialClockAndWhatExpires(t *testing.T) {
	t.Parallel()
	w := newHarness(t, doing("exec", counting))
	clock := newOffClock(t, w)
	delete(w.env, "ONECLAW_ALLOW")
	s := telegramChatIn(t, w, false)
	bot := s.start()
	_, code := offered(t, bot)
	clock.jump(61 * time.Minute)
	s.say(0, "/claim "+code)
	s.one("the code is no longer valid")
	out, err := command(t.Context(), t, w.env, "claim").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, code, _ = strings.Cut(string(out), "\n  claim ")
	code, _, _ = strings.Cut(code, "\n")
	clock.jump(0) // an hour before it was made
	s.say(0, "/claim "+code)
	s.one("Welcome, Ann")

	open := func() (card shown) {
		s.say(0, "do it")
		s.until("card", func(all []shown) bool {
			card = all[len(all)-1]
			return strings.Contains(card.text, "May I run") && len(card.buttons) > 0
		})
		return card
	}
	card := open()
	clock.jump(-time.Hour)
	if got := s.press(0, card, card.buttons["Allow once"], false)(); got != "Allowed once." {
		t.Errorf("an hour back: toast %q", got)
	}
	s.one("Then:", "it has run")
	clock.jump(0)
	card = open()
	clock.jump(8 * 24 * time.Hour)
	if got := s.press(0, card, card.buttons["Allow once"], true)(); strings.HasPrefix(got, "Allowed") {
		t.Errorf("a week later: toast %q", got)
	}
	clock.jump(0)
	s.press(0, card, card.buttons["Allow once"], true)()
	if n := w.runs(); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}
