package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

const (
	allowHere  = "Allow here until /clear"
	lastingKey = "allowed/"
)

func everyone(c *bridge.Config) { c.Access = access.Access{Allow: []string{"*"}} }

// offers reports whether a card has a button.
func (s sent) offers(label string) bool {
	return slices.ContainsFunc(slices.Concat(s.buttons...), func(b chats.Button) bool { return b.Label == label })
}

// allow gives a question and presses the button on its card.
func (r *harness) allow(question chats.Message) {
	r.t.Helper()
	before := len(r.platform.texts())
	r.accept(question)
	card := r.platform.wait(r.t, before+1)[before]
	r.accept(pressAs(question, card, "allow"+question.ID, card.button(r.t, allowHere)))
	r.platform.wait(r.t, before+2)
}

// lasting is a execTools whose user has allowed what a question runs until /clear.
func lasting(t *testing.T, question chats.Message, change ...func(*bridge.Config)) (*execTools, *harness) {
	t.Helper()
	w := &execTools{lasts: true}
	r := w.guarded(t, change...)
	r.allow(question)
	if got := r.platform.toast(t, "allow"+question.ID); got != "Allowed here until /clear." {
		t.Errorf("toast %q", got)
	}
	return w, r
}

// pressAs is a press of the sender of a message.
func pressAs(m chats.Message, card sent, id, data string) chats.Message {
	p := pressOn(card, id, m.User, data)
	p.UserName, p.Direct = m.UserName, m.Direct
	return p
}

// asks gives a message, and reports whether the bot asks before it does what it says.
func (r *harness) asks(m chats.Message) bool {
	r.t.Helper()
	before := len(r.platform.texts())
	r.accept(m)
	last := r.platform.wait(r.t, before+1)[before]
	if last.buttons == nil {
		return false
	}
	r.accept(pressAs(m, last, "deny"+m.ID, last.button(r.t, "Deny")))
	r.platform.wait(r.t, before+2)
	return true
}

// command gives a command, in the chat and from the sender of a message.
func (r *harness) command(m chats.Message, text string) sent {
	r.t.Helper()
	before := len(r.platform.texts())
	m.ID, m.Text = fmt.Sprint("c", before), text
	r.accept(m)
	return r.platform.wait(r.t, before+1)[before]
}

// replace starts the bot again with the tools of another execTools.
func (r *harness) replace(w *execTools) {
	r.t.Helper()
	reg := w.registry(r.t)
	r.stop()
	r.cfg.Turns.Tools = func() *toolgroups.Registry { return reg }
	r.start()
}

// eachLasting calls f with each lasting approval.
func (r *harness) eachLasting(f func(storage.Entry)) {
	r.t.Helper()
	n := 0
	for entry, err := range r.cfg.Store.List(r.t.Context(), storage.Range{Prefix: lastingKey}) {
		if err != nil {
			r.t.Fatal(err)
		}
		n++
		f(entry)
	}
	if n == 0 {
		r.t.Fatal("there is no lasting approval")
	}
}

func inThread(m chats.Message, thread string) chats.Message {
	m.Chat.Thread = thread
	return m
}

// What a user allows until /clear runs without a card, for that user, in that conversation, with
// exactly these arguments.
func TestACallIsAllowedUntilClear(t *testing.T) {
	t.Parallel()
	then := func(m chats.Message) func(*harness) chats.Message {
		return func(*harness) chats.Message { return m }
	}
	after := func(m chats.Message, commands ...string) func(*harness) chats.Message {
		return func(r *harness) chats.Message {
			for _, text := range commands {
				r.command(m, text)
			}
			return m
		}
	}
	with := func(w *execTools) func(*harness) chats.Message {
		return func(r *harness) chats.Message {
			r.replace(w)
			return direct("2", "run a")
		}
	}
	records := func(value string) func(*harness) chats.Message {
		return func(r *harness) chats.Message {
			r.eachLasting(func(e storage.Entry) { r.put(e.Key, value) })
			return direct("2", "run a")
		}
	}
	for name, c := range map[string]struct {
		first chats.Message
		then  func(*harness) chats.Message
		asks  bool
	}{
		"the same call": {direct("1", "run a"), then(direct("2", "run a")), false},
		"the same call after a restart": {direct("1", "run a"), func(r *harness) chats.Message {
			r.restart()
			return direct("2", "run a")
		}, false},
		"the same arguments, written otherwise": {direct("1", `raw {"command":"a"}`), then(direct("2", `raw { "command" : "a",}`)), false},
		"an argument more":                      {direct("1", `raw {"command":"a"}`), then(direct("2", `raw {"command":"a","more":1}`)), true},
		"an argument that it does not have":     {direct("1", `raw {"command":"a"}`), then(direct("2", `raw {"command":"a","note":1}`)), false},
		"other arguments":                       {direct("1", "run a"), then(direct("2", "run b")), true},
		"the same arguments and a space":        {direct("1", `raw {"command":"a"}`), then(direct("2", `raw {"command":"a "}`)), true},
		"one of two calls":                      {direct("1", "run a"), then(direct("2", "run a\nrun b")), true},
		"the same person in a group":            {group("1", "1", "run a"), then(group("2", "1", "run a")), false},
		"another person in that group":          {group("1", "1", "run a"), then(group("2", "2", "run a")), true},
		"another conversation":                  {group("1", "1", "run a"), then(direct("2", "run a")), true},
		"another topic":                         {group("1", "1", "run a"), then(inThread(group("2", "1", "run a"), "t")), true},
		"the same topic":                        {inThread(group("1", "1", "run a"), "t"), then(inThread(group("2", "1", "run a"), "t")), false},
		"after /clear":                          {direct("1", "run a"), after(direct("2", "run a"), "/clear"), true},
		"after /clear and its /undo":            {direct("1", "run a"), after(direct("2", "run a"), "/clear", "/undo"), true},
		"after /stop":                           {direct("1", "run a"), after(direct("2", "run a"), "/stop"), false},
		"a tool with another description":       {direct("1", "run a"), with(&execTools{lasts: true, about: "Run a command elsewhere."}), true},
		"a tool of another version":             {direct("1", "run a"), with(&execTools{lasts: true, is: "2"}), true},
		"a tool that reaches others now":        {direct("1", "run a"), with(&execTools{}), true},
		"a record that is damaged":              {direct("1", "run a"), records("{"), true},
		"a record of another user":              {direct("1", "run a"), records(`{"tool":"exec","arguments":"{\"command\":\"a\"}","user":"fake:2","seq":99999}`), true},
		"a record of another call":              {direct("1", "run a"), records(`{"tool":"exec","arguments":"{\"command\":\"b\"}","user":"fake:1","seq":99999}`), true},
	} {
		t.Run(name, func(t *testing.T) {
			_, r := lasting(t, c.first, everyone, func(c *bridge.Config) { c.Access.Admins = []string{"fake:9"} })
			if got := r.asks(c.then(r)); got != c.asks {
				t.Errorf("the bot asks: %v; it has sent %q", got, r.platform.texts())
			}
		})
	}
}

// The card says what the button allows before anyone presses it, and who ran a call later is on
// record as who allowed it.
func TestTheCardSaysWhatLasts(t *testing.T) {
	w := &execTools{lasts: true}
	r := w.guarded(t, everyone)
	for i, c := range []struct {
		ask  chats.Message
		want string
	}{
		{direct("1", "run a"), "“Allow here until /clear” also lets me run exactly this command again without asking, even if its files have changed. /approvals ends that."},
		{group("2", "1", "run a"), "its files have changed, while I answer “Ann”. /approvals"},
	} {
		before := len(r.platform.texts())
		r.accept(c.ask)
		card := r.platform.wait(t, before+1)[before]
		if !strings.Contains(card.text, c.want) || !card.offers("Allow once") || !card.offers(allowHere) {
			t.Errorf("card %d: %q", i, card.text)
		}
		r.accept(pressAs(c.ask, card, fmt.Sprint("p", i), card.button(t, allowHere)))
		r.platform.wait(t, before+2)
		shown := r.platform.until(t, "the decision", func(all []sent) bool { return strings.Contains(all[before].text, "✅ **Allowed here until /clear**") })[before]
		if strings.Contains(shown.text, "also lets me") {
			t.Errorf("decided: %q", shown.text)
		}
	}
	r.did(t, "allow calls until clear fake:1 Ann fake:g exec", "allow a call fake:1 Ann fake:g exec",
		"allow calls until clear fake:1 Ann fake:1 exec", "allow a call fake:1 Ann fake:1 exec")
	r.accept(direct("3", "run a"))
	r.platform.wait(t, 5)
	begun := 0
	for m, err := range conversation.Messages(t.Context(), r.cfg.Store, "fake:1/1") {
		if err != nil {
			t.Fatal(err)
		}
		if m.Role == agent.RoleStarted {
			begun++
			if m.ApprovedBy != "fake:1" {
				t.Errorf("start: %+v", m)
			}
		}
	}
	if begun != 2 {
		t.Errorf("%d calls have begun", begun)
	}
}

// Only who asked can allow a call for longer, and only in the chat.
func TestOnlyTheRequesterAllowsForLonger(t *testing.T) {
	w := &execTools{lasts: true}
	r := w.guarded(t, func(c *bridge.Config) {
		c.Access = access.Access{Allow: []string{"fake:1", "fake:2"}, Admins: []string{"fake:9"}}
	})
	r.accept(group("1", "1", "run a"))
	card := r.platform.wait(t, 1)[0]
	for id, user := range map[string]string{"other": "2", "admin": "9", interact.PagePressPrefix + "x": "1"} {
		r.accept(pressOn(card, id, user, card.button(t, allowHere)))
	}
	const no = "Only the person who asked for this can allow it for longer, here in the chat."
	if got := r.platform.toast(t, "other"); got != no {
		t.Errorf("another user is told %q", got)
	}
	if got := r.platform.toast(t, "admin"); got != no {
		t.Errorf("an administrator is told %q", got)
	}
	r.accept(pressOn(card, "stranger", "3", card.button(t, allowHere)))
	r.platform.toast(t, "stranger")
	if n := keys(t, r.cfg.Store, lastingKey); n != 0 || len(w.commands()) != 0 {
		t.Fatalf("%d approvals, ran %q", n, w.commands())
	}
	r.accept(pressOn(card, "allow", "1", card.button(t, allowHere)))
	r.platform.wait(t, 2)
	if r.asks(group("2", "1", "run a")) {
		t.Error("the bot asks")
	}
}

// A lasting approval holds as long as its user may allow the call, and never against a rule of the
// operator.
func TestRulesOutrankLastingApprovals(t *testing.T) {
	question := group("1", "1", "run a")
	_, r := lasting(t, question, func(c *bridge.Config) { c.Access = access.Access{Allow: []string{"fake:1"}} })
	policy := func(p interact.Policy) {
		r.stop()
		r.cfg.ApprovalPolicy = func(toolgroups.Call, toolgroups.Tool) interact.Policy { return p }
		r.start()
	}
	for i, p := range []interact.Policy{
		{Rule: interact.Ask}, // a rule that asks, without lasting
		{Rule: interact.Ask, MayLast: true, Approvers: interact.ApproversAdmins},
	} {
		policy(p)
		before := len(r.platform.texts())
		r.accept(group(fmt.Sprint("n", i), "1", "run a"))
		card := r.platform.wait(t, before+1)[before]
		if card.buttons == nil || card.offers(allowHere) {
			t.Errorf("%+v: %+v", p, card)
		}
		r.accept(pressOn(card, fmt.Sprint("d", i), "1", card.button(t, "Deny")))
		r.platform.wait(t, before+2)
	}
	policy(interact.Policy{Rule: interact.Deny, MayLast: true})
	before := len(r.platform.texts())
	r.accept(group("last", "1", "run a"))
	if got := r.platform.wait(t, before+1)[before].text; !strings.Contains(got, "do not let exec run here") {
		t.Errorf("the operator's rule does not hold: %q", got)
	}
}

// checked is a platform that knows which ids are those of people.
type checked struct{ *platform }

func (checked) IsUserID(id string) bool { return !strings.HasPrefix(id, "-") }

// The button is offered only where an exception can be made.
func TestWhereAnApprovalCannotLast(t *testing.T) {
	t.Parallel()
	ask := func(m chats.Message) func(*harness) {
		return func(r *harness) { r.accept(m) }
	}
	hook := task("a.1", "one", "run a")
	hook.Trigger = receipts.Trigger{Hook: "builds"}
	for name, c := range map[string]struct {
		w    *execTools
		give func(*harness)
		want bool
	}{
		"a command":                      {&execTools{lasts: true}, ask(direct("1", "run a")), true},
		"a tool that reaches others":     {&execTools{}, ask(direct("1", "run a")), false},
		"a tool of administrators":       {&execTools{lasts: true, role: toolgroups.RoleAdmin}, ask(direct("1", "run a")), false},
		"a scheduled task":               {&execTools{lasts: true}, func(r *harness) { r.submit(task("a.1", "one", "run a")) }, false},
		"a webhook":                      {&execTools{lasts: true}, func(r *harness) { r.submit(hook) }, false},
		"a sender in the name of a chat": {&execTools{lasts: true}, ask(group("1", "-100", "run a")), false},
		"many arguments":                 {&execTools{lasts: true}, ask(direct("1", "run "+strings.Repeat("a", 1000))), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.w.guarded(t, func(c *bridge.Config) {
				c.Access = access.Access{Allow: []string{"fake:1", "fake:-100"}, Admins: []string{"fake:1"}}
				c.Platforms = []chats.Platform{checked{c.Platforms[0].(*platform)}}
			})
			c.give(r)
			if got := r.platform.wait(t, 1)[0].offers(allowHere); got != c.want {
				t.Errorf("offered: %v", got)
			}
		})
	}
}

// Tasks ask for what their user has allowed in the chat.
func TestATaskAsksForWhatLastsInTheChat(t *testing.T) {
	_, r := lasting(t, direct("1", "run a"))
	hook := task("a.2", "two", "run a")
	hook.Trigger = receipts.Trigger{Hook: "builds"}
	for i, s := range []bridge.Submission{task("a.1", "one", "run a"), hook} {
		r.submit(s)
		card := r.platform.wait(t, 3+2*i)[2+2*i]
		if card.buttons == nil {
			t.Fatalf("the task runs it unasked: %q", card.text)
		}
		r.accept(pressOn(card, fmt.Sprint("d", i), "1", card.button(t, "Deny")))
		r.platform.wait(t, 4+2*i)
	}
}

// Of a tool that only reads, one approval holds for the calls that its manifest names alike.
func TestCallsThatAreAlikeAreAllowedTogether(t *testing.T) {
	t.Parallel()
	const page = `fetch {"url":"https://docs.example.com/guide/one"}`
	for name, c := range map[string]struct {
		next string
		asks bool
	}{
		"a page in the same folder": {`fetch {"url":"https://docs.example.com/guide/two","max_length":9}`, false},
		"the folder itself":         {`fetch {"url":"https://docs.example.com/guide/"}`, false},
		"a folder within it":        {`fetch {"url":"https://docs.example.com/guide/more/two"}`, true},
		"another folder":            {`fetch {"url":"https://docs.example.com/other/one"}`, true},
		"another host":              {`fetch {"url":"https://example.com/guide/one"}`, true},
		"another port":              {`fetch {"url":"https://docs.example.com:8443/guide/one"}`, true},
		"another scheme":            {`fetch {"url":"http://docs.example.com/guide/one"}`, true},
		"a query":                   {`fetch {"url":"https://docs.example.com/guide/one?secret"}`, true},
		"a way out of the folder":   {`fetch {"url":"https://docs.example.com/guide/../private"}`, true},
		"a user before the host":    {`fetch {"url":"https://docs.example.com@evil.example/guide/one"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &execTools{}
			r := w.guarded(t, func(c *bridge.Config) {
				c.ApprovalPolicy = func(toolgroups.Call, toolgroups.Tool) interact.Policy { return interact.Policy{MayLast: true} }
			})
			r.accept(direct("1", page))
			card := r.platform.wait(t, 1)[0]
			if want := "make calls of `webfetch` for pages directly in `https://docs.example.com/guide/` (they may redirect elsewhere) without asking, whatever their other arguments"; !strings.Contains(card.text, want) {
				t.Fatalf("card %q", card.text)
			}
			r.accept(pressOn(card, "p", "1", card.button(t, allowHere)))
			r.platform.wait(t, 2)
			if got := r.command(direct("", ""), "/approvals").text; !strings.Contains(got, "1. `webfetch` for pages directly in `https://docs.example.com/guide/`") {
				t.Errorf("listed: %q", got)
			}
			before := len(r.platform.texts())
			r.accept(direct("2", c.next))
			answer := r.platform.wait(t, before+1)[before]
			if asks := answer.buttons != nil; asks != c.asks {
				t.Errorf("the bot asks: %v, %q", asks, answer.text)
			}
			approved := 0
			for m, err := range conversation.Messages(t.Context(), r.cfg.Store, "fake:1/1") {
				if err != nil {
					t.Fatal(err)
				}
				if m.ApprovedBy == "fake:1" {
					approved++
				}
			}
			if want := map[bool]int{true: 1, false: 2}[c.asks]; approved != want {
				t.Errorf("%d calls name who approved them, want %d", approved, want)
			}
		})
	}
}

// /approvals shows users what they have allowed, and a button ends it. The others keep their numbers.
func TestApprovalsAreListedAndEnded(t *testing.T) {
	w, r := lasting(t, direct("1", "run a && b"))
	r.allow(direct("2", "run c"))
	list := r.command(direct("", ""), "/approvals")
	if want := "**You have allowed this here, until the conversation is cleared:**\n\n1. `exec` with `command: a && b`\n2. `exec` with `command: c`"; list.text != want {
		t.Errorf("listed: %q", list.text)
	}
	first, second := list.button(t, "✕ 1"), list.button(t, "✕ 2")
	r.accept(pressOn(list, "x", "2", first))
	if got := r.platform.toast(t, "x"); got != "These belong to someone else. /approvals shows you yours." {
		t.Errorf("another user is told %q", got)
	}
	r.accept(pressOn(list, "e", "1", first))
	if got := r.platform.toast(t, "e"); got != "I will ask again." {
		t.Errorf("toast %q", got)
	}
	changed := r.platform.until(t, "the shorter list", func(all []sent) bool { return strings.Contains(all[4].text, "1. _ended_\n2. `exec` with `command: c`") })[4]
	if changed.offers("✕ 1") {
		t.Errorf("buttons %v", changed.buttons)
	}
	r.accept(pressOn(list, "late", "1", second))
	if got := r.platform.toast(t, "late"); got != "This has just changed. Please look again." {
		t.Errorf("an old button: %q", got)
	}
	if !r.asks(direct("3", "run a && b")) || r.asks(direct("4", "run c")) {
		t.Errorf("it has sent %q", r.platform.texts())
	}
	r.accept(pressOn(changed, "e2", "1", changed.button(t, "✕ 2")))
	r.platform.until(t, "the empty list", func(all []sent) bool { return all[4].text == "I ask each time here again." && all[4].buttons == nil })
	if got := r.command(direct("", ""), "/approvals").text; !strings.HasPrefix(got, "I ask each time here.") {
		t.Errorf("listed: %q", got)
	}
	r.did(t, "ask again for calls fake:1 Ann fake:1 exec", "deny a call fake:1 Ann fake:1 exec", "ask again for calls fake:1 Ann fake:1 exec",
		"allow calls until clear fake:1 Ann fake:1 exec", "allow a call fake:1 Ann fake:1 exec",
		"allow calls until clear fake:1 Ann fake:1 exec", "allow a call fake:1 Ann fake:1 exec")
	if got := w.commands(); !slices.Equal(got, []string{"a && b", "c", "c"}) {
		t.Errorf("ran %q", got)
	}
}

// What a line shows only the beginning of is masked before it is cut: half a secret would be shown.
func TestASecretIsMaskedBeforeALineIsCut(t *testing.T) {
	secret := "begins-" + strings.Repeat("0123456789", 6)
	_, r := lasting(t, direct("1", "run "+strings.Repeat("a", 40)+secret), func(c *bridge.Config) {
		c.Redact = func(text string) string { return strings.ReplaceAll(text, secret, "••••") }
	})
	for _, command := range []string{"/why", "/approvals"} {
		if got := r.command(direct("", ""), command).text; strings.Contains(got, "begins") || !strings.Contains(got, "aaa••••") {
			t.Errorf("%s: %q", command, got)
		}
	}
	all, err := conversation.Conversations(t.Context(), r.cfg.Store, "fake:1")
	if err != nil || len(all) != 1 || !strings.HasSuffix(all[0].Title, "aaa••••") {
		t.Errorf("the conversations are %+v, %v", all, err)
	}
}

// A user has a bounded number of lasting approvals, also if many cards are pressed at once, and the
// list of them fits into a message.
func TestLastingApprovalsAreBounded(t *testing.T) {
	w := &execTools{lasts: true}
	r := w.guarded(t)
	long := strings.Repeat("x", 900)
	for i := range 20 {
		r.allow(direct(fmt.Sprint("q", i), fmt.Sprintf("run %d %s", i, long)))
	}
	before := len(r.platform.texts())
	r.accept(direct("more", "run more"))
	card := r.platform.wait(t, before+1)[before]
	r.accept(pressOn(card, "full", "1", card.button(t, allowHere)))
	if got := r.platform.toast(t, "full"); got != "You have allowed 20 calls here for longer. /approvals ends some of them." {
		t.Errorf("toast %q", got)
	}
	list := r.command(direct("", ""), "/approvals")
	if n := len(list.text); n > 3000 || !list.offers("✕ 20") || !strings.Contains(list.text, "20. `exec` with `command: 19 x") {
		t.Errorf("%d bytes: %q", n, list.text)
	}
	r.accept(pressOn(card, "once", "1", card.button(t, "Allow once")))
	r.platform.until(t, "the result", func([]sent) bool { return slices.Contains(r.platform.texts(), "ran more") })
	if !r.asks(direct("again", "run more")) {
		t.Error("the bot does not ask")
	}
}

// A decision whose write comes after a /clear, or a record that a /clear has left behind, allows
// nothing, also when the /clear is undone.
func TestALateDecisionDoesNotOutliveAClear(t *testing.T) {
	_, r := lasting(t, direct("1", "run a"))
	var kept storage.Entry
	r.eachLasting(func(e storage.Entry) { kept = e })
	r.command(direct("", ""), "/clear")
	if n := keys(t, r.cfg.Store, lastingKey); n != 0 {
		t.Errorf("%d approvals are left", n)
	}
	r.put(kept.Key, string(kept.Value))
	r.command(direct("", ""), "/undo")
	if got := r.command(direct("", ""), "/approvals").text; !strings.HasPrefix(got, "I ask each time here.") {
		t.Errorf("listed: %q", got)
	}
	if !r.asks(direct("2", "run a")) {
		t.Error("the bot does not ask")
	}
	r.allow(direct("3", "run a"))
	if r.asks(direct("4", "run a")) {
		t.Error("the bot asks for what was allowed after the /undo")
	}
}

// What is allowed in a chat holds in the one that it becomes, and ends there.
func TestLastingApprovalsMoveWithTheirChat(t *testing.T) {
	_, r := lasting(t, group("1", "1", "run a"), func(c *bridge.Config) { c.Access.Admins = []string{"fake:1"} })
	r.move()
	r.accept(moved("0", "1", "hello"))
	r.platform.wait(t, 3)
	if r.asks(moved("2", "1", "run a")) {
		t.Error("the bot asks in the new chat")
	}
	r.command(moved("", "1", ""), "/clear")
	if n := keys(t, r.cfg.Store, lastingKey); n != 0 || !r.asks(moved("3", "1", "run a")) {
		t.Errorf("after the /clear there are %d", n)
	}
}

// With /people remove go the approvals of the person, and they do not come back with the person.
func TestLastingApprovalsGoWithTheirUser(t *testing.T) {
	owner := direct("", "")
	owner.User, owner.Chat.ID = "9", "9"
	_, r := lasting(t, group("1", "9", "run a"), func(c *bridge.Config) { c.Access = access.Access{Admins: []string{"fake:9"}} })
	r.command(owner, "/people add fake:1")
	r.allow(group("2", "1", "run a"))
	if n := keys(t, r.cfg.Store, lastingKey); n != 2 {
		t.Fatalf("%d approvals", n)
	}
	var late storage.Entry
	r.eachLasting(func(e storage.Entry) {
		if strings.Contains(e.Key, "fake:1/") {
			late = e
		}
	})
	r.command(owner, "/people remove fake:1")
	if n := keys(t, r.cfg.Store, lastingKey); n != 1 {
		t.Errorf("%d approvals are left", n)
	}
	r.put(late.Key, string(late.Value)) // the write of a press that met the removal
	r.command(owner, "/people add fake:1")
	if !r.asks(group("3", "1", "run a")) || r.asks(group("4", "9", "run a")) {
		t.Errorf("it has sent %q", r.platform.texts())
	}
}

// The hourly cleaning deletes what holds no more: old ones, those of people whom the settings do not
// let in any more, and those of conversations that are over.
func TestLastingApprovalsAreCleaned(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*harness){
		"nothing":                    func(*harness) {},
		"the user is let in no more": func(r *harness) { r.cfg.Access = access.Access{Allow: []string{"fake:2"}} },
		"it is old":                  func(r *harness) { pass(r.t, 91*24*3600) },
		"it is older than the history": func(r *harness) {
			r.cfg.Limits.HistoryDays = 1
			pass(r.t, 3*24*3600)
		},
		"a /clear has left it behind": func(r *harness) {
			r.eachLasting(func(e storage.Entry) {
				r.start()
				r.command(direct("", ""), "/clear")
				r.stop()
				r.put(e.Key, string(e.Value))
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, r := lasting(t, direct("1", "run a"), everyone)
				r.stop()
				change(r)
				r.start()
				pass(t, 10)
				want := 0
				if name == "nothing" {
					want = 1
				}
				if n := keys(t, r.cfg.Store, lastingKey); n != want {
					t.Errorf("%d approvals are left", n)
				}
				r.stop()
			})
		})
	}
}

// /forget ends lasting approvals, also one that is given to a call that waits in a group meanwhile.
func TestForgetEndsLastingApprovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := lasting(t, direct("1", "run secret"), everyone)
		r.accept(group("g", "1", "run secret"))
		card := r.platform.wait(t, 3)[2]
		question := r.command(direct("", ""), "/forget")
		r.accept(pressOn(question, "f", "1", question.button(t, "Forget me")))
		r.platform.until(t, "the end", func([]sent) bool { return slices.Contains(r.platform.texts(), gone) })
		if n := keys(t, r.cfg.Store, lastingKey); n != 0 {
			t.Errorf("%d approvals are left", n)
		}
		r.accept(pressOn(card, "p", "1", card.button(t, allowHere)))
		r.platform.toast(t, "p")
		pass(t, 60)
		if n := keys(t, r.cfg.Store, lastingKey); n != 0 {
			t.Errorf("%d approvals have come meanwhile", n)
		}
		r.accept(direct("2", "run secret"))
		r.platform.until(t, "a question", func(all []sent) bool { return all[len(all)-1].offers("Allow once") })
		r.stop()
	})
}

// Other replicas know what was allowed, whoever handled the press.
func TestLastingApprovalsHoldAtAllReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &execTools{lasts: true}
		guarded := func(c *bridge.Config) {
			reg := w.registry(t)
			c.Turns.Tools = func() *toolgroups.Registry { return reg }
			c.ApprovalPolicy = func(toolgroups.Call, toolgroups.Tool) interact.Policy { return interact.Policy{MayLast: true} }
			c.Turns.Agent = agent.New(agent.Config{Model: obedient{}})
		}
		all := newSeveral(t, 2, nil, guarded)
		owner, other := all.sides(t, "7")
		other.accept(in("7", "1", "run a"))
		pass(t, 10)
		shown := owner.platform.shown()
		card := shown[len(shown)-1]
		press := pressOn(card, "p", "1", card.button(t, allowHere))
		press.Direct = true
		other.accept(press)
		pass(t, 10)
		owner.stop()
		pass(t, 60)
		other.accept(in("7", "2", "run a"))
		pass(t, 10)
		if got := other.platform.texts(); !slices.Contains(got, "ran a") || len(w.commands()) != 2 {
			t.Errorf("ran %q, sent %q", w.commands(), got)
		}
		other.stop()
	})
}

// A kill at any step of a decision that lasts loses it or keeps it, with its entry in the audit, and
// a press that is repeated counts once.
func TestALastingApprovalOutlivesAnyKill(t *testing.T) {
	t.Parallel()
	diesAtEachStep(t, 15, func(t *testing.T, life *mortal) {
		synctest.Test(t, func(t *testing.T) { liveLasting(t, life) })
	})
}

func liveLasting(t *testing.T, life *mortal) {
	t.Helper()
	life.dead = make(chan struct{}) // of this bubble
	w := &execTools{lasts: true}
	r := w.guarded(t)
	r.stop()
	store, shown := r.cfg.Store, r.platform
	r.cfg.Store, r.cfg.Platforms = mortalStore{store, life}, []chats.Platform{mortalEditor{mortalPlatform{shown, life}}}
	for _, whole := range []bool{false, true} {
		if whole {
			r.stop()
			r.cfg.Store, r.cfg.Platforms = store, []chats.Platform{shown}
		}
		r.start()
		_ = r.bridge.Accept(t.Context(), direct("1", "run a")) // what is dead takes nothing
		for range 20 {
			pass(t, 1)
			for _, s := range shown.shown() {
				if s.offers(allowHere) {
					_ = r.bridge.Accept(t.Context(), pressOn(s, "p"+s.id, "1", s.button(t, allowHere)))
				}
			}
		}
	}
	if a, b := keys(t, store, lastingKey), keys(t, store, "audit/"); a != 1 || b != 2 {
		t.Errorf("%d approvals, %d entries in the audit", a, b)
	}
	before := len(shown.texts())
	r.accept(direct("2", "run a"))
	pass(t, 5)
	if got := shown.texts()[before:]; !slices.Equal(got, []string{"ran a"}) {
		t.Errorf("afterwards: %q", got)
	}
	if n := len(w.commands()); n < 1 || n > 2 {
		t.Errorf("ran %d times", n)
	}
	r.stop()
}

// A card asks about the account that the person had: once another one is connected, nobody can allow it any more, not
// even once. Other people's cards stay, and those that concern no account.
func TestANewAccountClosesTheCardsAboutTheOldOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var ran []string
		tool := func(name string, personal bool) toolgroups.Tool {
			return toolgroups.Tool{
				Name: name, Description: "Read.", Effect: toolgroups.ReadOnly, Personal: personal, Parameters: json.RawMessage(`{"type":"object"}`),
				Run: func(_ context.Context, call toolgroups.Call) (toolgroups.Result, error) {
					mu.Lock()
					defer mu.Unlock()
					ran = append(ran, name+" of "+call.User)
					return toolgroups.TextResult("ok")
				},
			}
		}
		reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{tool("mails", true), tool("look", false)}})
		if err != nil {
			t.Fatal(err)
		}
		r := newHarness(t, nil, everyone, func(c *bridge.Config) {
			c.Turns.Agent, c.Turns.Tools = agent.New(agent.Config{Model: scripted{}}), func() *toolgroups.Registry { return reg }
			c.ApprovalPolicy = func(toolgroups.Call, toolgroups.Tool) interact.Policy {
				return interact.Policy{Rule: interact.Ask, Approvers: interact.ApproversRequester, MayLast: true}
			}
			c.Commands = []bridge.Command{{CommandInfo: chats.CommandInfo{Name: "connect"}, Run: func(ctx context.Context, call bridge.CommandCall) (string, error) {
				return "Connected.", call.ForgetAccounts(ctx)
			}}}
		})
		var asked []chats.Message
		for i, c := range []struct{ user, call string }{{"1", "mails"}, {"1", "look"}, {"2", "mails"}} {
			m := inThread(group(fmt.Sprint(i+1), c.user, "call "+c.call+" {}\nsay Done."), fmt.Sprint("t", i))
			asked = append(asked, m)
			r.accept(m)
			r.platform.wait(t, i+1)
		}
		cards := r.platform.wait(t, len(asked))
		r.accept(direct("c", "/connect"))
		pass(t, 1)
		for i, m := range asked {
			r.accept(pressAs(m, cards[i], fmt.Sprint("p", i), cards[i].button(t, allowHere)))
		}
		pass(t, 1)
		if slices.Sort(ran); !slices.Equal(ran, []string{"look of fake:1", "mails of fake:2"}) {
			t.Errorf("ran %q", ran)
		}
		if got := r.platform.texts()[0]; !strings.Contains(got, "An account was connected meanwhile, so I did not run it.") {
			t.Errorf("the card says %q", got)
		}
		before := len(r.platform.texts())
		again := asked[0]
		again.ID = "9"
		r.accept(again)
		if got := r.platform.wait(t, before+1)[before]; !got.offers(allowHere) {
			t.Errorf("the next call: %q", got.text)
		}
	})
}
