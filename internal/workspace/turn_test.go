package workspace_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/platformtest"
	"oneclaw/bridge/turn"
	"oneclaw/internal/workspace"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// life is a process that is paused at a step, is taken for dead, and goes on later. A step is
// before or after each write and each send.
type life struct {
	mu     sync.Mutex
	steps  int
	pauses int // the step at which it is paused; 0 for never
	awake  chan struct{}
}

func (l *life) step() {
	l.mu.Lock()
	l.steps++
	paused := l.pauses != 0 && l.steps >= l.pauses
	l.mu.Unlock()
	if paused {
		<-l.awake
	}
}

// mortalStore is the store of a process that is paused. It checks that what a tool wrote is
// stored before its result is.
type mortalStore struct {
	storage.Store
	life *life
	w    *turnHarness
}

func (s mortalStore) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	s.life.step()
	defer s.life.step()
	return s.Store.Put(ctx, key, value, rev)
}

func (s mortalStore) Append(ctx context.Context, log string, after storage.Position, records ...storage.Record) (storage.Position, error) {
	s.life.step()
	defer s.life.step()
	return s.Store.Append(ctx, log, after, records...)
}

func (s mortalStore) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	s.life.step()
	defer s.life.step()
	rev, err := s.Store.Write(ctx, ops...)
	for _, op := range ops {
		if err == nil && op.Kind == storage.KindAppend {
			s.w.stored(op.Records)
		}
	}
	return rev, err
}

// turnHarness is a chat, with what was seen of it.
type turnHarness struct {
	t     *testing.T
	store storage.Store

	mu    sync.Mutex
	shown []string
	runs  map[string]int
}

func (*turnHarness) Name() string { return "fake" }

// Run implements chats.Platform.
func (*turnHarness) Run(ctx context.Context, _ chats.Inbox) error {
	<-ctx.Done()
	return nil
}

// Render implements chats.Platform.
func (*turnHarness) Render(markdown string) []chats.Part { return []chats.Part{{Text: markdown}} }

// MaxFile implements chats.FileSender.
func (*turnHarness) MaxFile() int64 { return 10 << 20 }

// FetchFile implements chats.FileFetcher.
func (*turnHarness) FetchFile(_ context.Context, a chats.Attachment, w io.Writer) error {
	_, err := io.WriteString(w, "sent "+a.Ref)
	return err
}

func (o *turnHarness) show(text string, repeat bool) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if repeat {
		text += " (again)"
	}
	o.shown = append(o.shown, text)
	return fmt.Sprint(len(o.shown)), nil
}

// mortalPlatform is the office for a process that is paused.
type mortalPlatform struct {
	*turnHarness
	life *life
}

// Send implements chats.Platform.
func (p mortalPlatform) Send(_ context.Context, _ chats.Address, part chats.Part) (string, error) {
	p.life.step()
	defer p.life.step()
	return p.show(part.Text, part.Repeat)
}

// SendFile implements chats.FileSender.
func (p mortalPlatform) SendFile(_ context.Context, _ chats.Address, file chats.OutFile) (string, error) {
	p.life.step()
	defer p.life.step()
	data, err := io.ReadAll(io.NewSectionReader(file.Content, 0, file.Size))
	if err != nil {
		return "", err
	}
	return p.show(file.Name+": "+string(data), file.Repeat)
}

// stored checks the results among some records: their files are in the store.
func (o *turnHarness) stored(records []storage.Record) {
	for _, r := range records {
		var m agent.Message
		if json.Unmarshal(r.Data, &m) != nil || m.Role != agent.RoleTool || m.Status != agent.StatusOK {
			continue
		}
		for _, f := range m.Files {
			if got := o.file(f.Path); got != "made "+f.Path {
				o.t.Errorf("the result is stored, and %s is %q", f.Path, got)
			}
		}
	}
}

// file is what a new replica finds.
func (o *turnHarness) file(name string) string {
	fresh := newReplica(o.t, o.store)
	fresh.t = o.t
	if err := fresh.Prepare(context.Background(), "fake:1"); err != nil {
		o.t.Error(err)
	}
	data, _ := os.ReadFile(filepath.Join(workspace.OwnerDir(fresh.dir, "fake:1"), name))
	return string(data)
}

// maker is a model that has a file made for each message, and answers with what it was told.
type maker struct{}

func (maker) Complete(_ context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	last := req.Messages[len(req.Messages)-1]
	if last.Role == agent.RoleUser {
		name, err := json.Marshal(map[string]string{"name": strings.Fields(last.Text)[0]})
		return agent.Reply{Calls: []agent.Call{{ID: "0", Name: "make", Arguments: string(name)}}}, err
	}
	return agent.Reply{Text: "done: " + last.Text}, nil
}

func (maker) ContextTokens() int { return 100_000 }

// bot starts a process on a disk of its own.
func (o *turnHarness) bot(life *life) (b *bridge.Bridge, stop func()) {
	o.t.Helper()
	store, dir := mortalStore{o.store, life, o}, o.t.TempDir()
	type args struct{ Name string }
	registry, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{{
		Name: "make", Description: "Makes a file.", Parameters: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`),
		Run: toolgroups.TypedHandler(func(_ context.Context, call toolgroups.Call, in args) (toolgroups.Result, error) {
			o.mu.Lock()
			o.runs[in.Name]++
			o.mu.Unlock()
			life.step()
			err := os.WriteFile(filepath.Join(call.Workspace, in.Name), []byte("made "+in.Name), 0o600)
			life.step()
			return toolgroups.Result{Text: "made " + in.Name, Files: []toolgroups.File{{Path: in.Name}}}, err
		}),
	}}})
	must(o.t, err)
	b, err = bridge.New(bridge.Config{
		Store: store, DataDir: dir, Platforms: []chats.Platform{mortalPlatform{o, life}}, Access: access.Access{Allow: []string{"*"}},
		Turns:  turn.Settings{Agent: agent.New(agent.Config{Model: maker{}}), Tools: func() *toolgroups.Registry { return registry }, SeparateTurns: true},
		Hooks:  bridge.Hooks{Files: workspace.NewStore(workspace.StoreConfig{Store: store, Dir: dir, Reserve: 1})},
		Limits: bridge.Limits{DrainTimeout: -1}, Logger: slog.New(slog.NewTextHandler(o.t.Output(), nil)),
	})
	must(o.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	return b, sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			o.t.Error(err)
		}
	})
}

// pass lets the clock of a bubble go on.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	<-timer.C
}

// TestATurnIsTakenOverWithItsFiles pauses a process at every step of two turns that take and
// make files, has another with a disk of its own take over, and lets the first go on. What the
// log says was made is there for whoever comes next, is sent, and was made once.
func TestATurnIsTakenOverWithItsFiles(t *testing.T) {
	t.Parallel()
	whole := &life{}
	takenOver(t, whole)
	if whole.steps < 30 {
		t.Fatalf("only %d steps: the test does not see what is written", whole.steps)
	}
	for pauses := range platformtest.Steps(t, 1, whole.steps) {
		t.Run(fmt.Sprint("step ", pauses), func(t *testing.T) { takenOver(t, &life{pauses: pauses}) })
	}
}

func takenOver(t *testing.T, first *life) {
	synctest.Test(t, func(t *testing.T) {
		first.awake = make(chan struct{})
		o := &turnHarness{t: t, store: openStore(t), runs: map[string]int{}}
		a, stopA := o.bot(first)
		messages := []chats.Message{
			{ID: "1", Text: "one", Files: []chats.Attachment{{Ref: "photo", Name: "photo.jpg"}}},
			{ID: "2", Text: "two"},
		}
		var accepting sync.WaitGroup
		accept := func(b *bridge.Bridge) {
			for _, m := range messages {
				m.Chat, m.Kind, m.User, m.UserName, m.Direct = chats.Chat{Platform: "fake", ID: "1"}, chats.KindText, "1", "Ann", true
				if err := b.Accept(t.Context(), m); err != nil {
					t.Errorf("accept: %v", err)
				}
			}
		}
		accepting.Go(func() { accept(a) })
		pass(t, 10*time.Second)
		second := &life{awake: first.awake}
		b, stopB := o.bot(second)
		accept(b)
		pass(t, time.Minute)
		close(first.awake)
		accepting.Wait()
		pass(t, 10*time.Minute)
		stopA()
		stopB()
		o.check(t)
		if want := []string{"done: made one", "one: made one", "done: made two", "two: made two"}; first.pauses == 0 && !slices.Equal(o.shown, want) {
			t.Errorf("undisturbed there is %q, want %q", o.shown, want)
		}
	})
}

func (o *turnHarness) check(t *testing.T) {
	t.Helper()
	if got := o.file("inbox/photo.jpg"); got != "sent photo" {
		t.Errorf("the file of the first message is %q", got)
	}
	for _, name := range []string{"one", "two"} {
		if o.runs[name] > 1 {
			t.Errorf("%s was made %d times", name, o.runs[name])
		}
		answered := func(text string) bool { return strings.HasPrefix(text, "done: ") }
		made := slices.ContainsFunc(o.shown, func(text string) bool { return strings.HasPrefix(text, "done: made "+name) })
		if !slices.ContainsFunc(o.shown, answered) {
			t.Errorf("no answer: %q", o.shown)
		}
		if !made {
			continue // it was cut off, and the answer says so
		}
		if got := o.file(name); got != "made "+name {
			t.Errorf("%s is %q", name, got)
		}
		if !slices.ContainsFunc(o.shown, func(text string) bool { return strings.HasPrefix(text, name+": made "+name) }) {
			t.Errorf("%s was not sent: %q", name, o.shown)
		}
	}
	if first := slices.IndexFunc(o.shown, func(text string) bool { return strings.Contains(text, "two") }); first == 0 {
		t.Errorf("out of order: %q", o.shown)
	}
}
