package bridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// clockAt makes every moment the same, so that texts can be compared.
func clockAt(c *bridge.Config) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	c.Now = func() time.Time { return now }
}

// receipts waits until as many jobs are closed: a /why that comes before finds them open.
func (r *harness) receipts(n int) {
	r.t.Helper()
	r.jobs("job/done/", func(all []queue.Job) bool { return len(all) >= n })
}

// stored is what the store has under a prefix.
func (r *harness) stored(prefix string) (all []queue.Job) {
	r.t.Helper()
	for entry, err := range r.cfg.Store.List(r.t.Context(), storage.Range{Prefix: prefix}) {
		if err != nil {
			r.t.Fatal(err)
		}
		var j queue.Job
		if json.Unmarshal(entry.Value, &j) == nil { // what does not decode is replaced soon
			all = append(all, j)
		}
	}
	return all
}

// jobs waits for what the store has under a prefix. It is not for a bubble, whose time stands still
// meanwhile.
func (r *harness) jobs(prefix string, enough func([]queue.Job) bool) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		all := r.stored(prefix)
		if enough(all) {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("the store has only %v", all)
		}
		runtime.Gosched()
	}
}

// mailer loads a group, runs two tools, one of which fails, and answers.
func mailer(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	begun := turn.History[len(turn.History)-1].Time
	at := func(d time.Duration) time.Time { return begun.Add(d) }
	return func(yield func(agent.Message, error) bool) {
		for _, m := range []agent.Message{
			{
				Role: agent.RoleAssistant, Time: at(time.Second), Model: "small", Usage: &agent.Usage{Input: 1000, Cached: 800, Output: 10},
				Calls: []agent.Call{{ID: "1", Name: "load_tool_group", Arguments: `{"group_name":"pdf"}`}},
			},
			{Role: agent.RoleTool, CallID: "1", Tool: "load_tool_group", Status: agent.StatusOK, Time: at(time.Second)},
			{
				Role: agent.RoleAssistant, Time: at(2 * time.Second), Model: "small", Reasoning: "SECRET THOUGHT", Usage: &agent.Usage{Input: 1100, Cached: 1000, Output: 20},
				Calls: []agent.Call{{ID: "1", Name: "pdf_info", Arguments: `{"path":"private.pdf"}`}, {ID: "2", Name: "exec", Arguments: `{}`}},
			},
			{Role: agent.RoleStarted, CallID: "2", Tool: "exec"},
			{Role: agent.RoleTool, CallID: "1", Tool: "pdf_info", Status: agent.StatusOK, Text: "PRIVATE RESULT", Time: at(2500 * time.Millisecond)},
			{Role: agent.RoleTool, CallID: "2", Tool: "exec", Status: agent.StatusError, Code: "permission_denied", Time: at(3 * time.Second)},
			{Role: agent.RoleAssistant, Text: "done\fand more", Final: true, Model: "large", Time: at(4 * time.Second), Usage: &agent.Usage{Input: 1200, Output: 30}},
		} {
			if !yield(m, nil) {
				return
			}
		}
	}
}

// Times are in the zone of the bot, and no key of a job is shown.
func TestWhyShowsTheReceipt(t *testing.T) {
	r := newHarness(t, mailer, clockAt, func(c *bridge.Config) {
		c.Access.Admins, c.Zone = []string{"fake:2"}, func() *time.Location { return time.FixedZone("CET", 3600) }
	})
	question := group("1", "1", "look at *my* file\nplease")
	question.Time = time.Date(2026, 11, 21, 9, 59, 50, 0, time.UTC)
	r.accept(question)
	r.platform.wait(t, 2)
	r.receipts(1)
	r.accept(group("2", "1", "/why"))
	want := "**The last message** “look at \\*my\\* file …”\n\n" +
		"- Answered.\n" +
		"- Received 11:00:00 CET, 10s after it was sent.\n" +
		"- Model: `large`, `small`, 3 replies in 4s.\n" +
		"- Tokens: 3300 in (1800 of them from the provider's cache), 60 out.\n" +
		"- Tool groups loaded: pdf.\n" +
		"- Tools: `pdf_info` (done, 500ms), `exec` (failed: permission_denied, 1s).\n" +
		"- Answer in 2 parts: sent, finished 11:00:00 CET."
	if got := r.platform.wait(t, 3)[2].text; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r.accept(group("3", "2", "/why"))
	if got := r.platform.wait(t, 4)[3].text; got != want {
		t.Errorf("an administrator is shown\n%s", got)
	}
}

// A model may call a tool by any name, and a provider names its models.
func TestNamesInTheReceiptAreNoMarkdown(t *testing.T) {
	t.Parallel()
	const name = "x`[in](https://evil.example)`"
	r := newHarness(t, func(context.Context, agent.Turn) iter.Seq2[agent.Message, error] {
		return func(yield func(agent.Message, error) bool) {
			_ = yield(agent.Message{Role: agent.RoleAssistant, Model: name, Usage: &agent.Usage{Input: 1}, Calls: []agent.Call{{ID: "1", Name: name, Arguments: "{}"}}}, nil) &&
				yield(agent.Message{Role: agent.RoleTool, CallID: "1", Tool: name, Status: agent.StatusError, Code: toolgroups.CodeNotFound}, nil) &&
				yield(agent.Message{Role: agent.RoleAssistant, Text: "done", Final: true}, nil)
		}
	}, clockAt)
	r.accept(direct("1", "hello"))
	r.platform.wait(t, 1)
	r.receipts(1)
	r.accept(direct("2", "/why"))
	got := r.platform.wait(t, 2)[1].text
	for _, want := range []string{"Model: `x'[in](https://evil.example)'`,", "Tools: `x'[in](https://evil.example)'` (failed"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// What happened elsewhere is nobody's business here.
func TestWhyIsAboutThisChatAlone(t *testing.T) {
	r := newHarness(t, echo, clockAt)
	thread := group("1", "1", "in a thread")
	thread.Chat.Thread = "7"
	r.accept(direct("2", "mine"), thread)
	r.platform.wait(t, 2)
	r.receipts(2)
	r.accept(group("3", "1", "/why"))
	if got := r.platform.wait(t, 3)[2].text; !strings.Contains(got, "no message of the last week") || !strings.Contains(got, "mention me") {
		t.Errorf("got %q", got)
	}
	thread.ID, thread.Text = "4", "/why"
	r.accept(thread)
	if got := r.platform.wait(t, 4)[3].text; !strings.Contains(got, "in a thread") {
		t.Errorf("got %q", got)
	}
}

// threaded is a platform on which every message of a thread in which the bot takes part is for it.
type threaded struct{ *platform }

func (threaded) RepliesInThreads() {}

// People are told what becomes of the messages of a group as it is there: with /observe on the bot keeps
// what is not for it.
func TestWhyAndHelpSayWhichMessagesOfAGroupAreKept(t *testing.T) {
	const answers, drops, keeps, thread = "messages that mention me", "I store others only if", "I also keep the last", "In this thread I answer every message."
	for name, tt := range map[string]struct {
		before            []string
		thread            string
		says, saysNeither []string
	}{
		"unobserved":            {nil, "", []string{answers, drops}, []string{keeps, thread}},
		"observed":              {[]string{"/observe on"}, "", []string{answers, keeps, "/observe off"}, []string{drops, thread}},
		"not observed any more": {[]string{"/observe on", "/observe off"}, "", []string{answers, drops}, []string{keeps, thread}},
		"in a thread":           {nil, "7", []string{thread}, []string{answers, drops, keeps}},
		"in a thread, observed": {[]string{"/observe on"}, "7", []string{thread, keeps}, []string{answers, drops}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t, echo, func(c *bridge.Config) {
				c.Access.Admins, c.Platforms = []string{"fake:1"}, []chats.Platform{threaded{c.Platforms[0].(*platform)}}
			})
			for n, text := range append(tt.before, "/why", "/help") {
				m := group(fmt.Sprint(n), "1", text)
				if n >= len(tt.before) {
					m.Chat.Thread = tt.thread
				}
				r.accept(m)
				got := r.platform.wait(t, n+1)[n].text
				if n < len(tt.before) {
					continue
				}
				for _, want := range tt.says {
					wantText(t, got, want)
				}
				for _, no := range tt.saysNeither {
					if strings.Contains(got, no) {
						t.Errorf("%s says %q", text, got)
					}
				}
			}
		})
	}
}

func TestWhyNamesTheReason(t *testing.T) {
	gate := make(chan struct{})
	begun := make(chan struct{}, 10)
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		return func(yield func(agent.Message, error) bool) {
			last := turn.History[len(turn.History)-1]
			switch last.Text {
			case "await":
				begun <- struct{}{}
				select {
				case <-gate:
				case <-ctx.Done():
					yield(agent.Message{}, context.Cause(ctx))
					return
				}
			case "fail":
				yield(agent.Message{}, errors.New("goroutine 1 [running]: INNER DETAIL"))
				return
			}
			yield(agent.Message{Role: agent.RoleAssistant, Text: "re: " + last.Text, Final: true}, nil)
		}
	}, clockAt, func(c *bridge.Config) { c.Limits.MaxWaiting = 1 })
	answers := 0
	next := func() string {
		t.Helper()
		answers++
		return r.platform.wait(t, answers)[answers-1].text
	}
	ask := func(id, want string) {
		t.Helper()
		r.accept(direct(id, "/why"))
		if got := next(); !strings.Contains(got, want) || strings.Contains(got, "INNER") {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
	r.accept(direct("1", "fail"))
	if got := next(); !strings.Contains(got, "went wrong") {
		t.Errorf("got %q", got)
	}
	r.receipts(1)
	ask("2", "No answer because of an error: incident `")
	r.accept(direct("3", "await"))
	<-begun
	ask("4", "I am working on it.")
	r.accept(direct("5", "behind it"))
	ask("6", "It waits for its turn.")
	r.accept(direct("7", "one too many"))
	if got := next(); !strings.Contains(got, "waiting") {
		t.Errorf("got %q", got)
	}
	ask("8", "Not sent to the model; I answered: “1 messages are waiting here already")
	r.accept(direct("9", "/stop"))
	if got := next(); !strings.HasPrefix(got, "Stopped.") {
		t.Errorf("got %q", got)
	}
	r.accept(direct("9a", "await"))
	<-begun
	r.accept(direct("9b", "/stop"))
	if got := next(); !strings.HasPrefix(got, "Stopped.") {
		t.Errorf("got %q", got)
	}
	r.receipts(12)
	ask("10", "a /stop came before the answer")
	r.accept(direct("11", "await"))
	<-begun
	r.accept(direct("12", "/clear"))
	next()
	r.receipts(15)
	ask("13", "a /clear came before the answer")
	close(gate)
}

func TestWhyOfATask(t *testing.T) {
	r := newHarness(t, echo, clockAt)
	if err := r.bridge.Submit(t.Context(), bridge.Submission{Key: "t1", Chat: direct("", "").Chat, User: "1", Direct: true, Title: "Morning news", Text: "tell me"}); err != nil {
		t.Fatal(err)
	}
	r.platform.wait(t, 1)
	r.receipts(1)
	r.accept(direct("1", "/why"))
	if got := r.platform.wait(t, 2)[1].text; !strings.Contains(got, "**The scheduled task** “Morning news”") || !strings.Contains(got, "Answered.") {
		t.Errorf("got %q", got)
	}
}

func TestWhyTellsOfLostAnswers(t *testing.T) {
	t.Parallel()
	r := newHarness(t, echo, clockAt)
	failures := 1
	r.platform.fail = func(_ int, arrived bool) error {
		if arrived && failures > 0 {
			failures--
			return &chats.SendError{Outcome: chats.Unknown, Err: errors.New("lost")}
		}
		return nil
	}
	r.accept(direct("1", "hello"))
	r.platform.wait(t, 2)
	r.receipts(1)
	r.accept(direct("2", "/why"))
	if got := r.platform.wait(t, 3)[2].text; !strings.Contains(got, "sent, marked as a possible repeat") {
		t.Errorf("got %q", got)
	}
}

func TestWhyOfAMessageWithoutAnAnswer(t *testing.T) {
	for name, tt := range map[string]struct{ receipt, want string }{
		"that failed after the model was asked": {`"state":"failed","incident":"abc","answer":{"notice":"That went wrong."}`, "No answer because of an error: incident `abc`."},
		"whose receipt was damaged":             {`"state":"failed"`, "I can no longer read what I stored about it."},
		"whose sender was removed":              {`"state":"barred"`, "Not answered: its sender may no longer talk to me."},
	} {
		r := newHarness(t, echo, clockAt)
		receipt := fmt.Sprintf(`{"message":{"chat":{"platform":"fake","id":"g"},"id":"9","kind":"text","user":"2","text":"hello"},"seq":1,"accepted":"2026-11-21T10:00:00Z","closed":"2026-11-21T10:00:00Z",%s}`, tt.receipt)
		if _, err := r.cfg.Store.Put(t.Context(), "job/done/fake:g/9/text", []byte(receipt), storage.Absent); err != nil {
			t.Fatal(err)
		}
		r.accept(group("10", "1", "/why"))
		if got := r.platform.wait(t, 1)[0].text; !strings.Contains(got, "- "+tt.want) || !strings.Contains(got, "hello") {
			t.Errorf("of a message %s: %q", name, got)
		}
	}
}

func TestWhyOfACallThatIsAskedAbout(t *testing.T) {
	w := &execTools{}
	r := w.guarded(t)
	r.accept(direct("1", "run rm -rf x"))
	card := r.platform.wait(t, 1)[0]
	r.jobs("job/open/", func(all []queue.Job) bool {
		return slices.ContainsFunc(all, func(j queue.Job) bool { return j.Message.ID == "1" && j.State == receipts.Waiting })
	})
	r.accept(direct("2", "/why"))
	if got := r.platform.wait(t, 2)[1].text; !strings.Contains(got, "It waits for an approval") {
		t.Errorf("got %q", got)
	}
	r.accept(pressOn(card, "p1", "1", card.button(t, "Allow once")))
	r.platform.wait(t, 3)
	r.jobs("job/done/", func(all []queue.Job) bool {
		return slices.ContainsFunc(all, func(j queue.Job) bool { return j.Message.ID == "1" && j.Message.Kind == chats.KindText })
	})
	r.accept(direct("3", "/why"))
	if got := r.platform.wait(t, 4)[3].text; !strings.Contains(got, ", approved by fake:1)") || strings.Contains(strings.TrimPrefix(got, "**Your message** “run rm -rf x”"), "rm -rf") {
		t.Errorf("got %q", got)
	}
}
