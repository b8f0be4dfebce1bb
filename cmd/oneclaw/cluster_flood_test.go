package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"oneclaw/bridge/queue"
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/storage"
	"oneclaw/storage/postgres"
)

// say has everybody on both platforms write so many messages.
func (c *cluster) say(messages int) {
	c.t.Helper()
	c.hooks.post(messages)
	for range messages {
		c.said++
		for n, who := range c.people {
			c.harness.say(who, fmt.Sprintf("person %d: message %d", n, c.said), nil)
		}
		for _, r := range c.rooms {
			c.write(r, fmt.Sprintf("message of %s %d", r.who, c.said))
		}
	}
}

// begin has everybody write a first message, which makes the bot ask whether it may look at the clock,
// and allow that for longer.
func (c *cluster) begin() {
	c.t.Helper()
	c.say(1)
	c.allow()
}

func (c *cluster) allow() {
	c.t.Helper()
	c.allowClocks(c.people)
	for _, r := range c.rooms {
		allowClockIn(c.t, c.slack, r.channel, r.root, r.who)
	}
	c.answered()
}

// clear has everybody clear their conversation while a program is killed, and allow the look at the clock
// once more. It returns how many parts of answers were being sent.
func (c *cluster) clear() (sending int) {
	c.t.Helper()
	for _, who := range c.people {
		c.harness.say(who, "/clear", nil)
	}
	for _, r := range c.rooms {
		sayTo(c.t, c.slack, r.channel, r.who, "!clear", r.root)
	}
	c.replicas[0].bot.kill(syscall.SIGKILL)
	sending = c.sending()
	c.replicas[0].restart()
	for _, who := range c.people {
		c.until(nil, "conversation that is cleared", func(s telegram.State) bool { return slices.ContainsFunc(textsOf(s.Answers(who)), isCleared) })
	}
	for _, r := range c.rooms {
		waitSlack(c.t, c.slack, "conversation that is cleared", func(s slack.State) bool { return slices.ContainsFunc(botSaid(s.Thread(r.channel, r.root)), isCleared) })
	}
	for c.say(1); !asksForClock(c.said) || isPosted(c.said); c.say(1) {
		c.answered()
	}
	c.allow()
	return sending
}

// write has the person of a room write, and notes whether what they wrote before was
// acknowledged by then: what Slack has to deliver again comes behind what was said meanwhile.
func (c *cluster) write(r *room, text string) {
	if r.root == "" {
		text = "<@" + c.slack.BotUser() + "> " + text
	}
	free := true
	if len(r.sent) > 0 {
		c.slack.View(func(s slack.State) { free = s.AllAcked(r.sent[len(r.sent)-1]...) })
	}
	sent, err := c.slack.Say(r.channel, r.who, text, &slack.SayOptions{Thread: r.root})
	if err != nil {
		c.t.Fatal(err)
	}
	if r.root == "" {
		r.root = sent.TS
	}
	r.sent, r.free = append(r.sent, sent.Envelopes), append(r.free, free)
}

// answersTo returns what the bot wrote to a person, without what differs between persons.
func (c *cluster) answersTo(n int) []string {
	return c.plainTo(n, c.answers(c.people[n]))
}

func (c *cluster) plainTo(n int, answers []string) []string {
	texts := withoutCards(answers)
	for i, text := range texts {
		texts[i] = strings.Replace(waitedNotice.ReplaceAllString(text, ""), fmt.Sprintf("person %d: ", n), "", 1)
	}
	return texts
}

func (c *cluster) answersIn(r *room) (texts []string) {
	c.slack.View(func(s slack.State) { texts = withoutCards(botSaid(s.Thread(r.channel, r.root))) })
	for i, text := range texts {
		texts[i] = slackNotice.ReplaceAllString(text, "")
	}
	return texts
}

// answered waits until everybody is answered.
func (c *cluster) answered() {
	c.t.Helper()
	if err := c.answeredWithin(patience); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) answeredWithin(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	for n, who := range c.people {
		var missing []string
		err := c.telegram.WaitFor(ctx, func(s telegram.State) bool {
			missing = unsettled(c.plainTo(n, textsOf(s.LastAnswers(who, lately))), c.said)
			return len(missing) == 0
		})
		if err != nil {
			return fmt.Errorf("person %d has no answer to %q: %w", n, missing, err)
		}
	}
	for _, r := range c.rooms {
		var missing []string
		err := c.slack.WaitFor(ctx, func(s slack.State) bool {
			missing = unsettled(withoutCards(plain(botSaid(s.LastInThread(r.channel, r.root, lately)))), c.said)
			return len(missing) == 0
		})
		if err != nil {
			return fmt.Errorf("%s has no answer to %q: %w", r.who, missing, err)
		}
	}
	return nil
}

func plain(texts []string) []string {
	for i, text := range texts {
		texts[i] = slackNotice.ReplaceAllString(text, "")
	}
	return texts
}

// served has everybody write once more and returns how long it is since begun until all of
// it is answered.
func (c *cluster) served(begun time.Time) time.Duration {
	c.t.Helper()
	c.say(1)
	c.answered()
	return time.Since(begun)
}

// check looks at all that was answered and done, and counts the marks.
func (c *cluster) check(t complainer) (marks int) {
	t.Helper()
	for n := range c.people {
		answers := c.answersTo(n)
		marks += checkFlood(t, answers, c.said)
		checkTasks(t, answers, c.said)
	}
	marks += c.hooks.check(t)
	for _, r := range c.rooms {
		answers := c.answersIn(r)
		marks += checkOnce(t, answers, c.said)
		checkTasks(t, answers, c.said)
		r.checkOrder(t, answers)
	}
	c.posted.mu.Lock()
	defer c.posted.mu.Unlock()
	for text, times := range c.posted.times {
		if times != 1 {
			t.Errorf("%q was posted %d times", text, times)
		}
	}
	if len(c.posted.times) == 0 {
		t.Errorf("nothing was posted")
	}
	return marks
}

// checkOrder checks that a message that was written when the one before it was acknowledged
// is answered behind it.
func (r *room) checkOrder(t complainer, answers []string) {
	t.Helper()
	first := map[int]int{}
	for at, answer := range answers {
		all, messages, _ := saidIn(answer)
		if len(messages) == 0 && isOutcome(all[0]) {
			continue
		}
		n, ok := numberOf(strings.Join(messages, joined))
		if !ok || !strings.Contains(answer, "message of "+r.who) {
			t.Errorf("%q is no answer", answer)
			continue
		}
		if _, seen := first[n]; !seen {
			first[n] = at
		}
	}
	for i, free := range r.free {
		before, there := first[i]
		if free && there && first[i+1] < before {
			t.Errorf("message %d of %s is answered before message %d, which was acknowledged before it was written", i+1, r.who, i)
		}
	}
}

// sending counts the parts of answers that are recorded as being sent.
func (c *cluster) sending() (parts int) {
	c.t.Helper()
	c.read(func(store *postgres.Store) { parts = sendingIn(c.t, store) })
	return parts
}

// checkClosed checks that no job is open.
func (c *cluster) checkClosed() {
	c.t.Helper()
	c.read(func(store *postgres.Store) {
		for entry, err := range store.List(c.t.Context(), storage.Range{Prefix: queue.OpenPrefix}) {
			c.t.Errorf("a job is open at the end: %s %.300s, %v", entry.Key, entry.Value, err)
		}
	})
}
