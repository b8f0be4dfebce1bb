package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
)

// offered returns what the log says about the claim: each start prints one.
func offered(t *testing.T, bot *process) (link, code string) {
	t.Helper()
	bot.out.await(t, `"send":"claim `)
	for line := range strings.Lines(bot.out.String()) {
		var entry struct{ Level, Link, Send string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Send != "" {
			if entry.Level != "INFO" {
				t.Errorf("the claim is logged at %s", entry.Level)
			}
			return entry.Link, strings.TrimPrefix(entry.Send, "claim ")
		}
	}
	t.Fatalf("no claim in %s", bot.out)
	return "", ""
}

func TestTelegramIsClaimedByItsLink(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	delete(w.env, "ONECLAW_ALLOW")
	ann, bob := w.person("Ann"), w.person("Bob")
	bot := w.run()
	_, old := offered(t, bot)
	bot.kill(syscall.SIGTERM)

	bot = w.run()
	link, code := offered(t, bot)
	if want := "?start=" + code; !strings.HasPrefix(link, "https://t.me/") || !strings.HasSuffix(link, want) || code == old {
		t.Errorf("the link is %s, the codes are %s and %s", link, old, code)
	}
	wantIn(t, w.ask(bot, bob, "/start "+old, nil), "not the code")
	wantIn(t, w.ask(bot, ann, "/start "+code, nil), "Welcome, Ann", "I am yours")
	bot.out.await(t, "the bot is claimed")
	if strings.Count(bot.out.String(), code) != 2 { // the link and the code beside it, in one line
		t.Errorf("the code is logged again: %s", bot.out)
	}
	wantIn(t, w.ask(bot, bob, "/claim "+code, nil), "only talk to people")
	w.shownTo(bot, ann, "someone new")
	wantIn(t, w.ask(bot, ann, "/whoami", nil), "my owner")
	if out, err := command(t.Context(), t, w.env, "claim").CombinedOutput(); err == nil || !strings.Contains(string(out), "has an owner") {
		t.Errorf("claim beside a running bot with an owner: %v: %s", err, out)
	}
	bot.kill(syscall.SIGTERM)
	if out, err := command(t.Context(), t, w.env, "claim").CombinedOutput(); err == nil || !strings.Contains(string(out), "has an owner") {
		t.Errorf("claim of a bot with an owner: %v: %s", err, out)
	}

	bot = w.run()
	wantIn(t, w.ask(bot, ann, "/people add telegram:"+fmt.Sprint(bob), nil), "may talk to me now")
	w.shownTo(bot, bob, "let you in. Here is") // he had knocked
	before := w.model.Count()
	w.ask(bot, bob, "hello", nil) // perhaps the answer to what he had written before
	w.shownTo(bot, bob, "hello")
	if w.model.Count() == before {
		t.Error("who was let in reaches no model")
	}
	wantIn(t, w.ask(bot, ann, fmt.Sprint("/people remove telegram:", bob), nil), "no longer talk to me")
	before = w.model.Count()
	wantIn(t, w.ask(bot, bob, "hello again", nil), "only talk to people")
	if w.model.Count() != before {
		t.Error("the model was asked for somebody who was removed")
	}
	if strings.Contains(bot.out.String(), `"send"`) {
		t.Errorf("a bot with an owner offers a claim: %s", bot.out)
	}
}

// TestAClaimOfARunningBot replaces the code that the log has shown.
func TestAClaimOfARunningBot(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	delete(w.env, "ONECLAW_ALLOW")
	ann := w.person("Ann")
	bot := w.run()
	_, logged := offered(t, bot)
	out, err := command(t.Context(), t, w.env, "claim").CombinedOutput()
	if err != nil {
		t.Fatalf("claim: %v: %s", err, out)
	}
	_, code, _ := strings.Cut(string(out), "?start=")
	code, _, _ = strings.Cut(code, "\n")
	wantIn(t, w.ask(bot, ann, "/start "+logged, nil), "not the code")
	wantIn(t, w.ask(bot, ann, "/start "+code, nil), "Welcome, Ann")
	if strings.Contains(bot.out.String(), code) {
		t.Errorf("the code is logged: %s", bot.out)
	}
}

// TestAClaimMadeByHand is not replaced by the start of the bot.
func TestAClaimMadeByHand(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	delete(w.env, "ONECLAW_ALLOW")
	ann := w.person("Ann")
	out, err := command(t.Context(), t, w.env, "claim").Output()
	if err != nil {
		t.Fatalf("claim: %v", err)
	}
	wantIn(t, string(out), "oneclaw run")
	_, code, _ := strings.Cut(string(out), "claim ")
	code, _, _ = strings.Cut(code, "\n")
	wantIn(t, string(out), "https://t.me/", "?start="+code)
	bot := w.run()
	bot.out.await(t, "oneclaw claim has printed")
	wantIn(t, w.ask(bot, ann, "claim "+code, nil), "Welcome, Ann")
}

func TestSlackIsClaimedByItsCode(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	server, channel, people := w.withSlack(t, "ann", "bob")
	install(t, server)
	delete(w.env, "ONECLAW_ALLOW")
	dm, err := server.AddChannel(slack.ChannelSpec{Kind: slack.DM, Members: people[:1]})
	if err != nil {
		t.Fatal(err)
	}
	bot := start(t, w.env, "run")
	link, code := offered(t, bot)
	if link != "" {
		t.Errorf("a link without Telegram: %s", link)
	}
	ask := func(where, who, text string) string {
		t.Helper()
		before := 0
		server.View(func(s slack.State) { before = s.CountAnswers(where) })
		sayTo(t, server, where, who, text, "")
		waitSlack(t, server, "answer to "+text, func(s slack.State) bool { return s.CountAnswers(where) > before })
		answer := ""
		server.View(func(s slack.State) { answer = s.Answers(where)[before].Text })
		return answer
	}
	wantIn(t, ask(channel, people[1], "<@"+server.BotUser()+"> hello"), "have no owner yet")
	wantIn(t, ask(dm, people[0], "claim "+code), "Welcome, ann")
	wantIn(t, ask(dm, people[0], "!people"), "owner since")
	wantIn(t, ask(dm, people[0], "!people add slack:"+people[1]), "may talk to me now")
	wantIn(t, ask(channel, people[1], "<@"+server.BotUser()+"> hello"), "hello")
}

// TestAClaimShownInAGroupIsVoid has the code written where others read it.
func TestAClaimShownInAGroupIsVoid(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	delete(w.env, "ONECLAW_ALLOW")
	ann := w.person("Ann")
	group, err := w.telegram.AddChat(telegram.ChatSpec{Kind: telegram.Supergroup, User: ann, Title: "friends"})
	if err != nil {
		t.Fatal(err)
	}
	bot := w.run()
	_, code := offered(t, bot)
	if _, err := w.telegram.Say(group, ann, "/start@"+telegram.DefaultUsername+" "+code, nil); err != nil {
		t.Fatal(err)
	}
	w.until(bot, "answer in the group", func(s telegram.State) bool { return s.CountAnswers(group) == 1 })
	w.telegram.View(func(s telegram.State) { wantIn(t, s.Answers(group)[0].Text, "is no longer valid") })
	wantIn(t, w.ask(bot, ann, "/start "+code, nil), "is no longer valid")
}

// What can let nobody in is refused with a sentence, and is in no list.
//
// Nobody is let in who can be nobody.
func TestPeopleThatCanBeNobodyAreNotAdded(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	token := w.env["TELEGRAM_BOT_TOKEN"]
	_, _, people := w.withSlack(t, "ann", "bob")
	ann := w.person("Ann")
	w.env["TELEGRAM_BOT_TOKEN"], w.env["ONECLAW_ALLOW"], w.env["ONECLAW_ADMINS"] = token, "", fmt.Sprint("telegram:", ann)
	bot := w.run()
	for _, who := range []string{"telegram:*", "slack:*", "telegram:1*", "telegram:ann", "telegram:@ann", "telegram:007", "telegram:12345678901234567890123", "telegram:-1001234567890", "telegram:777000", "slack:ann", "slack:u1", "slack:C0123ABCD", "slack:U1@"} {
		answer := w.ask(bot, ann, "/people add "+who, nil)
		if strings.Contains(answer, "may talk to me now") || !strings.Contains(answer, who) {
			t.Errorf("%s: %s", who, answer)
		}
	}
	wantIn(t, w.ask(bot, ann, "/people add telegram:*", nil), "one by one", "ONECLAW_ALLOW")
	for _, who := range []string{"telegram:123", "slack:" + people[0], "slack:W0123ABCD", "slack:U0123ABCD@T0123ABCD", "slack:U0123ABCD@unknown"} {
		wantIn(t, w.ask(bot, ann, "/people add "+who, nil), "may talk to me now")
	}
	if list := w.ask(bot, ann, "/people", nil); strings.Contains(list, "*") || strings.Contains(list, "telegram:ann") {
		t.Errorf("the list is %s", list)
	}
}
