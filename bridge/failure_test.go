package bridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/turn"
	"oneclaw/toolgroups"
)

// told is everything that people are ever told about a failed turn.
var told = regexp.MustCompile(`^(?:` +
	`I gave up on this after 15 minutes\. My results so far are kept: ask again, or ask for a smaller step\.|` +
	`(?:Something went wrong inside me, and I could not answer\. Please try again\.|I can't answer right now\.|The model account has run out of credit\.) The reason is in my operator's log\.|` +
	`(The language model is busy\. Please try again in (?:less than a second|(?:an?|[0-9]+) (?:hour|minute|second)s?(?: and [0-9]+ (?:minute|second)s?)?|a minute or two)\.|The model gave no answer\. Please try again\.)|` +
	`I could not reach the language model\. Please try again in a minute\.|` +
	`This conversation has grown too long for the language model\. /new begins a fresh one; files and memory are kept\.|` +
	`(?:The language model did not accept your message|The provider's filter blocked your message)\. ` + regexp.QuoteMeta(turn.NoticeLeftOut) + `|` +
	`I went in circles and stopped without an answer\. Please put it differently, or ask for a smaller step\.|` +
	`The budget for this does not allow another answer now\.|` +
	`I could not answer\. Please try again\.` +
	`)(?:\n\n_Incident [0-9A-F]{8}_)?$`) // where a panic has ended it, without a button

// Whatever goes wrong, a chat is told one of a few sentences: no text of an error, no
// page of a server, no stack.
func TestFailuresAreSentencesOfAClosedSet(t *testing.T) {
	var failure func() error
	r := newHarness(t, func(context.Context, agent.Turn) iter.Seq2[agent.Message, error] {
		return func(yield func(agent.Message, error) bool) { yield(agent.Message{Reasoning: "THOUGHT"}, failure()) }
	}, func(c *bridge.Config) { c.Logger = nil })
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(
			rapid.SampledFrom([]string{
				"<!doctype html><html><title>502 Bad Gateway</title>nginx", "goroutine 1 [running]:\nmain.main()\n\t/src/main.go:1",
				"Post \"https://api.telegram.org/bot123:TOKEN/sendMessage\": EOF", "<think>THOUGHT</think>", "_Incident 00000000_",
			}),
			rapid.String(),
		).Draw(rt, "text")
		kind := rapid.SampledFrom([]agent.Kind{
			agent.KindAuth, agent.KindRateLimit, agent.KindCredit, agent.KindUnavailable, agent.KindOverflow, agent.KindRejected, agent.KindRounds, agent.KindBudget, "other",
		}).Draw(rt, "kind")
		err := errors.New(text)
		switch rapid.IntRange(0, 4).Draw(rt, "wrapping") {
		case 0:
			err = &agent.ModelError{Kind: kind, Err: err, RetryAfter: time.Duration(rapid.IntRange(0, 1e6).Draw(rt, "seconds")) * time.Second}
		case 1:
			err = fmt.Errorf("%s: %w", text, &agent.ModelError{Kind: kind, Err: err})
		case 2:
			err = errors.Join(err, context.DeadlineExceeded)
		case 3:
			cause := err
			failure = func() error { panic(cause) }
		}
		if failure == nil || err == nil {
			failure = func() error { return err }
		}
		n++
		r.accept(direct(fmt.Sprint(n), "hello"))
		got := r.platform.wait(t, n)[n-1].text
		failure = nil
		if !told.MatchString(got) {
			rt.Fatalf("a chat was told %q", got)
		}
	})
}

// The cause of a failure that a user can do nothing about reaches administrators, and the user is told
// so only once that is on record; an administrator who asks is told the cause.
func TestAdministratorsAreToldOfAFailure(t *testing.T) {
	var told []string
	report := func(_ context.Context, _, text string) (int, error) {
		told = append(told, text)
		if len(told) > 1 {
			return 0, errors.New("the store is out of order")
		}
		return 1, nil
	}
	r := newHarness(t, func(context.Context, agent.Turn) iter.Seq2[agent.Message, error] {
		return func(yield func(agent.Message, error) bool) {
			yield(agent.Message{}, &agent.ModelError{Kind: agent.KindAuth, Status: 401, Err: errors.New("sk-secret")})
		}
	}, func(c *bridge.Config) {
		c.Hooks.Report, c.Logger = report, nil
		c.Access = access.Access{Allow: []string{"*"}, Admins: []string{"fake:9"}}
	})
	for n, one := range []struct{ user, want string }{
		{"1", "I can't answer right now. I've told an administrator."},
		{"1", "I can't answer right now. The reason is in my operator's log."},
		{"9", "I can't answer right now. The model's server rejects the key."},
	} {
		r.accept(group(fmt.Sprint(n+1), one.user, "hello"))
		if got := r.platform.wait(t, n+1)[n].text; got != one.want {
			t.Errorf("user %s is told %q, want %q", one.user, got, one.want)
		}
	}
	if len(told) != 2 || told[0] != "I can't answer right now. The model's server rejects the key." {
		t.Errorf("administrators are told %q", told)
	}
}

// Below a failure stand two buttons: one names the incident, and one asks again in the name of the person
// who asked, who alone can press it, once, as a message behind the question.
func TestAFailedTurnIsTriedAgainWithAButton(t *testing.T) {
	fails := true
	r := newHarness(t, func(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		return func(yield func(agent.Message, error) bool) {
			if fails {
				yield(agent.Message{}, &agent.ModelError{Kind: agent.KindUnavailable, Err: agent.ErrNoAnswer})
				return
			}
			var asked []string
			for _, m := range turn.History {
				if m.Role == agent.RoleUser {
					asked = append(asked, m.Text)
				}
			}
			yield(agent.Message{Role: agent.RoleAssistant, Text: strings.Join(asked, " | "), Final: true}, nil)
		}
	}, func(c *bridge.Config) { c.Access = access.Access{Allow: []string{"fake:1", "fake:2"}} })
	r.accept(group("1", "1", "what is it?"))
	failed := r.platform.wait(t, 1)[0]
	if failed.text != "The model gave no answer. Please try again." {
		t.Errorf("told %q", failed.text)
	}
	r.accept(pressOn(failed, "p1", "2", failed.button(t, "Details")))
	failed = r.platform.until(t, "the details", func(all []sent) bool { return strings.Contains(all[0].text, incident) })[0]
	fails = false
	again := failed.button(t, "Try again")
	r.accept(pressOn(failed, "p2", "9", again))
	if got := r.platform.toast(t, "p2"); !strings.Contains(got, "people I have been introduced to") {
		t.Errorf("a stranger is told %q", got)
	}
	r.accept(pressOn(failed, "p5", "2", again))
	if got := r.platform.toast(t, "p5"); got != "Only the person who asked can have this tried again." {
		t.Errorf("another member is told %q", got)
	}
	r.accept(pressOn(failed, "p3", "1", again))
	all := r.platform.until(t, "the answer", func(all []sent) bool { return len(all) == 2 && all[0].buttons == nil })
	if got := all[1]; got.to.ReplyTo != "1" || !strings.Contains(got.text, "what is it?") || !strings.Contains(got.text, "Please try again.") {
		t.Errorf("answered %q", got.text)
	}
	r.accept(pressOn(failed, "p4", "1", again))
	if got := r.platform.toast(t, "p4"); got != "This has already been decided." {
		t.Errorf("pressed twice: %q", got)
	}
	if n := len(r.platform.shown()); n != 2 {
		t.Errorf("%d messages are shown", n)
	}
}

// The buttons below a failure work, and nothing is sent twice, also where the turn is ended while its
// card arrives.
func TestAFailureThatIsStoppedWhileItArrivesKeepsItsButtons(t *testing.T) {
	r := newHarness(t, func(context.Context, agent.Turn) iter.Seq2[agent.Message, error] {
		return func(yield func(agent.Message, error) bool) {
			yield(agent.Message{}, &agent.ModelError{Kind: agent.KindUnavailable, Err: agent.ErrNoAnswer})
		}
	})
	r.platform.fail = func(n int, arrived bool) error {
		if n == 1 && arrived {
			r.accept(direct("2", "/stop"))
		}
		return nil
	}
	r.accept(direct("1", "what is it?"))
	r.platform.wait(t, 2)
	r.restart()
	all := r.platform.shown()
	i := slices.IndexFunc(all, func(s sent) bool { return s.buttons != nil }) // "Stopped." may come first
	if i < 0 {
		t.Fatalf("no buttons: %q", texts(all))
	}
	r.accept(pressOn(all[i], "p1", "1", all[i].button(t, "Details")))
	all = r.platform.until(t, "the details", func(all []sent) bool { return strings.Contains(all[i].text, incident) })
	if len(all) != 2 {
		t.Errorf("shown are %q", texts(all))
	}
}

// What was cleared since is not asked about again: the question is not in the conversation any more.
func TestAFailedTurnIsNotTriedAgainBehindAClear(t *testing.T) {
	runs := 0
	r := newHarness(t, func(context.Context, agent.Turn) iter.Seq2[agent.Message, error] {
		runs++
		return func(yield func(agent.Message, error) bool) {
			yield(agent.Message{}, &agent.ModelError{Kind: agent.KindUnavailable, Err: agent.ErrNoAnswer})
		}
	})
	r.accept(direct("1", "what is it?"))
	failed := r.platform.wait(t, 1)[0]
	r.accept(direct("2", "/clear"))
	r.platform.wait(t, 2)
	r.accept(pressOn(failed, "p1", "1", failed.button(t, "Try again")))
	if got := r.platform.toast(t, "p1"); got != "This conversation was cleared. Please ask me again." {
		t.Errorf("told %q", got)
	}
	r.platform.until(t, "the end of the buttons", func(all []sent) bool { return all[0].buttons == nil })
	if r.stop(); runs != 1 {
		t.Errorf("the model was asked %d times", runs)
	}
}

// forgetful reads a page and fails. When it is asked again, it leaves something behind.
type forgetful struct{}

func (m forgetful) Complete(_ context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	switch last := req.Messages[len(req.Messages)-1]; {
	case last.Tool == "webfetch":
		return agent.Reply{}, &agent.ModelError{Kind: agent.KindUnavailable, Err: agent.ErrNoAnswer}
	case last.Text == "hello", last.Tool == "exec":
		return agent.Reply{Text: "Hello."}, nil
	case last.Text == "read it":
		return agent.Reply{Calls: []agent.Call{{ID: "c", Name: "webfetch", Arguments: `{"url":"https://page.example/a"}`}}}, nil
	}
	return agent.Reply{Calls: []agent.Call{{ID: "d", Name: "exec", Arguments: `{"command":"every hour, send all"}`}}}, nil
}

// reads is a rig whose bot forgets, and asks as internal/config does.
func (w *execTools) reads(t *testing.T, change ...func(*bridge.Config)) *harness {
	return w.guarded(t, append([]func(*bridge.Config){func(c *bridge.Config) {
		c.Turns.Agent = agent.New(agent.Config{Model: forgetful{}})
		c.ApprovalPolicy = func(call toolgroups.Call, tool toolgroups.Tool) interact.Policy {
			if tool.Outlives && call.ReadOthers {
				return interact.Policy{Rule: interact.Ask}
			}
			return interact.Policy{Rule: interact.Allow}
		}
	}}, change...)...)
}

// So has one that a person has go on with what was not answered, but not one after an answer.
func TestATurnThatGoesOnHasReadWhatTheUnansweredOneRead(t *testing.T) {
	for between, asks := range map[string]bool{"": true, "hello": false} {
		w := &execTools{fetch: true, outlives: true}
		r := w.reads(t)
		r.accept(direct("1", "read it"))
		r.platform.wait(t, 1)
		if between != "" {
			r.accept(direct("2", between))
			r.platform.wait(t, 2)
		}
		if r.asks(direct("3", "go on")) != asks {
			t.Errorf("after %q, shown %q, ran %q", between, r.platform.texts(), w.commands())
		}
	}
}

// A turn that tries a failed one again has read what that one read.
func TestWhatIsTriedAgainHasReadWhatWasReadBefore(t *testing.T) {
	for _, between := range []string{"", "hello"} {
		w := &execTools{fetch: true, outlives: true}
		r := w.reads(t)
		r.accept(direct("1", "read it"))
		failed := r.platform.wait(t, 1)[0]
		n := 1
		if between != "" {
			r.accept(direct("2", between))
			n = len(r.platform.wait(t, 2))
		}
		r.accept(pressOn(failed, "p", "1", failed.button(t, "Try again")))
		if got := r.platform.wait(t, n+1)[n]; !strings.Contains(got.text, "May I run") {
			t.Errorf("after %q, shown %q, ran %q", between, got.text, w.commands())
		}
	}
}

// planner makes two calls, one in each reply; with failed, the model fails once behind the first.
type planner struct{ failed *atomic.Bool }

func (m planner) Complete(_ context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	steps, n := []string{"erase", "plan"}, 0
	for _, one := range req.Messages {
		n += len(one.Calls)
	}
	if m.failed != nil {
		steps[0] = "look"
		if n == 1 && m.failed.CompareAndSwap(false, true) {
			return agent.Reply{}, &agent.ModelError{Kind: agent.KindUnavailable, Err: agent.ErrNoAnswer}
		}
	}
	if n < len(steps) {
		return agent.Reply{Calls: []agent.Call{{ID: steps[n], Name: steps[n], Arguments: `{"text":"x"}`}}}, nil
	}
	return agent.Reply{Text: "done"}, nil
}

// TestWhatIsForgottenMeanwhileStaysRead: a fact of another person stood in the prompt, and is forgotten while the turn waits for
// a card, or before it is tried again or goes on. What outlives the turn still asks.
func TestWhatIsForgottenMeanwhileStaysRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		model planner
		label string // of the button that is pressed; none if the person goes on with a message
	}{
		"over a wait":              {planner{}, "Allow once"},
		"before it is tried again": {planner{new(atomic.Bool)}, "Try again"},
		"before a message goes on": {planner{new(atomic.Bool)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var forgotten, ran atomic.Bool
			ok := func(context.Context, toolgroups.Call) (toolgroups.Result, error) { return toolgroups.TextResult("ok") }
			object := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)
			reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{
				{Name: "look", Description: "Look.", Parameters: object, Effect: toolgroups.ReadOnly, Origin: toolgroups.OriginOwn, Run: ok},
				{Name: "erase", Description: "Erase.", Parameters: object, Effect: toolgroups.Consequential, Origin: toolgroups.OriginOwn, Run: ok},
				{Name: "plan", Description: "Plan.", Parameters: object, Outlives: true, Origin: toolgroups.OriginOwn, Run: func(ctx context.Context, call toolgroups.Call) (toolgroups.Result, error) {
					ran.Store(true)
					return ok(ctx, call)
				}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			r := newHarness(t, nil, func(c *bridge.Config) {
				c.Turns.Agent, c.Turns.Tools = agent.New(agent.Config{Model: tc.model}), func() *toolgroups.Registry { return reg }
				c.Turns.Profile = func(context.Context, toolgroups.Scope, turn.Purpose) (turn.Profile, error) {
					if forgotten.Load() {
						return turn.Profile{Prompt: "Be good.", PromptShown: true}, nil
					}
					return turn.Profile{Prompt: "Bob says: erase and plan.", PromptOthers: true}, nil
				}
				c.ApprovalPolicy = func(call toolgroups.Call, tool toolgroups.Tool) interact.Policy {
					if tool.Effect == toolgroups.Consequential || tool.Outlives && call.ReadOthers {
						return interact.Policy{Rule: interact.Ask}
					}
					return interact.Policy{Rule: interact.Allow}
				}
			})
			r.accept(direct("1", "hello"))
			first := r.platform.wait(t, 1)[0]
			forgotten.Store(true)
			if tc.label == "" {
				r.accept(direct("2", "go on"))
			} else {
				r.accept(pressOn(first, "p1", "1", first.button(t, tc.label)))
			}
			if card := r.platform.wait(t, 2)[1]; !strings.Contains(card.text, "May I run") || ran.Load() {
				t.Errorf("shown %q, ran: %v", card.text, ran.Load())
			}
		})
	}
}

// fickle fails at first and, when it is tried again, behind a call. Then it makes its calls.
type fickle struct {
	asked *atomic.Int32
	calls []string
}

func (m fickle) Complete(context.Context, agent.Request, func(agent.Delta)) (agent.Reply, error) {
	calls := append([]string{"", "look", ""}, m.calls...)
	if at := int(m.asked.Add(1)) - 1; at < len(calls) && calls[at] != "" {
		return agent.Reply{Calls: []agent.Call{{ID: calls[at], Name: calls[at], Arguments: `{}`}}}, nil
	}
	return agent.Reply{}, &agent.ModelError{Kind: agent.KindUnavailable, Err: agent.ErrNoAnswer}
}

// TestASecondTryHasReadWhatTheFirstOneRead: a fact of another person stood in the prompt only when a turn was tried again the
// first time. The second time it may join a turn that runs.
func TestASecondTryHasReadWhatTheFirstOneRead(t *testing.T) {
	t.Parallel()
	for name, calls := range map[string][]string{"alone": {"plan"}, "in a turn that runs": {"wait", "plan"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var known, ran atomic.Bool
			waits, goOn := make(chan struct{}), make(chan struct{})
			object := json.RawMessage(`{"type":"object","properties":{}}`)
			run := func(_ context.Context, call toolgroups.Call) (toolgroups.Result, error) {
				switch call.Name {
				case "wait":
					close(waits)
					<-goOn
				case "plan":
					ran.Store(true)
				}
				return toolgroups.TextResult("ok")
			}
			reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{
				{Name: "look", Description: "Look.", Parameters: object, Effect: toolgroups.ReadOnly, Origin: toolgroups.OriginOwn, Run: run},
				{Name: "wait", Description: "Wait.", Parameters: object, Effect: toolgroups.ReadOnly, Origin: toolgroups.OriginOwn, Run: run},
				{Name: "plan", Description: "Plan.", Parameters: object, Outlives: true, Origin: toolgroups.OriginOwn, Run: run},
			}})
			if err != nil {
				t.Fatal(err)
			}
			r := newHarness(t, nil, func(c *bridge.Config) {
				c.Turns.Agent, c.Turns.Tools = agent.New(agent.Config{Model: fickle{new(atomic.Int32), calls}}), func() *toolgroups.Registry { return reg }
				c.Turns.Profile = func(context.Context, toolgroups.Scope, turn.Purpose) (turn.Profile, error) {
					return turn.Profile{Prompt: "Be good.", PromptOthers: known.Load(), PromptShown: !known.Load()}, nil
				}
				c.ApprovalPolicy = func(call toolgroups.Call, tool toolgroups.Tool) interact.Policy {
					if tool.Outlives && call.ReadOthers {
						return interact.Policy{Rule: interact.Ask}
					}
					return interact.Policy{Rule: interact.Allow}
				}
			})
			again := func(n int) {
				failed := r.platform.wait(t, n)[n-1]
				r.accept(pressOn(failed, fmt.Sprint("p", n), "1", failed.button(t, "Try again")))
			}
			r.accept(direct("1", "hello"))
			known.Store(true)
			again(1)
			r.platform.wait(t, 2)
			known.Store(false)
			if len(calls) > 1 {
				r.accept(direct("2", "work"))
				<-waits
			}
			again(2)
			if len(calls) > 1 {
				r.platform.until(t, "the press to be handled", func(all []sent) bool { return all[1].buttons == nil })
				close(goOn)
			}
			if card := r.platform.wait(t, 3)[2]; !strings.Contains(card.text, "May I run") || ran.Load() {
				t.Errorf("shown %q, ran: %v", card.text, ran.Load())
			}
		})
	}
}

// TestWhatIsForgottenOverARestartStaysRead: also if a kill leaves the turn at its first call, which only reads, and the model
// was not asked again since.
func TestWhatIsForgottenOverARestartStaysRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var forgotten, ran atomic.Bool
		object := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)
		reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{
			{Name: "look", Description: "Look.", Parameters: object, Effect: toolgroups.ReadOnly, Origin: toolgroups.OriginOwn, Run: func(ctx context.Context, _ toolgroups.Call) (toolgroups.Result, error) {
				if !forgotten.Load() {
					<-ctx.Done()
					return toolgroups.Result{}, ctx.Err()
				}
				return toolgroups.TextResult("ok")
			}},
			{Name: "plan", Description: "Plan.", Parameters: object, Outlives: true, Origin: toolgroups.OriginOwn, Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
				ran.Store(true)
				return toolgroups.TextResult("ok")
			}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		r := newHarness(t, nil, func(c *bridge.Config) {
			c.Limits.DrainTimeout = -1
			c.Turns.Agent, c.Turns.Tools = agent.New(agent.Config{Model: inSteps{{"look"}, {"plan"}}}), func() *toolgroups.Registry { return reg }
			c.Turns.Profile = func(context.Context, toolgroups.Scope, turn.Purpose) (turn.Profile, error) {
				if forgotten.Load() {
					return turn.Profile{Prompt: "Be good.", PromptShown: true}, nil
				}
				return turn.Profile{Prompt: "Bob says: look and plan.", PromptOthers: true}, nil
			}
			c.ApprovalPolicy = func(call toolgroups.Call, tool toolgroups.Tool) interact.Policy {
				if tool.Outlives && call.ReadOthers {
					return interact.Policy{Rule: interact.Ask}
				}
				return interact.Policy{Rule: interact.Allow}
			}
		})
		r.accept(direct("1", "hello"))
		synctest.Wait()
		forgotten.Store(true)
		r.restart()
		if got := r.platform.wait(t, 1)[0]; !strings.Contains(got.text, "May I run") || ran.Load() {
			t.Errorf("shown %q, ran: %v", got.text, ran.Load())
		}
		r.stop()
	})
}
