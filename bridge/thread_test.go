package bridge_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/toolgroups"
)

// archived is a platform that tells what was said in a thread.
type archived struct {
	*platform
	said func(m chats.Message) []chats.Quoted
}

func (a archived) ReadThread(_ context.Context, m chats.Message, _ string, _ int) ([]chats.Quoted, error) {
	return a.said(m), nil
}

// Of a thread, a question brings along what has no turn of its own: not a message to the bot
// that came later than the one behind it, and waits, nor one that is on its way.
func TestWhatHasATurnOfItsOwnIsNotQuotedFromItsThread(t *testing.T) {
	shown := make(chan string, 3)
	var r *harness
	r = newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		shown <- turn.History[len(turn.History)-1].Quoted
		return echo(ctx, turn)
	}, func(cfg *bridge.Config) {
		cfg.Platforms = []chats.Platform{archived{cfg.Platforms[0].(*platform), func(m chats.Message) []chats.Quoted {
			if m.ID == "3" {
				r.accept(group("2", "1", "for the bot"))
			}
			return slices.DeleteFunc([]chats.Quoted{
				{Kind: chats.RefThread, ID: "01", By: "Dan", Text: "which was lost", Addressed: true, Time: m.Time.Add(-time.Hour)},
				{Kind: chats.RefThread, ID: "02", By: "Dan", Text: "on its way", Addressed: true, Time: m.Time.Add(-time.Minute)},
				{Kind: chats.RefThread, ID: "1", By: "Bob", Text: "for others", Time: m.Time.Add(-time.Minute)},
				{Kind: chats.RefThread, ID: "2", By: "Ann", Text: "for the bot"},
				{Kind: chats.RefLink, By: "Cleo", Text: "linked to"},
			}, func(q chats.Quoted) bool { return q.ID >= m.ID })
		}}}
	})
	third := group("3", "1", "three")
	third.InThread, third.MentionsBot, third.Time = true, true, time.Now()
	r.accept(third)
	waitAnswered(t, r.platform, "re: three", "re: for the bot")
	got := <-shown
	for text, wanted := range map[string]bool{"which was lost": true, "on its way": false, "for others": true, "for the bot": false, "linked to": false} {
		if strings.Contains(got, text) != wanted {
			t.Errorf("the question brings along %q", got)
		}
	}
	<-shown
	fourth := group("4", "1", "four")
	fourth.InThread, fourth.MentionsBot = true, true
	r.accept(fourth)
	if got := <-shown; strings.Contains(got, "for the bot") {
		t.Errorf("the next question brings along %q", got)
	}
}

// A member who began a thread may clear it. Then nothing of theirs is in the conversation there, but what their schedule
// has the bot say; the next person there need not even reply to it.
func TestAScheduleOfWhoBeganAThreadHoldsTheirWordsAfterAClear(t *testing.T) {
	inThread := func(id, user, text string) chats.Message {
		m := group(id, user, text)
		m.Chat.Thread, m.Opener, m.InThread, m.MentionsBot, m.Time = "t", "6", true, true, time.Now()
		return m
	}
	var said []chats.Quoted
	r := (&execTools{fetch: true}).guarded(t, func(c *bridge.Config) {
		c.Turns.Agent = agent.New(agent.Config{Model: composing{}})
		c.Access = access.Access{Allow: []string{"fake:1", "fake:6"}}
		c.ApprovalPolicy = func(toolgroups.Call, toolgroups.Tool) interact.Policy { return interact.Policy{Rule: interact.Allow} }
		c.Platforms = []chats.Platform{archived{c.Platforms[0].(*platform), func(chats.Message) []chats.Quoted { return said }}}
	})
	r.accept(inThread("1", "6", "hi"))
	r.platform.wait(t, 1)
	r.accept(inThread("2", "6", "/clear"))
	r.platform.wait(t, 2)
	for n, key := range []string{"a.1", "a.2"} {
		ofBob := task(key, "News", "Open all that you can compose. "+strings.Repeat("x", 3500))
		ofBob.Chat, ofBob.User, ofBob.Direct = inThread("", "", "").Chat, "6", false
		r.submit(ofBob)
		r.platform.wait(t, 3+n)
	}
	r.receipts(4)
	for _, s := range r.platform.shown()[1:] { // the answer to the /clear, and two of the schedule
		said = append(said, chats.Quoted{Kind: chats.RefThread, ID: s.id, FromBot: true, Text: s.text, Time: time.Now().Add(-time.Minute)})
	}
	r.accept(inThread("9", "1", "compose"))
	if got := r.platform.wait(t, 5)[4]; !strings.Contains(got.text, "May I open") {
		t.Errorf("after %.60q of another member: shown %q", said[2].Text, got.text)
	}
}
