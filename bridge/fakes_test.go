package bridge_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/turn"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // they wait more than they compute
	goleak.VerifyTestMain(m)
}

// patience bounds every wait by the clock of the machine; nothing is measured with it.
const patience = 4 * time.Minute

// sent is a message that the fake platform shows.
type sent struct {
	id      string
	to      chats.Address
	text    string
	repeat  bool
	buttons [][]chats.Button
}

// toast is what somebody was told about a press.
type toast struct{ press, text string }

// platform is a chat service in memory.
type platform struct {
	mu      sync.Mutex
	changed chan struct{}
	sent    []sent
	typing  []string
	edits   int
	toasts  []toast
	ids     int
	admins  []string
	// fail, if not nil, decides about a send: before it arrives, and after.
	fail func(n int, arrived bool) error
	// hold, if not nil, is where a send waits for a rate limit.
	hold func()
	run  func(ctx context.Context, in chats.Inbox) error
}

func newPlatform() *platform { return &platform{changed: make(chan struct{})} }

func (p *platform) Name() string { return "fake" }

func (p *platform) Run(ctx context.Context, in chats.Inbox) error {
	if p.run != nil {
		return p.run(ctx, in)
	}
	<-ctx.Done()
	return nil
}

// Render cuts at form feeds.
func (p *platform) Render(markdown string) []chats.Part {
	var parts []chats.Part
	for text := range strings.SplitSeq(markdown, "\f") {
		parts = append(parts, chats.Part{Text: text})
	}
	return parts
}

func (p *platform) Send(ctx context.Context, to chats.Address, part chats.Part) (string, error) {
	if p.hold != nil {
		p.hold()
	}
	if err := mayBeSent(ctx); err != nil {
		return "", err
	}
	return p.show(sent{to: to, text: cmp.Or(part.Text, part.Plain), repeat: part.Repeat, buttons: part.Buttons})
}

// mayBeSent checks the precondition of a call.
func mayBeSent(ctx context.Context) error {
	if err := chats.CheckPrecondition(ctx); err != nil {
		return &chats.SendError{Outcome: chats.Later, Outage: true, Err: err}
	}
	return nil
}

// Edit changes what is shown.
func (p *platform) Edit(_ context.Context, _ chats.Address, id string, part chats.Part) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.sent {
		if p.sent[i].id == id {
			p.sent[i].text, p.sent[i].buttons = cmp.Or(part.Text, part.Plain), part.Buttons
			p.edits++
			p.tell()
			return nil
		}
	}
	return &chats.SendError{Outcome: chats.Refused, Err: errors.New("no such message")}
}

func (p *platform) AnswerPress(_ context.Context, press chats.Message, text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.toasts = append(p.toasts, toast{press.ID, text})
	p.tell()
	return nil
}

// tell wakes those who wait for a change.
func (p *platform) tell() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *platform) MaxFile() int64 { return 1000 }

// SendFile shows a file as <name|caption|content>.
func (p *platform) SendFile(_ context.Context, to chats.Address, file chats.OutFile) (string, error) {
	content, err := io.ReadAll(io.NewSectionReader(file.Content, 0, file.Size))
	if err != nil || int64(len(content)) != file.Size {
		return "", fmt.Errorf("%d of %d bytes: %w", len(content), file.Size, err)
	}
	return p.show(sent{to: to, text: "<" + file.Name + "|" + file.Caption + "|" + string(content) + ">", repeat: file.Repeat})
}

func (p *platform) show(what sent) (string, error) {
	p.mu.Lock()
	p.ids++
	n, fail := p.ids, p.fail
	p.mu.Unlock()
	if fail != nil {
		if err := fail(n, false); err != nil {
			return "", err
		}
	}
	var failure error
	if fail != nil {
		failure = fail(n, true)
	}
	var refused *chats.SendError
	if failure == nil || errors.As(failure, &refused) && refused.Outcome == chats.Unknown {
		p.mu.Lock()
		what.id = fmt.Sprint(n)
		p.sent = append(p.sent, what)
		p.tell()
		p.mu.Unlock()
	}
	return fmt.Sprint(n), failure
}

func (p *platform) SetTyping(_ context.Context, to chats.Address, on bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.typing = append(p.typing, fmt.Sprintf("%s %v", to.Chat, on))
	return nil
}

func (p *platform) IsAdmin(_ context.Context, _ chats.Chat, user string) (bool, error) {
	return slices.Contains(p.admins, user), nil
}

// shown returns what was sent, as it reads now.
func (p *platform) shown() []sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}

func (p *platform) texts() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var texts []string
	for _, s := range p.sent {
		texts = append(texts, s.text)
	}
	return texts
}

// wait returns when as many messages were sent, with all of them.
func (p *platform) wait(t *testing.T, n int) []sent {
	t.Helper()
	return p.until(t, fmt.Sprintf("%d messages", n), func(all []sent) bool { return len(all) >= n })
}

// until returns what was sent once that is as it should be.
func (p *platform) until(t *testing.T, what string, cond func([]sent) bool) []sent {
	t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		p.mu.Lock()
		all, changed := slices.Clone(p.sent), p.changed
		p.mu.Unlock()
		if cond(all) {
			return all
		}
		select {
		case <-changed:
		case <-timeout.C:
			t.Fatalf("no %s: %v", what, all)
		}
	}
}

// toast returns what was told about a press, once it was.
func (p *platform) toast(t *testing.T, press string) string {
	t.Helper()
	var text string
	p.until(t, "toast for "+press, func([]sent) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		i := slices.IndexFunc(p.toasts, func(t toast) bool { return t.press == press })
		if i >= 0 {
			text = p.toasts[i].text
		}
		return i >= 0
	})
	return text
}

// thinker is an agent that is a function from a turn to messages.
type thinker func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error]

func (f thinker) Run(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	return f(ctx, turn)
}

// echo answers with what the last user message says.
func echo(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		last := turn.History[len(turn.History)-1]
		yield(agent.Message{Role: agent.RoleAssistant, Text: "re: " + last.Text, Final: true}, nil)
	}
}

// harness is a bridge on a store and a fake platform, and can be stopped and started.
type harness struct {
	t        *testing.T
	cfg      bridge.Config
	platform *platform
	bridge   *bridge.Bridge
	stop     func()
}

func registry(t *testing.T) *toolgroups.Registry {
	t.Helper()
	r, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Groups: []toolgroups.Group{
		{Name: "config", Role: toolgroups.RoleAdmin}, {Name: "pdf"}, {Name: "google_gmail"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newHarness(t *testing.T, think thinker, change ...func(*bridge.Config)) *harness {
	t.Helper()
	reg := registry(t)
	p := newPlatform()
	r := &harness{t: t, platform: p, cfg: bridge.Config{
		Store: openStore(t, filepath.Join(t.TempDir(), "db")), Turns: turn.Settings{Agent: think, Tools: func() *toolgroups.Registry { return reg }},
		Platforms: []chats.Platform{p}, Access: access.Access{Allow: []string{"*"}},
		DataDir: t.TempDir(), Limits: bridge.Limits{DrainTimeout: -1}, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}}
	r.cfg.Turns.SeparateTurns = think != nil // a thinker is told nothing while it thinks
	for _, c := range change {
		c(&r.cfg)
	}
	r.start()
	return r
}

func openStore(t *testing.T, path string) storage.Store {
	t.Helper()
	s, err := bolt.Open(bolt.Config{Path: path, NoSync: true})
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

func (r *harness) start() {
	r.t.Helper()
	b, err := bridge.New(r.cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	r.bridge = b
	go func() { done <- b.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Error(err)
		}
	})
	r.t.Cleanup(r.stop)
}

func (r *harness) restart() {
	r.t.Helper()
	r.stop()
	r.start()
}

func direct(id, text string) chats.Message {
	return chats.Message{
		Chat: chats.Chat{Platform: "fake", ID: "1"}, ID: id, Kind: chats.KindText,
		User: "1", UserName: "Ann", Direct: true, Text: text,
	}
}

func group(id, user, text string) chats.Message {
	m := direct(id, text)
	m.Chat.ID, m.User, m.Direct = "g", user, false
	return m
}

func (r *harness) accept(messages ...chats.Message) {
	r.t.Helper()
	if err := r.bridge.Accept(r.t.Context(), messages...); err != nil {
		r.t.Fatal(err)
	}
}

func texts(all []sent) []string {
	var out []string
	for _, s := range all {
		out = append(out, s.text)
	}
	return out
}
