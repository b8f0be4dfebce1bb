package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
	"oneclaw/slack/manifest"
	"oneclaw/storage"
)

// withSlack adds a Slack workspace with one channel to a harness and takes Telegram out.
func (w *harness) withSlack(t *testing.T, people ...string) (server *slack.Server, channel string, members []string) {
	t.Helper()
	return w.withSlackThatWaits(t, patience, people...)
}

// withSlackThatWaits is withSlack with how long Slack waits before it delivers again.
func (w *harness) withSlackThatWaits(t *testing.T, ack time.Duration, people ...string) (server *slack.Server, channel string, members []string) {
	t.Helper()
	server, err := slack.New(slack.Config{MaxMessages: 100_000, Now: w.now, Delivery: slack.Delivery{AckTimeout: ack, RetryDelays: []time.Duration{0, 0, 0, 0, 0, 0, 0, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	url, err := server.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range people {
		members = append(members, server.AddUser(slack.User{Name: name, RealName: name}).ID)
	}
	if channel, err = server.AddChannel(slack.ChannelSpec{Name: "general", Members: members}); err != nil {
		t.Fatal(err)
	}
	delete(w.env, "TELEGRAM_BOT_TOKEN")
	maps.Copy(w.env, map[string]string{
		"SLACK_BOT_TOKEN": server.BotToken(), "SLACK_APP_TOKEN": server.AppToken(), "SLACK_API_URL": url, "ONECLAW_ALLOW": "slack:*",
	})
	return server, channel, members
}

// install makes the app of a workspace the one of the manifest, in which each direct message
// begins a thread.
func install(t *testing.T, server *slack.Server) {
	t.Helper()
	if err := server.Install(manifest.YAML()); err != nil {
		t.Fatal(err)
	}
}

func waitSlack(t *testing.T, server *slack.Server, what string, cond func(slack.State) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := server.WaitFor(ctx, cond); err != nil {
		t.Fatalf("no %s: %v", what, err)
	}
}

func sayTo(t *testing.T, server *slack.Server, channel, who, text, thread string) slack.Sent {
	t.Helper()
	sent, err := server.Say(channel, who, text, &slack.SayOptions{Thread: thread})
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

func TestThreePeopleAtOnceGetThreeThreads(t *testing.T) {
	t.Parallel()
	meeting := newMeeting(3)
	w := newHarness(t, openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		meeting.join(ctx)
		return openai.Reply{Text: "re: " + req.Messages[len(req.Messages)-1].Content}, nil
	}))
	server, channel, people := w.withSlack(t, "ann", "bob", "cleo")
	start(t, w.env, "run")
	var roots []string
	for _, who := range people {
		roots = append(roots, sayTo(t, server, channel, who, "<@"+server.BotUser()+"> hello from "+who, "").TS)
	}
	waitSlack(t, server, "three answers", func(s slack.State) bool { return s.CountAnswers(channel) >= 3 })
	server.View(func(s slack.State) {
		for n, root := range roots {
			thread := s.Thread(channel, root)
			if len(thread) != 2 || !thread[1].FromBot || !strings.Contains(thread[1].Text, "hello from "+people[n]) {
				t.Errorf("the thread of %s holds %v", people[n], thread)
			}
		}
	})
}

// TestSlackNamesCommandsAsTheyAreWrittenThere: Slack keeps what begins with a slash for
// itself, so a text that tells people to write /help would lead nowhere.
func TestSlackNamesCommandsAsTheyAreWrittenThere(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(repeating))
	server, channel, people := w.withSlack(t, "ann")
	start(t, w.env, "run")
	root := sayTo(t, server, channel, people[0], "<@"+server.BotUser()+"> !help", "").TS
	var help []string
	waitSlack(t, server, "the help", func(s slack.State) bool {
		help = botSaid(s.Thread(channel, root))
		return len(help) == 1
	})
	if !strings.Contains(help[0], "!clear") || strings.Contains(help[0], "/clear") {
		t.Errorf("got %s", help[0])
	}
}

// TestKilledInAFloodOnSlack kills the program while people write into threads. Every
// envelope that was acknowledged must be answered in the end, in its thread, and so must every result of a
// background task. What a person has allowed until /clear is allowed until then.
func TestKilledInAFloodOnSlack(t *testing.T) {
	t.Parallel()
	const perRound = 3
	w := newHarness(t, employing(writing, openai.ResponderFunc(repeating)))
	server, channel, people := w.withSlack(t, "ann", "bob", "cleo", "dan")
	w.settings("approvals:" + lastingRules)
	bot := start(t, w.env, "run")
	roots := make([]string, len(people))
	said, found := 1, 0
	say := func() {
		said++
		for n, who := range people {
			sayTo(t, server, channel, who, fmt.Sprint("message of ", who, " ", said), roots[n])
		}
	}
	allow := func() {
		for n, who := range people {
			allowClockIn(t, server, channel, roots[n], who)
		}
	}
	// The first message makes the bot ask whether it may look at the clock, and the answer lasts.
	for n, who := range people {
		roots[n] = sayTo(t, server, channel, who, fmt.Sprintf("<@%s> message of %s 1", server.BotUser(), who), "").TS
	}
	allow()
	waitSlack(t, server, "presses on disk", func(s slack.State) bool { return s.UnackedCount() == 0 }) // Slack repeats none
	bot.kill(syscall.SIGKILL)
	found += w.sending()
	bot = start(t, w.env, "run")
	caughtUp := func() {
		t.Helper()
		unacked, missing := 0, []string{}
		defer func() {
			if t.Failed() {
				t.Logf("%d envelopes are not acknowledged, missing: %q", unacked, missing)
			}
		}()
		waitSlack(t, server, "answer to everything", func(s slack.State) bool {
			unacked = s.UnackedCount()
			return unacked == 0 && !slices.ContainsFunc(roots, func(root string) bool {
				missing = unsettled(withoutCards(botSaid(s.LastInThread(channel, root, lately))), said)
				return len(missing) > 0
			})
		})
	}
	caughtUp()
	for round := range rounds() {
		waitSlack(t, server, "socket", func(s slack.State) bool { return s.ActiveSockets() > 0 })
		for range perRound {
			say()
		}
		// The moment of the kill is random: some of what was said is answered by then.
		// On a slow machine answers are edits of their previews.
		answered := func(s slack.State) int { return s.CallCount("chat.postMessage") + s.CallCount("chat.update") }
		sent, answers := 0, w.some(len(people), perRound)
		server.View(func(s slack.State) { sent = answered(s) })
		waitSlack(t, server, "answers before the kill", func(s slack.State) bool { return answered(s) >= sent+answers })
		signal := syscall.SIGKILL
		if round%4 == 3 {
			signal = syscall.SIGTERM
		}
		bot.kill(signal)
		found += w.sending()
		w.steer(round)
		bot = start(t, w.env, "run")
		if round%breath == breath-1 {
			caughtUp()
		}
	}
	caughtUp()
	// A kill meets !clear, and then the bot asks again.
	for n, who := range people {
		sayTo(t, server, channel, who, "!clear", roots[n])
	}
	waitSlack(t, server, "conversation that is cleared", func(s slack.State) bool { return slices.ContainsFunc(botSaid(s.Thread(channel, roots[0])), isCleared) })
	bot.kill(syscall.SIGKILL)
	found += w.sending()
	w.env["ONECLAW_STEERING"] = "false"
	bot = start(t, w.env, "run")
	waitSlack(t, server, "commands on disk", func(s slack.State) bool { return s.UnackedCount() == 0 }) // they come before what is said next
	for say(); !asksForClock(said); say() {
		caughtUp()
	}
	allow()
	caughtUp()
	bot.kill(syscall.SIGTERM)
	w.read(func(store storage.Store) {
		checkLasting(t, len(people), store)
		checkAccounts(t, store, w.model.Count())
	})
	marks, several, tasks := 0, 0, 0
	for _, root := range roots {
		var texts []string
		server.View(func(s slack.State) { texts = withoutCards(botSaid(s.Thread(channel, root))) })
		marks += checkOnce(t, texts, said)
		tasks += checkTasks(t, texts, said)
		several += together(texts)
	}
	t.Logf("%d messages in %d threads, %d kills: all answered, %d answers to several messages, %d answers marked as possible repeats, %d found while they were sent, %d results of background tasks, %d effects, none twice",
		said*len(people), len(people), rounds(), several, marks, found, tasks, w.effects(t))
	if marks > found {
		t.Errorf("%d answers are marked as possible repeats, but the kills found only %d in the middle of their sending", marks, found)
	}
}

// botSaid returns the texts of the bot in a thread, without those that one person alone sees.
func botSaid(thread []slack.Message) (texts []string) {
	for _, m := range thread {
		if m.FromBot && m.Ephemeral == "" {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

// checkOnce checks that every message of a thread is in the input of one answer, and that
// stands there without a mark at most once, and counts the marks. The order is not checked:
// what Slack has to deliver again comes behind what was said meanwhile.
func checkOnce(t complainer, answers []string, said int) (marks int) {
	t.Helper()
	seen, in := map[string]int{}, map[string]string{}
	for _, answer := range answers {
		all, messages, marked := saidIn(answer)
		text := strings.Join(all, joined)
		if marked {
			marks++
		} else {
			seen[text]++
		}
		for _, message := range messages {
			if other, ok := in[message]; ok && other != text {
				t.Errorf("%q is answered by %q and by %q", message, other, text)
			}
			in[message] = text
		}
	}
	for text, n := range seen {
		if n > 1 {
			t.Errorf("%q came %d times without a mark", text, n)
		}
	}
	if len(in) != said {
		t.Errorf("%d of %d messages were answered", len(in), said)
	}
	return marks
}
