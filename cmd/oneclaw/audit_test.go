package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"

	"oneclaw/bridge/audit"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/storage"
	"oneclaw/storage/postgres/pgtest"
)

// TestKilledWhileAnAdministratorActs kills the program with -9 while somebody lets people in, on
// the page and in the chat. Whoever was let in stands in the audit, once; what was answered on the
// page, and what was said in the chat, has happened in the end.
func TestKilledWhileAnAdministratorActs(t *testing.T) {
	t.Parallel()
	const kills = 3
	w := newHarness(t, openai.Offline{})
	ann := w.person("Ann")
	w.env["ONECLAW_ADMINS"], w.env["ONECLAW_ALLOW"], w.env["ONECLAW_LISTEN"] = fmt.Sprint("telegram:", ann), "", freeAddress(t)
	bot := w.run()
	v := w.visit(bot, ann, "")
	var answered, said []string
	next := 70_000
	for round := range kills {
		asked, done := make(chan string, 1000), make(chan struct{})
		go func() {
			defer close(done)
			for ; ; next++ {
				user := fmt.Sprint("telegram:", next)
				if v.send("/admin/people", url.Values{"user": {user}, "do": {"user"}}).status != http.StatusOK {
					return
				}
				asked <- user
			}
		}()
		for range rand.IntN(4) {
			answered = append(answered, <-asked)
		}
		said = append(said, fmt.Sprint("telegram:9000", round))
		w.say(ann, "/people add "+said[len(said)-1], nil)
		for range rand.IntN(4) {
			answered = append(answered, <-asked)
		}
		bot.kill(syscall.SIGKILL)
		<-done
		for close(asked); len(asked) > 0; {
			answered = append(answered, <-asked)
		}
		next++ // what was cut off is not asked again
		bot = w.run()
	}
	w.until(bot, "answer to each command", func(s telegram.State) bool {
		all := s.Answers(ann)
		return !slices.ContainsFunc(said, func(user string) bool {
			return !slices.ContainsFunc(all, func(m telegram.Message) bool { return strings.Contains(m.Text, user) })
		})
	})
	bot.kill(syscall.SIGTERM)
	w.read(func(store storage.Store) { checkLetIn(t, store, answered, said) })
}

// checkLetIn compares who was let in with the audit.
func checkLetIn(t *testing.T, store storage.KV, answered, said []string) {
	t.Helper()
	entries, err := audit.List(t.Context(), store, 0)
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]int{}
	for _, e := range entries {
		if e.Action == "let in as user" {
			told[e.About]++
		}
	}
	in := map[string]bool{}
	for entry, err := range store.List(t.Context(), storage.Range{Prefix: "access/"}) {
		user := strings.TrimPrefix(entry.Key, "access/")
		if in[user] = true; err != nil || told[user] != 1 {
			t.Errorf("%s was let in, and stands in the audit %d times, %v", user, told[user], err)
		}
	}
	for _, user := range slices.Concat(answered, said) {
		if !in[user] {
			t.Errorf("%s was not let in, although that was answered, or said in the chat", user)
		}
	}
	t.Logf("%d were let in on the page, %d in the chat; the audit tells of %d", len(answered), len(said), len(told))
	if len(told) > len(in)+3 {
		t.Errorf("the audit tells of %d, %d were let in: more than the kills cut off", len(told), len(in))
	}
}

// TestAdministratorsComeInThroughAnyReplica has two programs on one database behind a load
// balancer: who signs in at one is in at the other and sees what was done at both, and who signs
// out at one is out at the other. All of it stands in one audit.
func TestAdministratorsComeInThroughAnyReplica(t *testing.T) {
	t.Parallel()
	server := &pgtest.Server{}
	w := newHarness(t, openai.Offline{})
	w.env["ONECLAW_STORE"], w.env["ONECLAW_SECRET_KEY"] = server.Database(t), strings.Repeat("ab", 32)
	t.Cleanup(func() { _ = server.Stop() })
	ann := w.person("Ann")
	w.env["ONECLAW_ADMINS"], w.env["ONECLAW_ALLOW"], w.env["ONECLAW_PUBLIC_URL"] = fmt.Sprint("telegram:", ann), "", hookAddress
	var at [2]string
	var bots [2]*process
	for i := range bots {
		listen := freeAddress(t)
		w.env["ONECLAW_DATA_DIR"], w.env["ONECLAW_LISTEN"], at[i] = t.TempDir(), listen, "http://"+listen
		bots[i] = start(t, w.env, "run")
	}
	for _, bot := range bots {
		bot.out.await(t, `"msg":"replica joined"`)
	}
	first := w.visit(nil, ann, at[0])
	second := *first
	second.at = at[1]
	for i, v := range []*visitor{first, &second} {
		if answer := v.send("/admin/people", url.Values{"user": {fmt.Sprint("telegram:7000", i)}, "do": {"user"}}); answer.status != http.StatusOK {
			t.Fatalf("the form at %s is answered with %+v", v.at, answer)
		}
	}
	w.ask(nil, ann, "/people add telegram:80000", nil)
	if answer := first.send("/admin/leave", url.Values{}); answer.status != http.StatusOK {
		t.Errorf("signing out is answered with %+v", answer)
	}
	out(t, first, &second)
	third := w.visit(nil, ann, at[1])
	fourth := *third
	fourth.at = at[0]
	wantIn(t, fourth.see("/admin/people"), "telegram:70000", "telegram:70001", "telegram:80000")
	printed, err := command(t.Context(), t, w.env, "audit", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for line := range strings.Lines(string(printed)) {
		var e audit.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		actions = append(actions, e.Action+" "+e.About)
	}
	slices.Reverse(actions)
	want := "sign-in 203.0.113.7, let in as user telegram:70000, let in as user telegram:70001, let in as user telegram:80000, sign-out 203.0.113.7, sign-in 203.0.113.7"
	if got := strings.Join(actions, ", "); got != want {
		t.Errorf("the audit has\n%s, want\n%s", got, want)
	}
	w.ask(nil, ann, "/admin out", nil)
	out(t, third, &fourth)
}

// The sessions of an administrator end with the role, also if nothing is asked of the pages before they are appointed again.
func TestASessionDoesNotComeBackWithTheRole(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	delete(w.env, "ONECLAW_ALLOW")
	w.env["ONECLAW_LISTEN"] = freeAddress(t)
	ann, bob := w.person("Ann"), w.person("Bob")
	bot := w.run()
	_, code := offered(t, bot)
	wantIn(t, w.ask(bot, ann, "/start "+code, nil), "I am yours")
	wantIn(t, w.ask(bot, ann, fmt.Sprintf("/people admin telegram:%d", bob), nil), "is an administrator now")
	before := w.visit(bot, bob, "")
	unused := adminLinks.FindStringSubmatch(w.ask(bot, bob, "/admin", nil))[2]
	wantIn(t, w.ask(bot, ann, fmt.Sprintf("/people remove telegram:%d", bob), nil), "may no longer talk")
	wantIn(t, w.ask(bot, ann, fmt.Sprintf("/people admin telegram:%d", bob), nil), "is an administrator now")
	out(t, before)
	if answer := before.ask(t.Context(), before.request(http.MethodPost, "/admin/enter", url.Values{"token": {unused}})); len(answer.cookies) > 0 {
		t.Errorf("a link from before lets them in: %+v", answer)
	}
}

// out looks whether visitors are signed out.
func out(t *testing.T, all ...*visitor) {
	t.Helper()
	for _, v := range all {
		if answer := v.ask(t.Context(), v.request(http.MethodGet, "/admin/", nil)); answer.status != http.StatusUnauthorized {
			t.Errorf("who has signed out is answered at %s with %d", v.at, answer.status)
		}
	}
}
