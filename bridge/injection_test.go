package bridge_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/platformtest"
	"oneclaw/bridge/queue"
	"oneclaw/internal/workspace"
	"oneclaw/storage"
	"oneclaw/storage/postgres"
	"oneclaw/storage/postgres/pgtest"
	"oneclaw/toolgroups"
)

// The ways in which a step goes wrong.
const (
	failsOnce    = "fails once"
	failsForEver = "fails for ever"
	panicsOnce   = "panics once"
	panicsAlways = "panics always"
)

var errSabotage = errors.New("sabotage")

// saboteur breaks one step of the work on what is marked with the word poison.
type saboteur struct {
	step, way string
	mu        sync.Mutex
	hits      int
	begun     bool // a preview was
}

// ready reports whether the step has come, or can come at the end.
func (s *saboteur) ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hits > 0 || s.begun && s.step == "platform: finish"
}

// strike fails or panics where it is called for the step that is to break.
func (s *saboteur) strike(step string) error {
	if s.step != step {
		return nil
	}
	s.mu.Lock()
	s.hits++
	first := s.hits == 1
	s.mu.Unlock()
	switch {
	case s.way == failsForEver, s.way == failsOnce && first:
		return errSabotage
	case s.way == failsOnce:
		return nil
	case s.way == panicsAlways || first:
		panic("sabotage of " + step)
	}
	return nil
}

// struck is how often it struck.
func (s *saboteur) struck() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hits
}

// brittle is a store in which the step "store: <op> <part of the key or of the data>" breaks.
type brittle struct {
	storage.Store
	*saboteur
}

func (s brittle) meets(op, key string, data []byte) error {
	want, ok := strings.CutPrefix(s.step, "store: "+op+" ")
	if ok && (strings.Contains(key, want) || strings.Contains(string(data), want)) {
		return s.strike(s.step)
	}
	return nil
}

func (s brittle) Get(ctx context.Context, key string) (storage.Entry, error) {
	if err := s.meets("get", key, nil); err != nil {
		return storage.Entry{}, err
	}
	return s.Store.Get(ctx, key)
}

func (s brittle) List(ctx context.Context, r storage.Range) iter.Seq2[storage.Entry, error] {
	if err := s.meets("list", r.Prefix, nil); err != nil {
		return func(yield func(storage.Entry, error) bool) { yield(storage.Entry{}, err) }
	}
	return s.Store.List(ctx, r)
}

func (s brittle) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	if err := s.meets("put", key, value); err != nil {
		return 0, err
	}
	return s.Store.Put(ctx, key, value, rev)
}

func (s brittle) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	for _, op := range ops {
		err := s.meets("write", op.Key, op.Value)
		for _, record := range op.Records {
			err = errors.Join(err, s.meets("append", op.Log, record.Data))
		}
		if err != nil {
			return 0, err
		}
	}
	return s.Store.Write(ctx, ops...)
}

// fragile is a platform in which the step "platform: <method>" breaks for what is marked.
type fragile struct {
	*growing
	*saboteur
}

func (p fragile) meets(method, text string) error {
	if !strings.Contains(text, "poison") {
		return nil
	}
	return p.strike("platform: " + method)
}

func (p fragile) Send(ctx context.Context, to chats.Address, part chats.Part) (string, error) {
	if err := p.meets("send", part.Text); err != nil {
		return "", &chats.SendError{Outcome: chats.Later, Err: err}
	}
	return p.growing.Send(ctx, to, part)
}

func (p fragile) Edit(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	if err := p.meets("edit", part.Text); err != nil {
		return &chats.SendError{Outcome: chats.Later, Err: err}
	}
	return p.growing.Edit(ctx, to, id, part)
}

func (p fragile) Begin(ctx context.Context, to chats.Address, show chats.Preview) (string, error) {
	if err := p.meets("begin", show.Part.Text); err != nil {
		return "", err
	}
	p.saboteur.mu.Lock()
	p.begun = true
	p.saboteur.mu.Unlock()
	return p.growing.Begin(ctx, to, show)
}

func (p fragile) Update(ctx context.Context, to chats.Address, id string, show chats.Preview) error {
	if err := p.meets("update", show.Part.Text); err != nil {
		return err
	}
	return p.growing.Update(ctx, to, id, show)
}

func (p fragile) Finish(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	if err := p.meets("finish", part.Text); err != nil {
		return &chats.SendError{Outcome: chats.Later, Err: err}
	}
	return p.growing.Finish(ctx, to, id, part)
}

func (p fragile) Render(markdown string) []chats.Part {
	_ = p.meets("render", markdown)
	return p.growing.Render(markdown)
}

func (p fragile) SetTyping(ctx context.Context, to chats.Address, on bool) error {
	if err := p.strike("platform: typing"); err != nil {
		return err
	}
	return p.growing.SetTyping(ctx, to, on)
}

func (p fragile) AnswerPress(ctx context.Context, press chats.Message, text string) error {
	if err := p.strike("platform: answer press"); err != nil {
		return err
	}
	return p.growing.AnswerPress(ctx, press, text)
}

func (p fragile) FetchFile(_ context.Context, a chats.Attachment, w io.Writer) error {
	if err := p.strike("platform: fetch"); err != nil {
		return err
	}
	_, err := io.WriteString(w, a.Name)
	return err
}

func (p fragile) Run(ctx context.Context, in chats.Inbox) error {
	_ = p.strike("platform: run")
	return p.growing.Run(ctx, in)
}

func (p fragile) IsAdmin(context.Context, chats.Chat, string) (bool, error) {
	return false, p.strike("platform: is admin")
}

// sick is a model that breaks on what is marked, and says slowly what it is asked to, until the
// step that is to break has come.
type sick struct{ *saboteur }

func (m sick) Complete(ctx context.Context, req agent.Request, show func(agent.Delta)) (agent.Reply, error) {
	last := req.Messages[len(req.Messages)-1]
	if last.Role == agent.RoleUser && strings.Contains(last.Text, "poison") {
		if err := m.strike("model"); err != nil {
			return agent.Reply{}, err
		}
	}
	if strings.Contains(last.Text, "slowly") {
		words := strings.SplitAfter(last.Text, " ")
		for n := 0; n < len(words) || n < 200 && !m.ready(); n++ {
			word := " and more"
			if n < len(words) {
				word = words[n]
			}
			show(agent.Delta{Text: word})
			if err := halfSecond(ctx); err != nil {
				return agent.Reply{}, err
			}
		}
	}
	return obedient{}.Complete(ctx, req, show)
}

// frail are workspaces that may not be had.
type frail struct{ *saboteur }

func (f frail) Prepare(context.Context, string) error { return f.strike("files") }

func (frail) Keep(context.Context, string, ...storage.Op) error { return nil }

// injected is a rig in which one step breaks.
type injected struct {
	*harness
	*saboteur
	w *execTools
	// speed is how much shorter the pauses of the test are than in a bubble, where they cost
	// nothing.
	speed time.Duration
}

// inject makes a rig on the store of engine, or on the usual one where that is nil.
func inject(t *testing.T, engine func(*bridge.Config), step, way string) *injected {
	t.Helper()
	s := &saboteur{step: step, way: way}
	w := &execTools{look: func() { _ = s.strike("tool") }}
	reg := w.registry(t)
	r := newHarness(t, nil, func(c *bridge.Config) {
		c.Limits.DrainTimeout = time.Minute
		if engine != nil {
			engine(c)
		}
		c.Store = brittle{c.Store, s}
		c.Platforms = []chats.Platform{fragile{&growing{platform: c.Platforms[0].(*platform)}, s}}
		c.Turns.Agent, c.Turns.Tools = agent.New(agent.Config{Model: sick{s}}), func() *toolgroups.Registry { return reg }
		c.Turns.RedactPartial = func(text string) string { return text }
		c.ApprovalPolicy = func(call toolgroups.Call, tool toolgroups.Tool) interact.Policy {
			if strings.Contains(string(call.Arguments), "poison") {
				_ = s.strike("gate")
			}
			if tool.Effect == toolgroups.Consequential {
				return interact.Policy{}
			}
			return interact.Policy{Rule: interact.Allow}
		}
		c.Access.Admins = []string{"fake:1"}
		c.CardHandlers = map[string]interact.Handler{"vote": func(_ context.Context, press interact.Press) (interact.Result, error) {
			return interact.Result{Toast: "thanks", Text: "poison was chosen", Close: true}, s.strike("handler")
		}}
		c.Hooks.Files = frail{s}
		c.Hooks.OnChatMoved = func(context.Context, chats.Chat, chats.Chat) error { return s.strike("moved") }
		c.Hooks.Forget = func(context.Context, string, chats.Chat) error { return s.strike("forget") }
		c.Hooks.OnErased = func(context.Context) error { return s.strike("erased") }
		c.Hooks.OnTaskDone = func(_ context.Context, result bridge.TaskResult) error {
			if result.Key != "poison" {
				return nil
			}
			return s.strike("task done")
		}
		c.Commands = append(c.Commands, bridge.Command{CommandInfo: chats.CommandInfo{Name: "usage", Description: "Usage"}, Run: func(context.Context, bridge.CommandCall) (string, error) {
			return "re: poison", s.strike("command")
		}})
	})
	return &injected{r, s, w, 1}
}

// insist hands a message over as a platform does that gives again what was not accepted.
func (r *injected) insist(m chats.Message) {
	r.t.Helper()
	for range 100 {
		if r.bridge.Accept(r.t.Context(), m) == nil {
			return
		}
		r.rest(2 * time.Second)
	}
	r.t.Fatalf("message %s is never taken", m.ID)
}

func (r *injected) rest(d time.Duration) {
	timer := time.NewTimer(d / r.speed)
	defer timer.Stop()
	<-timer.C
}

// shows waits until a chat shows a text.
func (r *injected) shows(chat string, wants ...string) {
	r.t.Helper()
	for range 600 {
		for _, s := range r.platform.shown() {
			for _, want := range wants {
				if s.to.Chat.ID == chat && (strings.Contains(s.text, want) || want == incident && s.explains()) {
					return
				}
			}
		}
		r.rest(5 * time.Second)
	}
	r.t.Fatalf("chat %s never shows %q: %q", chat, wants, r.platform.texts())
}

// survives checks that another chat and what is said next are answered, and that nothing is
// left open.
func (r *injected) survives() {
	r.t.Helper()
	r.insist(group("other", "2", "other"))
	r.shows("g", "re: other")
	r.insist(direct("next", "next"))
	r.shows("1", "re: next")
	r.insist(direct("clear", "/clear"))
	wants := []string{"Conversation cleared"}
	if strings.HasPrefix(r.step, "store: get card/") {
		wants = append(wants, incident) // its answer is a card
	}
	r.shows("1", wants...)
}

// allOver checks that every job has come to its end.
func (r *injected) allOver() {
	r.t.Helper()
	for range 360 {
		if r.bridge.QueueStats().Open == 0 {
			return
		}
		r.rest(10 * time.Second)
	}
	r.t.Errorf("%d jobs are still open", r.bridge.QueueStats().Open)
}

const incident = "Incident "

// breakage is a step of the work that breaks, and what its person sees in the end.
type breakage struct {
	name string
	do   func(*injected)
	ends func(*injected)
	// open: what broke keeps its own record.
	open bool
}

// breakages are the steps of accepting, of a turn, a tool, a delivery, a preview, a card, a task,
// a command, and of what is done every hour.
func breakages() []breakage {
	poison := func(r *injected) { r.insist(direct("poison", "poison")) }
	said := func(text string) func(*injected) { return func(r *injected) { r.insist(direct("poison", text)) } }
	answered := func(r *injected) { r.shows("1", "re: poison", incident) }
	task := func(r *injected) {
		r.submit(task("poison", "Tea", "poison, a poisonous one"))
	}
	press := func(r *injected) {
		r.post("poison", chatOne, vote())
		shown := r.platform.wait(r.t, 1)[0]
		r.insist(pressOn(shown, "p1", "1", shown.button(r.t, "Yes")))
	}
	pressed := func(r *injected) { r.platform.toast(r.t, "p1") }
	forget := func(r *injected) {
		r.insist(group("g1", "1", "mine"))
		r.platform.wait(r.t, 1)
		r.insist(direct("f", "/forget"))
		shown := r.platform.wait(r.t, 2)[1]
		r.insist(pressOn(shown, "p1", "1", shown.button(r.t, "Forget me")))
	}
	move := func(r *injected) {
		r.insist(group("g1", "1", "here"))
		r.platform.wait(r.t, 1)
		from, to := oldChat, newChat
		from.ID, to.ID = "old", "new"
		for r.bridge.Moved(r.t.Context(), from, to) != nil {
			r.rest(time.Second)
		}
	}
	look := said("look poison\nlook")
	return []breakage{
		{"store: write job/open/fake:1/poison/text", poison, answered, false},
		{"store: get job/open/fake:1/poison/text", poison, answered, true},
		{"store: append poison", poison, answered, false},
		{"store: write job/done/fake:1/poison", poison, answered, true},
		{"store: put job/open/fake:1/poison", said("poison slowly and more"), answered, true},
		{"model", poison, answered, false},
		{"tool", said("look poison\nlook"), func(r *injected) { r.shows("1", "looked", "internal fault", incident) }, false},
		{"gate", said("run poison"), func(r *injected) { r.shows("1", "May I run", incident) }, true},
		{"platform: send", poison, answered, false},
		{"platform: render", poison, answered, false},
		{"platform: typing", said("poison slowly and more"), answered, false},
		{"platform: begin", said("poison slowly and more"), answered, false},
		{"platform: update", said("poison slowly and more and more"), answered, false},
		{"platform: finish", said("poison slowly and more"), answered, false},
		{"platform: run", poison, answered, false},
		{"command", said("/usage"), answered, false},
		{"task done", task, answered, false},
		{"store: append poisonous", task, answered, false},
		{"store: list aside/", poison, answered, false},
		{"handler", press, pressed, false},
		{"platform: edit", press, pressed, true}, // for a day,
		{"platform: answer press", press, func(*injected) {}, false},
		{"store: write job/open/fake:1/p1", press, func(*injected) {}, false},
		{"store: get card/", func(r *injected) { r.post("poison", chatOne, interact.Card{Text: "poison"}) }, func(*injected) {}, true},
		{"platform: send", func(r *injected) { r.post("poison", chatOne, interact.Card{Text: "poison"}) }, func(*injected) {}, false},
		{"moved", move, func(*injected) {}, false},
		{"forget", forget, func(r *injected) { r.shows("1", "I have forgotten you", incident) }, false},
		{"erased", forget, func(r *injected) { r.shows("1", "I have forgotten you", incident) }, false},
		{"platform: fetch", func(r *injected) {
			m := direct("poison", "poison")
			m.Files = []chats.Attachment{{Ref: "f", Name: "a.txt", Size: 5}}
			r.insist(m)
		}, answered, false},
		{"files", look, func(r *injected) { r.shows("1", "looked", incident) }, false},
	}
}

// run has a step break in a way, and checks what becomes of everything else.
func (b breakage) run(t *testing.T, r *injected) {
	b.do(r)
	b.ends(r)
	r.survives()
	if !b.open || r.way == panicsOnce {
		r.allOver()
	}
	for range 360 { // the hourly work may not have got there yet
		if r.struck() > 0 {
			break
		}
		r.rest(10 * time.Second)
	}
	if r.struck() == 0 {
		t.Error("nothing has come to this step")
	}
	r.stop()
}

// Each step of the work on one message breaks in each way. Whatever it is, the message is answered
// or a line names an incident; other chats and the next message of the same chat are answered, and
// commands work (A1, A2, A3).
func TestAStepThatBreaksEndsItsOwnJobAlone(t *testing.T) {
	t.Parallel()
	for _, step := range breakages() {
		for _, way := range []string{failsForEver, panicsOnce, panicsAlways} {
			t.Run(step.name+" "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { step.run(t, inject(t, nil, step.name, way)) })
			})
		}
	}
}

// The same holds for a replica on PostgreSQL, whose time is real: what fails is tried for a
// moment only.
func TestAStepThatBreaksEndsItsOwnJobAloneOnPostgreSQL(t *testing.T) {
	t.Parallel()
	server := &pgtest.Server{}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	server.Database(t) // or there is none
	var cases errgroup.Group
	cases.SetLimit(16) // most of the time each of them waits
	for _, step := range breakages() {
		for _, way := range []string{failsForEver, panicsOnce, panicsAlways} {
			if way == panicsOnce && !strings.HasPrefix(step.name, "store: ") {
				continue // this is not about the store
			}
			if way == failsForEver && !platformtest.Nightly() {
				continue // the same in one process shows it
			}
			cases.Go(func() error {
				t.Run(step.name+" "+way, func(t *testing.T) {
					r := inject(t, func(c *bridge.Config) {
						c.Store = openPostgres(t, server)
						c.Sharing = queue.Sharing{Enabled: true}
						c.Limits.RetryFor, c.Limits.ApprovalTimeout, c.Limits.DrainTimeout = time.Second/4, time.Second, time.Second
					}, step.name, way)
					r.speed = 20
					step.run(t, r)
				})
				return nil
			})
		}
	}
	_ = cases.Wait() // each has told its own test
}

func openPostgres(t *testing.T, server *pgtest.Server) storage.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), postgres.Config{URL: server.Database(t), MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A card is shown although the store failed when it was to be made.
func TestACardThatCouldNotBeReadForAMomentIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := inject(t, nil, "store: get card/", failsOnce)
		r.post("poison", chatOne, interact.Card{Text: "Tea?"})
		r.shows("1", "Tea?")
		r.allOver()
		if r.struck() < 2 {
			t.Error("the store has not failed")
		}
		r.stop()
	})
}

// A folder that cannot be made ends what needs it alone (A3).
func TestAFolderThatCannotBeMadeEndsItsOwnJobAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := inject(t, nil, "", "")
		m := group("poison", "1", "look poison\nlook")
		m.Chat.ID = "poison"
		folder := workspace.OwnerDir(r.cfg.DataDir, m.Owner())
		if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(folder, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		r.insist(m)
		r.shows("poison", incident)
		r.survives()
		r.allOver()
		r.stop()
	})
}
