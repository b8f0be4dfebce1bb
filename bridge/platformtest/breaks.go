package platformtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oneclaw/bridge/chats"
)

func breakProperties() []property {
	return []property{
		{"BreaksAlone", "A call of the adapter that fails for ever, panics once or panics always ends its own message alone: that is answered, or a line names an incident; the next one of its chat, and other chats, are answered.", breaksAlone},
	}
}

// The ways in which a call fails.
const (
	failsForEver = "fails for ever"
	panicsOnce   = "panics once"
	panicsAlways = "panics always"
)

// The calls that fail.
const (
	stepSend   = "send"
	stepBegin  = "begin"
	stepUpdate = "update"
	stepFinish = "finish"
	stepTyping = "typing"
	stepEdit   = "edit"
	stepPress  = "answer press"
	stepFetch  = "fetch"
)

// poison marks messages whose answers fail.
const poison = "poison"

var errBroken = errors.New("broken by the test")

// breakage makes a call fail in one chat.
type breakage struct {
	step, way string
	hits      int
	met       chan struct{} // closed at the first hit
}

// complete is an adapter with all methods that are made to fail.
type complete interface {
	chats.Platform
	chats.Editor
	chats.TypingIndicator
	chats.Previewer
	chats.FileFetcher
	chats.AdminChecker
	chats.Pinger
}

// faultyAdapter is an adapter in which a call fails in each of some chats, and the first call of Run.
type faultyAdapter struct {
	complete
	mu    sync.Mutex           // guards the fields below
	chats map[string]*breakage // by the id of the chat
	files map[string]*breakage // by the file's Ref
	ways  []string             // of the files not fetched yet
	runs  int
}

func (p *faultyAdapter) strike(step string, chat chats.Chat) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.chats[chat.ID]; b != nil && b.step == step {
		return b.strike()
	}
	return nil
}

func (b *breakage) strike() error {
	if b.hits++; b.hits == 1 {
		close(b.met)
	}
	switch {
	case b.way == failsForEver:
		return &chats.SendError{Outcome: chats.Later, Err: errBroken}
	case b.way == panicsAlways || b.hits == 1:
		panic("broken by the test: " + b.step)
	}
	return nil
}

func (p *faultyAdapter) strikeText(step string, to chats.Address, texts ...string) error {
	if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, poison) }) {
		return nil
	}
	return p.strike(step, to.Chat)
}

// Run panics the first time, once something has arrived that was not accepted.
func (p *faultyAdapter) Run(ctx context.Context, in chats.Inbox) error {
	p.mu.Lock()
	p.runs++
	first := p.runs == 1
	p.mu.Unlock()
	if !first {
		return p.complete.Run(ctx, in)
	}
	running, end := context.WithCancel(ctx)
	defer end()
	if err := p.complete.Run(running, refusing{in, end}); err != nil || ctx.Err() != nil {
		return err
	}
	panic("broken by the test: run")
}

// refusing is an inbox that accepts nothing, and calls end.
type refusing struct {
	chats.Inbox
	end func()
}

func (r refusing) Accept(context.Context, ...chats.Message) error {
	r.end()
	return errBroken
}

func (p *faultyAdapter) Send(ctx context.Context, to chats.Address, part chats.Part) (string, error) {
	if err := p.strikeText(stepSend, to, part.Text, part.Plain); err != nil {
		return "", err
	}
	return p.complete.Send(ctx, to, part)
}

func (p *faultyAdapter) Begin(ctx context.Context, to chats.Address, show chats.Preview) (string, error) {
	if err := p.strikeText(stepBegin, to, show.Text, show.Part.Text); err != nil {
		return "", err
	}
	return p.complete.Begin(ctx, to, show)
}

func (p *faultyAdapter) Update(ctx context.Context, to chats.Address, id string, show chats.Preview) error {
	if err := p.strikeText(stepUpdate, to, show.Text, show.Part.Text); err != nil {
		return err
	}
	return p.complete.Update(ctx, to, id, show)
}

func (p *faultyAdapter) Finish(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	if err := p.strikeText(stepFinish, to, part.Text, part.Plain); err != nil {
		return err
	}
	return p.complete.Finish(ctx, to, id, part)
}

func (p *faultyAdapter) SetTyping(ctx context.Context, to chats.Address, on bool) error {
	if err := p.strike(stepTyping, to.Chat); err != nil {
		return err
	}
	return p.complete.SetTyping(ctx, to, on)
}

func (p *faultyAdapter) Edit(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	if err := p.strike(stepEdit, to.Chat); err != nil {
		return err
	}
	return p.complete.Edit(ctx, to, id, part)
}

func (p *faultyAdapter) AnswerPress(ctx context.Context, press chats.Message, text string) error {
	if err := p.strike(stepPress, press.Chat); err != nil {
		return err
	}
	return p.complete.AnswerPress(ctx, press, text)
}

func (p *faultyAdapter) FetchFile(ctx context.Context, a chats.Attachment, w io.Writer) error {
	if err := p.strikeFile(a.Ref); err != nil {
		return err
	}
	return p.complete.FetchFile(ctx, a, w)
}

// strikeFile assigns one of the ways to each file that is fetched.
func (p *faultyAdapter) strikeFile(ref string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.files[ref] == nil && len(p.ways) > 0 {
		p.files[ref], p.ways = &breakage{step: stepFetch, way: p.ways[0], met: make(chan struct{})}, p.ways[1:]
	}
	if b := p.files[ref]; b != nil {
		return b.strike()
	}
	return nil
}

// speak says in pieces what it is asked, so that it is shown while it is made; if an update is to fail,
// until that has failed.
func (p *faultyAdapter) speak(ctx context.Context, said []string, show func(string)) string {
	last := said[len(said)-1]
	if !strings.HasPrefix(last, poison) || strings.Contains(last, stepSend) {
		return echo(ctx, said)
	}
	text := reply(last)
	show(text)
	for n := 0; n < 3 || n < 20 && !p.struck(last); n++ {
		timer := time.NewTimer(900 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return text
		}
		const more = " and more"
		show(more)
		text += more
	}
	return text
}

// struck reports whether the update that a message is about has failed; true for others.
func (p *faultyAdapter) struck(message string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.chats {
		if b.step == stepUpdate && strings.Contains(message, b.String()) {
			return b.hits > 0
		}
	}
	return true
}

func (b *breakage) String() string { return b.step + " " + b.way }

func breaksAlone(t testing.TB, w *world) {
	p := &faultyAdapter{chats: map[string]*breakage{}, files: map[string]*breakage{}}
	w.wrap = func(adapter chats.Platform) chats.Platform {
		var has bool
		if p.complete, has = adapter.(complete); !has {
			t.Skip("the platform lacks calls that could break")
		}
		return p
	}
	w.speak = p.speak
	w.cfg.Turns.RedactPartial = func(text string) string { return text[:strings.LastIndexByte(text, ' ')+1] }
	w.cfg.Limits.RetryFor, w.cfg.Limits.MaxWaitingMember = 50*time.Millisecond, 100
	places := map[Place]string{} // the failure in each
	breaks := func(step, way string) Place {
		place := w.open(Shared, w.harness.Member)
		b := &breakage{step: step, way: way, met: make(chan struct{})}
		places[place] = b.String()
		chat, err := chats.ParseChat(string(place))
		if err != nil {
			t.Fatal(err)
		}
		p.chats[chat.ID] = b
		return place
	}
	var said, cards, photos []Place
	for _, way := range []string{failsForEver, panicsOnce, panicsAlways} {
		for _, step := range []string{stepSend, stepBegin, stepUpdate, stepFinish, stepTyping} {
			said = append(said, breaks(step, way))
		}
		for _, step := range []string{stepEdit, stepPress} {
			cards = append(cards, breaks(step, way))
		}
		if _, sends := w.harness.Service.(Photographer); sends {
			p.ways, photos = append(p.ways, way), append(photos, breaks(stepFetch, way))
		}
	}
	w.start()
	for _, place := range said {
		w.say(place, poison+" "+places[place])
	}
	for _, place := range photos {
		w.harness.Service.(Photographer).Photograph(place, w.harness.Member, poison+" "+places[place], []byte("no picture"))
	}
	w.pressAll(cards)
	w.want(w.settled(w.open(Direct, w.harness.Member)))
	for _, place := range slices.Concat(said, photos) {
		w.await("an answer where this breaks: "+places[place], func(v View) bool {
			return slices.ContainsFunc(v.in(place), func(s Shown) bool {
				return s.explains() || strings.Contains(s.Text, poison+" "+places[place])
			})
		})
	}
	for place := range places {
		w.settled(place)
	}
	// An edit of a card waits for no message of its chat.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, b := range p.chats {
		if b.step == stepFetch {
			continue
		}
		select {
		case <-b.met:
		case <-ctx.Done():
			t.Errorf("nothing has come to this step: %s", b)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ways) > 0 {
		t.Errorf("%d files were not fetched", len(p.ways))
	}
}

// pressAll makes the administrator clear the conversations of places, and press the button that undoes
// it.
func (w *world) pressAll(places []Place) {
	w.t.Helper()
	presser, presses := w.harness.Service.(Presser)
	if !presses {
		w.t.Skip("the service shows no buttons")
	}
	for _, place := range places {
		w.say(place, "before")
		w.harness.Say(place, w.harness.Admin, "/clear")
	}
	for _, place := range places {
		buttons := func(s Shown) bool { return len(s.Buttons) > 0 }
		all := w.await(fmt.Sprintf("a button in %s", place), func(v View) bool { return slices.ContainsFunc(v.in(place), buttons) }).in(place)
		card := all[slices.IndexFunc(all, buttons)]
		presser.Press(place, w.harness.Admin, card.ID, card.Buttons[0][0].Data)
	}
}
