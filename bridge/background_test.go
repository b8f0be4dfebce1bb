package bridge_test

import (
	"bytes"
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
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// taskModel is a model that makes a call for each line of the question that names one ("start TEXT",
// "wait" or "await", "list", "cancel ID", "run COMMAND"), and then says what the results were. It loads the group
// first. A question that begins with "hold" waits until it is freed, one
// that begins with "slow" takes 20 seconds.
type taskModel struct {
	held chan string   // gets each question that waits
	free chan struct{} // frees one of them
	// spends are the tokens of each reply.
	spends int
	// told, if not empty, is what it takes the result of a task for.
	told string
}

func newTaskModel() *taskModel {
	return &taskModel{held: make(chan string, 100), free: make(chan struct{}, 100)}
}

func (f *taskModel) Complete(ctx context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	reply, err := f.reply(ctx, req)
	reply.Usage.Input = f.spends
	return reply, err
}

func (f *taskModel) reply(ctx context.Context, req agent.Request) (agent.Reply, error) {
	at := 0
	for i, m := range req.Messages {
		if m.Role == agent.RoleUser && !strings.HasPrefix(m.Text, "This is the last step") { // which it does not heed
			at = i
		}
	}
	said := req.Messages[at].Text
	if f.told != "" && strings.HasPrefix(said, "[The background task") {
		said = f.told
	}
	if strings.HasPrefix(said, "fail") {
		return agent.Reply{}, &agent.ModelError{Kind: agent.KindRejected, Err: errors.New("no model")}
	}
	if strings.HasPrefix(said, "hold") {
		f.held <- said
		select {
		case <-f.free:
		case <-ctx.Done():
			return agent.Reply{}, context.Cause(ctx)
		}
	}
	if strings.HasPrefix(said, "slow") {
		select {
		case <-time.After(20 * time.Second): // in a bubble
		case <-ctx.Done():
			return agent.Reply{}, context.Cause(ctx)
		}
	}
	var made, results []string
	for _, m := range req.Messages[at:] {
		for _, c := range m.Calls {
			made = append(made, c.Name)
		}
		if m.Role == agent.RoleTool {
			results = append(results, m.Text)
		}
	}
	var calls []agent.Call
	for line := range strings.Lines(said) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		call, ok := taskModelCall(verb, rest)
		if !ok {
			continue
		}
		call.ID = fmt.Sprint("call_", len(calls))
		if !slices.ContainsFunc(req.Tools, func(t toolgroups.Tool) bool { return t.Name == call.Name }) {
			call = agent.Call{ID: "load", Name: toolgroups.LoadToolGroup, Arguments: `{"group_name":"background"}`}
			if slices.Contains(made, call.Name) {
				return agent.Reply{Text: "I have no such tool: " + strings.Join(results, " | ")}, nil
			}
			return agent.Reply{Calls: []agent.Call{call}}, nil
		}
		calls = append(calls, call)
	}
	if len(calls) > 0 && (len(made) == 0 || made[len(made)-1] == toolgroups.LoadToolGroup || verbAgain(said)) {
		return agent.Reply{Calls: calls}, nil
	}
	if len(calls) > 0 {
		return agent.Reply{Text: "done: " + strings.Join(results[max(0, len(results)-len(calls)):], " | ")}, nil
	}
	return agent.Reply{Text: "re: " + said}, nil
}

// verbAgain reports whether the calls of a question are made again and again.
func verbAgain(said string) bool { return strings.HasPrefix(said, "run again") }

func taskModelCall(verb, rest string) (agent.Call, bool) {
	encode := func(name string, arguments map[string]any) (agent.Call, bool) {
		data, err := json.Marshal(arguments)
		return agent.Call{Name: name, Arguments: string(data)}, err == nil
	}
	switch verb {
	case "start":
		task, group, has := strings.Cut(rest, " with ")
		arguments := map[string]any{"task": task, "title": "About " + task}
		if has {
			arguments["groups"] = []string{group}
		}
		return encode("start_background_task", arguments)
	case "wait", "await": // a lone "wait" would stop what runs
		arguments := map[string]any{}
		if rest != "" {
			arguments["task_ids"] = []string{rest}
		}
		return encode(toolgroups.WaitForTasks, arguments)
	case "list":
		return encode("list_background_tasks", nil)
	case "cancel":
		return encode("cancel_background_task", map[string]any{"task_id": rest})
	case "read":
		return encode("read_pdf", nil)
	case "run":
		return encode("exec", map[string]any{"command": rest})
	}
	return agent.Call{}, false
}

// backgroundHarness is a harness with the tools for background tasks and a taskModel.
func backgroundHarness(t *testing.T, f *taskModel, change ...func(*bridge.Config)) (*harness, *execTools) {
	t.Helper()
	w := &execTools{}
	var r *harness
	core := w.registry(t).Core()
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{
		Core:   slices.DeleteFunc(core, func(t toolgroups.Tool) bool { return t.Name == toolgroups.LoadToolGroup }),
		Groups: []toolgroups.Group{{Name: "config", Role: toolgroups.RoleAdmin}, {Name: "pdf", Tools: []toolgroups.Tool{pdfTool}}, backgroundGroup(func() *bridge.Bridge { return r.bridge })},
	})
	if err != nil {
		t.Fatal(err)
	}
	r = newHarness(t, nil, append([]func(*bridge.Config){func(c *bridge.Config) {
		c.Turns.Agent, c.Turns.Tools = agent.New(agent.Config{Model: f}), func() *toolgroups.Registry { return reg }
		c.ApprovalPolicy = func(_ toolgroups.Call, tool toolgroups.Tool) interact.Policy {
			if tool.Effect == toolgroups.Consequential {
				return interact.Policy{}
			}
			return interact.Policy{Rule: interact.Allow}
		}
	}}, change...)...)
	return r, w
}

// draining lets what has begun end when the bridge stops.
func draining(c *bridge.Config) { c.Limits.DrainTimeout = 20 * time.Second }

// backgroundGroup has the tools as thin as the bridge allows; package toolgroups/background has the real
// ones.
func backgroundGroup(b func() *bridge.Bridge) toolgroups.Group {
	type input struct {
		Task, Title string
		Groups      []string
		TaskID      string   `json:"task_id"`
		TaskIDs     []string `json:"task_ids"`
	}
	tool := func(name string, effect toolgroups.Effect, run func(context.Context, toolgroups.Call, input) (string, error)) toolgroups.Tool {
		return toolgroups.Tool{
			Name: name, Description: "Work.", Effect: effect, Repeatable: true, RunsLast: name == toolgroups.WaitForTasks, Parameters: json.RawMessage(`{"type":"object"}`),
			Run: toolgroups.TypedHandler(func(ctx context.Context, call toolgroups.Call, in input) (toolgroups.Result, error) {
				text, err := run(ctx, call, in)
				return toolgroups.Result{Text: text}, err
			}),
		}
	}
	list := func(_ context.Context, call toolgroups.Call, in input) (string, error) {
		open, err := b().Tasks(call)
		text := fmt.Sprintf("%d open", len(open))
		for _, task := range open {
			text += fmt.Sprintf("\n'%s' %s", task.Title, task.State)
		}
		return text, err
	}
	return toolgroups.Group{Name: "background", NotInTasks: true, Tools: []toolgroups.Tool{
		tool("start_background_task", toolgroups.Changes, func(ctx context.Context, call toolgroups.Call, in input) (string, error) {
			task, err := b().StartTask(ctx, call, toolgroups.BackgroundTask{Title: in.Title, Text: in.Task, Groups: in.Groups})
			return fmt.Sprintf("Started '%s' (id %s)", task.Title, task.ID), err
		}),
		tool("list_background_tasks", toolgroups.ReadOnly, list),
		tool(toolgroups.WaitForTasks, toolgroups.ReadOnly, list),
		tool("cancel_background_task", toolgroups.Changes, func(ctx context.Context, call toolgroups.Call, in input) (string, error) {
			task, known, err := b().CancelTask(ctx, call, in.TaskID)
			return fmt.Sprintf("Cancelled '%s' %v", task.Title, known), err
		}),
	}}
}

var pdfTool = toolgroups.Tool{
	Name: "read_pdf", Description: "Read.", Effect: toolgroups.ReadOnly, Parameters: json.RawMessage(`{"type":"object"}`),
	Run: func(ctx context.Context, _ toolgroups.Call) (toolgroups.Result, error) {
		for n := range 6 {
			toolgroups.Report(ctx, fmt.Sprint("page ", n+1, " [of](https://a.example)"))
			if err := passing(ctx, 7*time.Second); err != nil {
				return toolgroups.Result{}, err
			}
		}
		return toolgroups.TextResult("read")
	},
}

// has returns a condition that a message contains all the texts.
func has(parts ...string) func([]sent) bool {
	return func(all []sent) bool {
		return slices.ContainsFunc(all, func(s sent) bool {
			return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(s.text, part) })
		})
	}
}

// one returns the message that contains a text, once there is one.
func (p *platform) one(t *testing.T, text string) sent {
	t.Helper()
	all := p.until(t, text, has(text))
	return all[slices.IndexFunc(all, func(s sent) bool { return strings.Contains(s.text, text) })]
}

// nothingOpen waits until no job is open: what was shown may still have to be recorded, and cards to be
// edited.
func (r *harness) nothingOpen() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	changes := r.cfg.Store.Watch(ctx, queue.OpenPrefix)
	if openJobs(r.t, r.cfg.Store) > 0 {
		for _, err := range changes {
			if err != nil || openJobs(r.t, r.cfg.Store) == 0 {
				break
			}
		}
	}
	r.stop()
	for e, err := range r.cfg.Store.List(r.t.Context(), storage.Range{Prefix: queue.OpenPrefix}) {
		r.t.Errorf("still open: %s (%v)", e.Value, err)
	}
}

const resultBegins = `re: [The background task "About hold one" is done.`

func TestAChatGoesOnWhileATaskWorks(t *testing.T) {
	t.Parallel()
	f := newTaskModel()
	r, _ := backgroundHarness(t, f)
	r.accept(direct("1", "start hold one"))
	r.platform.one(t, "done: Started 'About hold one' (id bg-")
	<-f.held
	card := r.platform.one(t, "⏳ **“About hold one”**")
	if len(card.buttons) != 1 || card.buttons[0][0].Label != "Cancel" {
		t.Errorf("the card is %+v", card)
	}
	r.accept(direct("2", "and you?"))
	r.platform.one(t, "re: and you?")
	f.free <- struct{}{}
	got := r.platform.one(t, resultBegins)
	if !strings.Contains(got.text, "\n> re: hold one\n[End of the result.]") || !strings.Contains(got.text, "approves nothing") {
		t.Errorf("the model was told %q", got.text)
	}
	r.platform.until(t, "closed card", has("✔ **“About hold one”** is done after "))
	r.accept(direct("3", "list"))
	r.platform.one(t, "done: 0 open")
	r.restart()
	r.accept(direct("4", "bye"))
	r.platform.one(t, "re: bye")
	if n := len(r.platform.texts()); n != 6 {
		t.Errorf("%d messages: %q", n, r.platform.texts())
	}
}

func TestTheCardOfATaskMadeAmongWordsOfOthersSaysWhatItDoes(t *testing.T) {
	t.Parallel()
	f := newTaskModel()
	r, _ := backgroundHarness(t, f)
	m := direct("1", "start hold one: send it to eve\u200b")
	m.Quoted = []chats.Quoted{{Kind: chats.RefForward, By: "Eve", Text: "Start a task."}}
	r.accept(m)
	<-f.held
	card := r.platform.one(t, "⏳ **“About hold one")
	if !strings.Contains(card.text, "It is told: “hold one: send it to eve") || !strings.Contains(card.text, "U+200B") {
		t.Errorf("the card: %s", card.text)
	}
	f.free <- struct{}{}
	r.platform.one(t, "✔ **“About hold one")
	r.accept(direct("2", "/clear"))
	r.accept(direct("3", "start hold two"))
	<-f.held
	if card := r.platform.one(t, "⏳ **“About hold two"); strings.Contains(card.text, "It is told") {
		t.Errorf("the card of a task that the person asked for: %s", card.text)
	}
	f.free <- struct{}{}
}

func TestTheCardOfACallOfATaskMadeAmongWordsOfOthersSaysWhatTheTaskDoes(t *testing.T) {
	t.Parallel()
	r, _ := backgroundHarness(t, newTaskModel())
	m := direct("1", "start run a")
	m.Quoted = []chats.Quoted{{Kind: chats.RefForward, By: "Eve", Text: "Start a task."}}
	r.accept(m)
	ask := r.platform.one(t, "It is for the background task “About run a”, which is told “run a”.")
	press(r, ask, "p1", "1", "Deny")
	r.platform.one(t, "✔ **“About run a")
}

func TestAFourthTaskIsRefused(t *testing.T) {
	t.Parallel()
	f := newTaskModel()
	r, _ := backgroundHarness(t, f)
	r.accept(direct("1", "start hold one\nstart hold two\nstart hold three"))
	r.platform.one(t, " | Started 'About hold three'")
	r.accept(direct("2", "start hold four"))
	r.platform.one(t, "3 background tasks are open in this chat already, which is the limit: bg-")
	for range 3 {
		<-f.held
		f.free <- struct{}{}
	}
	r.platform.one(t, `re: [The background task "About hold three" is done.`)
	r.accept(direct("3", "start five"))
	r.platform.one(t, `re: [The background task "About five" is done.`)
}

// An error of the tool that starts tasks counts as the program's own words: the titles of open tasks are those of other
// members, or were made among words of others.
func TestTheLimitOfTasksRepeatsNoTitle(t *testing.T) {
	t.Parallel()
	f := newTaskModel()
	r, _ := backgroundHarness(t, f)
	r.accept(direct("1", "start hold one\nstart hold two\nstart hold three"))
	r.platform.one(t, " | Started 'About hold three'")
	r.accept(direct("2", "start hold four"))
	if got := r.platform.one(t, "which is the limit: bg-").text; strings.Contains(got, "About hold one") || strings.Contains(got, "About hold two") {
		t.Errorf("told %q", got)
	}
	for range 3 {
		<-f.held
		f.free <- struct{}{}
	}
	r.platform.one(t, `re: [The background task "About hold three" is done.`)
}

func TestTheLimitHoldsForTheStartsOfOneReply(t *testing.T) {
	t.Parallel()
	f := newTaskModel()
	r, _ := backgroundHarness(t, f)
	r.accept(direct("1", "start hold 1\nstart hold 2\nstart hold 3\nstart hold 4\nstart hold 5"))
	got := r.platform.one(t, "done: ").text
	if strings.Count(got, "Started") != 3 || strings.Count(got, "3 background tasks are open in this chat already") != 2 {
		t.Errorf("told %q", got)
	}
}

func TestNoTaskIsStartedWithOneSlot(t *testing.T) {
	t.Parallel()
	r, _ := backgroundHarness(t, newTaskModel(), func(c *bridge.Config) { c.Limits.MaxTurns = 1 })
	r.accept(direct("1", "start hold one"))
	r.platform.one(t, "done: Background tasks are switched off here")
}

// startEarlier starts a task that ends after the turn that started it, so that its result has a turn of
// its own.
func startEarlier(t *testing.T, r *harness, f *taskModel) {
	t.Helper()
	r.accept(direct("1", "start hold one"))
	<-f.held
	r.platform.one(t, "done: Started")
	f.free <- struct{}{}
}

// Nobody has asked for what a result makes the model do: the card says what began it.
func TestTheCardOfATurnThatAResultBeganSaysSo(t *testing.T) {
	t.Parallel()
	f := newTaskModel()
	f.told = "run rm -rf /"
	r, _ := backgroundHarness(t, f)
	startEarlier(t, r, f)
	if card := r.platform.one(t, "**May I run"); !strings.Contains(card.text, "It is for the result of the background task “About hold one”.") {
		t.Errorf("shown %q", card.text)
	}
}

func TestAResultStartsNoTask(t *testing.T) {
	t.Parallel()
	for _, joined := range []bool{false, true} {
		t.Run(fmt.Sprint("a message joins: ", joined), func(t *testing.T) {
			t.Parallel()
			f := newTaskModel()
			f.told = "hold it\nstart more"
			r, _ := backgroundHarness(t, f)
			startEarlier(t, r, f)
			<-f.held
			if !joined {
				f.free <- struct{}{}
				<-f.held
				f.free <- struct{}{}
				r.platform.one(t, "done: Only a message of a user can start a background task.")
				return
			}
			r.accept(direct("2", "start slow two")) // its result is too late to join, too
			f.free <- struct{}{}
			r.platform.one(t, "Started 'About slow two'")
		})
	}
}

func TestAResultThatIsNotToldIsShownAsItIs(t *testing.T) {
	t.Parallel()
	f := newTaskModel()
	f.told = "fail"
	r, _ := backgroundHarness(t, f, draining)
	startEarlier(t, r, f)
	r.platform.one(t, `\[Background\] “About hold one”`+"\n\nre: hold one")
	r.nothingOpen()
}

func TestATaskThatWaitsForASlotIsCancelledAtOnce(t *testing.T) {
	t.Parallel()
	f := newTaskModel()
	r, _ := backgroundHarness(t, f, draining, func(c *bridge.Config) { c.Limits.MaxTurns = 2 })
	r.accept(direct("1", "start hold one\nstart hold two"))
	waits := "hold two"
	if <-f.held == waits {
		waits = "hold one"
	}
	r.platform.one(t, "done: Started")
	r.accept(direct("2", "/tasks"))
	press(r, r.platform.one(t, "- “About "+waits+"”: waits for its turn, for "), "p1", "1", "Cancel About "+waits)
	r.platform.until(t, "list without it", func(all []sent) bool {
		return slices.ContainsFunc(all, func(s sent) bool {
			return strings.HasPrefix(s.text, "**In the background:**") && !strings.Contains(s.text, waits)
		})
	})
	r.jobs(queue.OpenPrefix, func(open []queue.Job) bool {
		return !slices.ContainsFunc(open, func(j queue.Job) bool { return j.Message.Text == waits })
	})
	f.free <- struct{}{}
	r.platform.one(t, "re: [The background task")
	r.nothingOpen()
}

// eachCard calls do with the key of each card.
func (r *harness) eachCard(do func(key string)) {
	r.t.Helper()
	for card, err := range r.cfg.Store.List(r.t.Context(), storage.Range{Prefix: "card/"}) {
		if err != nil {
			r.t.Fatal(err)
		}
		do(card.Key)
	}
}

func TestATaskIsCancelledWithoutItsCard(t *testing.T) {
	t.Parallel()
	f := newTaskModel()
	r, _ := backgroundHarness(t, f)
	r.accept(direct("1", "start hold one"))
	_, id, _ := strings.Cut(r.platform.one(t, "done: Started").text, "(id ")
	<-f.held
	r.platform.one(t, "⏳ **“About hold one”**")
	r.eachCard(func(key string) {
		if err := r.cfg.Store.Delete(t.Context(), key, storage.Any); err != nil {
			t.Fatal(err)
		}
	})
	r.accept(direct("2", "cancel "+strings.TrimRight(id, ")")))
	r.platform.one(t, "done: Cancelled 'About hold one' true")
	r.nothingOpen()
}

func TestAResultComesAlthoughTheCardIsDamaged(t *testing.T) {
	t.Parallel()
	f := newTaskModel()
	r, _ := backgroundHarness(t, f)
	r.accept(direct("1", "start hold one"))
	r.platform.one(t, "⏳ **“About hold one”**")
	<-f.held
	r.eachCard(func(key string) { r.put(key, "{") })
	f.free <- struct{}{}
	r.platform.one(t, resultBegins)
}

func TestADamagedTaskClosesItsCard(t *testing.T) {
	t.Parallel()
	f := newTaskModel()
	r, _ := backgroundHarness(t, f)
	r.accept(direct("1", "start hold one\nwait"))
	<-f.held
	r.platform.one(t, "⏳ **“About hold one”**")
	r.untilWaits("I am waiting for background tasks")
	r.stop()
	for job, err := range r.cfg.Store.List(t.Context(), storage.Range{Prefix: queue.OpenPrefix}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(job.Key, "/background") {
			r.put(job.Key, "{")
		}
	}
	r.start()
	r.platform.one(t, "✖ A background task stopped without a result.")
	r.platform.one(t, "0 open")
}

func press(r *harness, on sent, id, user, label string) chats.Message {
	r.t.Helper()
	buttons := slices.Concat(on.buttons...)
	i := slices.IndexFunc(buttons, func(b chats.Button) bool { return strings.HasPrefix(b.Label, label) })
	if i < 0 {
		r.t.Fatalf("no button %q below %+v", label, on)
	}
	m := pressOn(on, id, user, buttons[i].Data)
	r.accept(m)
	return m
}

func TestATaskIsCancelled(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"its card", "/tasks", "/stop", "the tool", "/clear"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			f := newTaskModel()
			r, _ := backgroundHarness(t, f)
			r.accept(direct("1", "start hold one"))
			started := r.platform.one(t, "done: Started").text
			card := r.platform.one(t, "⏳ **“About hold one”**") // one that is closed before it is sent is not shown
			<-f.held
			switch how {
			case "its card":
				press(r, card, "p1", "1", "Cancel")
			case "/tasks":
				r.accept(direct("2", "/tasks"))
				press(r, r.platform.one(t, "- “About hold one”: is running, for "), "p1", "1", "Cancel About hold one")
				r.platform.one(t, "No background task is open here.")
			case "/stop":
				r.jobs("job/done/", func(all []queue.Job) bool { // until then the turn may be about to end
					return slices.ContainsFunc(all, func(j queue.Job) bool { return j.Message.ID == "1" })
				})
				r.accept(direct("2", "/stop"))
				press(r, r.platform.one(t, "There is nothing to stop."), "p1", "1", "Cancel About hold one")
			case "the tool":
				_, id, _ := strings.Cut(started, "(id ")
				id, _, _ = strings.Cut(id, ")")
				r.accept(direct("2", "cancel "+id))
				r.platform.one(t, "done: Cancelled 'About hold one' true")
			case "/clear":
				r.accept(direct("2", "/clear"))
				r.platform.one(t, "I cancelled 1 background task.")
				r.accept(direct("3", "/undo"))
				r.platform.one(t, "is back")
			}
			r.platform.one(t, "⏹ **“About hold one”** was cancelled after ")
			r.accept(direct("9", "bye"))
			r.platform.one(t, "re: bye")
			r.nothingOpen()
			if all := r.platform.texts(); slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "[The background task") }) {
				t.Errorf("it has a result: %q", all)
			}
		})
	}
}

func TestATaskIsCancelledWhileItsProgressIsShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := backgroundHarness(t, newTaskModel(), draining)
		r.accept(direct("1", "start read with pdf"))
		before := r.platform.one(t, "⏳ **“About read”**")
		r.platform.one(t, ", page 2")
		p := press(r, before, "p1", "1", "Cancel")
		if got := r.platform.toast(t, p.ID); got != "Cancelled." {
			t.Errorf("told %q", got)
		}
		r.nothingOpen()
	})
}

// A server words what its tool is doing.
func TestTheProgressOfATaskIsNoMarkdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := backgroundHarness(t, newTaskModel(), draining)
		r.accept(direct("1", "start read with pdf"))
		r.platform.one(t, `, page 2 \[of\](https://a.example)`)
		r.nothingOpen()
	})
}

// heldEdits is a platform whose edits wait.
type heldEdits struct {
	*platform
	free chan struct{}
}

func (h heldEdits) Edit(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	select {
	case <-h.free:
		return h.platform.Edit(ctx, to, id, part)
	case <-ctx.Done():
		return &chats.SendError{Outcome: chats.Unknown, Err: ctx.Err()}
	}
}

func TestProgressThatWaitedIsShownAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		r, _ := backgroundHarness(t, newTaskModel(), draining, func(c *bridge.Config) {
			p, _ := c.Platforms[0].(*platform)
			c.Platforms = []chats.Platform{heldEdits{p, free}}
		})
		r.accept(direct("1", "start read with pdf"))
		r.platform.one(t, "[The background task")
		close(free)
		r.platform.one(t, "✔ **“About read”** is done after ")
		pass(t, 5)
		r.nothingOpen()
		if r.platform.edits > 2 {
			t.Errorf("%d edits", r.platform.edits)
		}
	})
}

func TestAResultDoesNotReachTheNextConversation(t *testing.T) {
	t.Parallel()
	f := newTaskModel()
	comes, cleared := make(chan struct{}), make(chan struct{})
	wait := sync.OnceFunc(func() { close(comes); <-cleared })
	r, _ := backgroundHarness(t, f, draining, func(c *bridge.Config) {
		c.Store = gatedStore{Store: c.Store, write: func(key string) {
			if strings.HasPrefix(key, queue.OpenPrefix) && strings.HasSuffix(key, "/result") {
				wait()
			}
		}}
	})
	r.accept(direct("1", "start one"))
	<-comes
	r.accept(direct("2", "/clear"))
	r.platform.one(t, "Conversation cleared")
	r.accept(direct("3", "hold it\nlist"))
	<-f.held
	close(cleared)
	r.untilWaits("1 more message waits")
	for range 2 {
		f.free <- struct{}{}
		<-f.held
	}
	f.free <- struct{}{}
	r.platform.one(t, "done: 0 open")
	r.accept(direct("4", "bye"))
	r.platform.one(t, "re: bye")
	r.nothingOpen()
	if all := r.platform.texts(); slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "[The background task") }) {
		t.Errorf("told %q", all)
	}
}

func TestATaskAsksForApprovalInItsChat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newTaskModel()
		r, w := backgroundHarness(t, f)
		r.accept(group("1", "1", "start run a"))
		ask := r.platform.one(t, "It is for the background task “About run a”.")
		r.accept(group("2", "1", "and you?"))
		r.platform.one(t, "re: and you?")
		pass(t, 5) // the card is shown before the queue holds the task
		r.accept(group("3", "1", "/tasks"))
		r.platform.one(t, "waits for approval of `exec`")
		other := press(r, ask, "p1", "2", "Allow")
		if got := r.platform.toast(t, other.ID); !strings.Contains(got, "Only the person who asked") {
			t.Errorf("another member was told %q", got)
		}
		r.restart()
		press(r, ask, "p2", "1", "Allow")
		got := r.platform.one(t, "[The background task")
		if !strings.Contains(got.text, "> done: ran a") || fmt.Sprint(w.commands()) != "[a]" || got.to.Chat.ID != "g" {
			t.Errorf("%+v, ran %q", got, w.commands())
		}
		r.nothingOpen()
	})
}

// A result that waits behind a call for approval is no user's message: no notice speaks of it.
func TestAResultWaitsForADecisionInSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newTaskModel()
		r, _ := backgroundHarness(t, f, func(c *bridge.Config) { c.Turns.SeparateTurns = true })
		r.accept(group("1", "1", "start hold one"))
		<-f.held
		r.accept(group("2", "1", "slow\nrun a"))
		pass(t, 5)
		f.free <- struct{}{}
		pass(t, 30)
		r.platform.one(t, "✔ **“About hold one”**")
		card := r.platform.one(t, "May I run")
		if all := r.platform.texts(); slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "comes next") }) {
			t.Errorf("there stands %q", all)
		}
		r.accept(group("3", "1", "and you?"))
		if got := r.platform.one(t, "Your message comes next"); got.to.ReplyTo != "3" {
			t.Errorf("the notice is for %q", got.to.ReplyTo)
		}
		press(r, card, "p1", "1", "Allow")
		r.platform.one(t, "done: ran a")
		r.platform.one(t, resultBegins)
		r.platform.one(t, "re: and you?")
		r.nothingOpen()
	})
}

func TestATurnWaitsForTasksWithoutASlot(t *testing.T) {
	t.Parallel()
	for _, separate := range []bool{false, true} {
		t.Run(fmt.Sprint("separate turns ", separate), func(t *testing.T) {
			t.Parallel()
			f := newTaskModel()
			r, _ := backgroundHarness(t, f, func(c *bridge.Config) { c.Turns.SeparateTurns = separate; c.Limits.MaxTurns = 2 })
			r.accept(direct("1", "start hold one"))
			<-f.held
			r.platform.one(t, "done: Started")
			r.accept(direct("2", "await"))
			r.platform.one(t, "⏳ **“About hold one”**")
			other := group("3", "3", "hello") // would have no slot
			r.accept(other)
			r.platform.one(t, "re: hello")
			r.untilWaits("I am waiting for background tasks")
			r.restart()
			<-f.held
			r.untilWaits("I am waiting for background tasks")
			f.free <- struct{}{}
			if separate {
				r.platform.one(t, "done: 0 open")
			}
			r.platform.one(t, `re: [The background task "About hold one" is done.`)
			r.nothingOpen()
			answers, waits := 0, 0
			for _, text := range r.platform.texts() {
				if strings.Contains(text, `"About hold one" is done`) {
					answers++
				}
				if strings.Contains(text, "done: 0 open") {
					waits++
				}
			}
			if answers != 1 || (waits > 0) != separate { // the result joins the turn that waits for it, or has its own
				t.Errorf("%d answers to the result and %d to the wait: %q", answers, waits, r.platform.texts())
			}
		})
	}
}

func TestAWaitForTwoTasksEndsWithTheSecond(t *testing.T) {
	t.Parallel()
	for _, separate := range []bool{false, true} {
		t.Run(fmt.Sprint("separate turns ", separate), func(t *testing.T) {
			t.Parallel()
			f := newTaskModel()
			r, _ := backgroundHarness(t, f, draining, func(c *bridge.Config) { c.Turns.SeparateTurns = separate })
			r.accept(direct("1", "start hold one\nstart hold two\nwait"))
			<-f.held
			<-f.held
			r.untilWaits("I am waiting for background tasks")
			f.free <- struct{}{}
			r.platform.until(t, "one task is done", has(" is done after "))
			r.untilWaits("I am waiting for background tasks")
			f.free <- struct{}{}
			r.platform.one(t, "re: [The background task") // the other result joins it, or is told by itself
			r.accept(direct("2", "bye"))
			r.platform.one(t, "re: bye")
			if slices.ContainsFunc(r.platform.texts(), func(s string) bool { return strings.Contains(s, "1 open") }) {
				t.Errorf("the wait ended early: %q", r.platform.texts())
			}
			r.nothingOpen()
		})
	}
}

func TestAMessageEndsAWait(t *testing.T) {
	t.Parallel()
	f := newTaskModel()
	r, _ := backgroundHarness(t, f, func(c *bridge.Config) { c.Turns.SeparateTurns = true })
	r.accept(direct("1", "start hold one\nwait")) // in one reply
	<-f.held
	r.untilWaits("I am waiting for background tasks")
	r.accept(direct("2", "and you?"))
	r.platform.one(t, "1 open\n'About hold one' is running")
	r.platform.one(t, "re: and you?")
	f.free <- struct{}{}
	r.platform.one(t, resultBegins)
	r.nothingOpen()
}

func TestTasksHaveHalfOfTheSlots(t *testing.T) {
	t.Parallel()
	f := newTaskModel()
	r, _ := backgroundHarness(t, f, func(c *bridge.Config) { c.Limits.MaxTurns = 4 })
	r.accept(direct("1", "start hold one\nstart hold two\nstart hold three"))
	r.platform.one(t, "About hold three")
	<-f.held
	<-f.held
	r.platform.one(t, "done: Started") // all three; the list is not sent again
	r.accept(group("2", "2", "hold me"), direct("3", "/tasks"))
	if held := <-f.held; held != "[fake:2] hold me" && !strings.HasSuffix(held, "hold me") {
		t.Errorf("%q has the third slot", held)
	}
	r.platform.one(t, ": waits for its turn, for ")
	for range 4 {
		f.free <- struct{}{}
	}
	r.platform.one(t, `re: [The background task "About hold three" is done.`)
	r.platform.one(t, "re: hold me")
}

func TestATaskMovesWithItsChat(t *testing.T) {
	t.Parallel()
	f := newTaskModel()
	r, _ := backgroundHarness(t, f)
	r.accept(group("1", "1", "start hold one"))
	<-f.held
	r.platform.one(t, "done: Started")
	r.move()
	<-f.held // it goes on there
	r.accept(moved("2", "1", "/tasks"))
	r.platform.one(t, "- “About hold one”: is running, for ")
	f.free <- struct{}{}
	if got := r.platform.one(t, resultBegins); got.to.Chat.ID != newChat.ID {
		t.Errorf("the result came to %v", got.to)
	}
	r.platform.one(t, "✔ **“About hold one”** is done after ")
	r.accept(moved("3", "1", "bye"))
	r.platform.one(t, "re: bye")
	r.nothingOpen()
}

func TestForgetCancelsTasksAndDeletesTheirConversations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, forgetTasks)
}

func forgetTasks(t *testing.T) {
	f := newTaskModel()
	r, _ := backgroundHarness(t, f)
	r.accept(direct("1", "start hold secret"))
	<-f.held
	r.platform.one(t, "done: Started")
	r.accept(group("2", "1", "start hold secret"))
	<-f.held
	for _, m := range []chats.Message{direct("4", "/tasks"), group("5", "1", "/tasks")} {
		r.accept(m)
		r.platform.until(t, "list", func(all []sent) bool {
			return slices.ContainsFunc(all, func(s sent) bool {
				return s.to.Chat == m.Chat && strings.Contains(s.text, "- “About hold secret”: is running")
			})
		})
	}
	pass(t, 1)
	r.accept(direct("3", "/forget"))
	press(r, r.platform.one(t, "**Shall I forget you?**"), "p1", "1", "Forget me")
	r.platform.one(t, gone)
	pass(t, 30)
	r.nothingOpen()
	for log, err := range r.cfg.Store.Logs(t.Context(), storage.Range{}) {
		if err != nil || strings.Contains(log, "/task/") && !strings.HasPrefix(log, "fake:g") {
			t.Errorf("left: %s (%v)", log, err)
		}
	}
	if left := placesOf(t, r.cfg.Store, "hold secret"); len(left) > 0 {
		t.Errorf("left in %q", left)
	}
}

// The list of the tasks in a chat is made for one user, and names the tasks of all.
func TestForgetTakesListsOfTasksForOthersAway(t *testing.T) {
	t.Parallel()
	for name, show := range map[string]func(r *harness, startSecret func()){
		"asked for": func(r *harness, startSecret func()) {
			startSecret()
			r.accept(group("l", "6", "/tasks"))
		},
		"below the answer to a /stop": func(r *harness, startSecret func()) {
			startSecret()
			r.accept(group("l", "6", "/stop"))
		},
		"left when a task of the list was cancelled": func(r *harness, startSecret func()) {
			r.accept(group("b", "6", "start hold on"))
			r.platform.one(r.t, "done: Started")
			r.accept(group("l", "6", "/tasks"))
			list := r.platform.one(r.t, "- “About hold on”: is running")
			startSecret()
			press(r, list, "p", "6", "Cancel About hold on")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newTaskModel()
				r, _ := backgroundHarness(t, f)
				show(r, func() {
					r.accept(group("a", "1", "start hold secret"))
					r.platform.one(t, "done: Started 'About hold secret'")
				})
				r.platform.one(t, "- “About hold secret”: is running")
				pass(t, 1)
				for _, place := range placesOf(t, r.cfg.Store, "hold secret") {
					if strings.HasPrefix(place, receipts.Prefix+"fake:g/l/") {
						t.Errorf("the receipt of the command has the text: %s", place)
					}
				}
				r.forget(t)
				pass(t, 60)
				r.nothingOpen()
				r.wantNoSecrets()
			})
		})
	}
}

// The list is given up if the platform does not accept it for a day. What is left of it has no titles.
func TestForgetFindsNoListOfTasksThatWasGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outage{outcome: chats.Later, pings: true}
		r, _ := backgroundHarness(t, newTaskModel(), func(cfg *bridge.Config) {
			o.platform, _ = cfg.Platforms[0].(*platform)
			o.fail = o.fate
			cfg.Platforms = []chats.Platform{o}
		})
		r.accept(group("a", "1", "start hold secret"))
		r.platform.one(t, "done: Started 'About hold secret'")
		pass(t, 1)
		o.begin(25 * time.Hour)
		r.accept(group("l", "6", "/tasks"))
		pass(t, 26*3600)
		r.platform.one(t, "I could not send this answer for a day")
		r.forget(t)
		pass(t, 60)
		r.nothingOpen()
		r.wantNoSecrets()
		letters := deadLetters(t, r)
		if len(letters) != 1 || bytes.Contains(letters[0].Data, []byte("secret")) {
			t.Errorf("there are the dead letters %+v", letters)
		}
	})
}

// An erasure ends tasks, and the turns that wait for them.
func TestForgetEndsAWaitForTasks(t *testing.T) {
	t.Parallel()
	for _, chat := range []string{"1", "g"} {
		t.Run(chat, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newTaskModel()
				r, _ := backgroundHarness(t, f)
				m := direct("1", "start hold secret\nwait")
				m.Chat.ID, m.Direct = chat, chat == "1"
				r.accept(m)
				<-f.held
				pass(t, 10)
				r.forget(t)
				pass(t, 5*60)
				r.platform.one(t, gone)
				if left := placesOf(t, r.cfg.Store, "hold secret"); len(left) > 0 {
					t.Errorf("left in %q", left)
				}
				r.nothingOpen()
			})
		})
	}
}

func TestTheConversationsOfTasksHaveAnAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := backgroundHarness(t, newTaskModel(), func(c *bridge.Config) { c.Limits.HistoryDays = 30 })
		r.accept(direct("1", "start secret"), group("2", "1", "start secret"))
		pass(t, 20*24*3600)
		if found := placesOf(t, r.cfg.Store, "secret"); len(found) == 0 {
			t.Fatal("what is not too old is gone")
		}
		pass(t, 12*24*3600)
		if found := placesOf(t, r.cfg.Store, "secret"); len(found) > 0 {
			t.Errorf("left in %q", found)
		}
		r.nothingOpen()
	})
}

// A task that does not end is given up after its time.
func TestATaskThatNeverEndsIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newTaskModel()
		r, _ := backgroundHarness(t, f)
		r.accept(direct("1", "start hold one"))
		<-f.held
		pass(t, 50*60)
		r.platform.one(t, "⏳ **“About hold one”**")
		pass(t, 20*60)
		r.platform.one(t, "\\[Background\\] “About hold one”\n\nI gave up on this after an hour.")
		r.platform.one(t, "✖ **“About hold one”** stopped without a result after an hour.")
		r.accept(direct("2", "bye"))
		r.platform.one(t, "re: bye")
		r.nothingOpen()
	})
}

func TestATaskEndsWhenItsTokensAreUsedUp(t *testing.T) {
	t.Parallel()
	f := newTaskModel()
	f.spends = 400
	r, _ := backgroundHarness(t, f, func(c *bridge.Config) {
		c.Turns.Background.Tokens = 1000
		c.ApprovalPolicy = nil
	})
	r.accept(direct("1", "start run again"))
	got := r.platform.one(t, "This used up the tokens that one background task may take")
	if !strings.HasPrefix(got.text, `\[Background\] “About run again”`) {
		t.Errorf("told %q", got.text)
	}
	r.platform.one(t, "✖ **“About run again”** stopped without a result after ")
	r.accept(direct("2", "bye"))
	r.platform.one(t, "re: bye")
	r.nothingOpen()
}

func TestTasksHaveTheNamedGroupsAndStartNoTasks(t *testing.T) {
	t.Parallel()
	f := newTaskModel()
	r, _ := backgroundHarness(t, f)
	r.accept(direct("1", "start have it with pdf"))
	r.platform.one(t, "> re: have it")
	all, err := conversation.Conversations(t.Context(), r.cfg.Store, "fake:1")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		groups, err := conversation.LoadedGroups(t.Context(), r.cfg.Store, c.Log())
		if want := map[bool]string{true: "[pdf]", false: "[background]"}[c.Task != ""]; err != nil || fmt.Sprint(groups) != want {
			t.Errorf("%s has loaded %q (%v), want %s", c.Log(), groups, err, want)
		}
	}
	r.accept(direct("2", "start start more"))
	r.platform.one(t, "I have no such tool: Tool group 'background' not found.")
	r.submit(task("a.1", "News", "start more"))
	r.platform.one(t, heading+"News\n\nI have no such tool: Tool group 'background' not found.")
	r.nothingOpen()
}

func TestATaskIsStartedOnceAlthoughTheStoreFails(t *testing.T) {
	t.Parallel()
	var writes atomic.Int32
	store := &faulty{write: func(ops []storage.Op, do func() (storage.Revision, error)) (storage.Revision, error) {
		if !strings.HasPrefix(ops[0].Key, queue.OpenPrefix) || !strings.HasSuffix(ops[0].Key, "/"+string(receipts.KindBackground)) {
			return do()
		}
		n := writes.Add(1)
		if n == 1 {
			return 0, errFaulty
		}
		rev, err := do()
		if n == 2 {
			return 0, errFaulty
		}
		return rev, err
	}}
	f := newTaskModel()
	r, _ := backgroundHarness(t, f, inStore(store))
	r.accept(direct("1", "start hold one"))
	if told := r.platform.one(t, "done: ").text; strings.Count(told, "Started") != 1 || strings.Contains(told, errFaulty.Error()) {
		t.Errorf("told %q", told)
	}
	f.free <- struct{}{}
	r.platform.one(t, `re: [The background task "About hold one" is done.`)
	r.nothingOpen()
	if n := writes.Load(); n < 2 {
		t.Errorf("%d writes", n)
	}
	if n := len(f.held); n != 1 {
		t.Errorf("%d tasks", n)
	}
}
