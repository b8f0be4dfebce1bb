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
		{"BreaksAlone", "If a call of the adapter fails permanently, panics once or panics always, only its own message is affected: it is answered, or a line names an incident. Later messages in the same chat, and other chats, are answered.", testBreaksAlone},
	}
}

// The ways in which a call can fail.
const (
	failsForEver = "fails for ever"
	panicsOnce   = "panics once"
	panicsAlways = "panics always"
)

// The calls that can fail.
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

// callFault makes a call fail in one chat, or for one file.
type callFault struct {
	step, way string
	hits      int
	hit       chan struct{} // closed at the first hit
}

// fullAdapter is an adapter with all the methods that can be made to fail.
type fullAdapter interface {
	chats.Platform
	chats.Editor
	chats.TypingIndicator
	chats.Previewer
	chats.FileFetcher
	chats.AdminChecker
	chats.Pinger
}

// faultyAdapter is an adapter in which one call fails in each of some chats. Its first Run panics.
type faultyAdapter struct {
	fullAdapter
	mu         sync.Mutex            // guards the fields below
	chats      map[string]*callFault // by the id of the chat
	files      map[string]*callFault // by the file's Ref
	unassigned []string              // ways for the files not fetched yet
	runs       int
}

func (p *faultyAdapter) injectFault(step string, chat chats.Chat) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.chats[chat.ID]; b != nil && b.step == step {
		return b.fail()
	}
	return nil
}

func (b *callFault) fail() error {
	if b.hits++; b.hits == 1 {
		close(b.hit)
	}
	switch {
	case b.way == failsForEver:
		return &chats.SendError{Outcome: chats.Later, Err: errBroken}
	case b.way == panicsAlways || b.hits == 1:
		panic("broken by the test: " + b.step)
	}
	return nil
}

func (p *faultyAdapter) injectTextFault(step string, to chats.Address, texts ...string) error {
	if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, poison) }) {
		return nil
	}
	return p.injectFault(step, to.Chat)
}

// Run panics the first time, after a message has arrived that is not accepted.
func (p *faultyAdapter) Run(ctx context.Context, in chats.Inbox) error {
	p.mu.Lock()
	p.runs++
	first := p.runs == 1
	p.mu.Unlock()
	if !first {
		return p.fullAdapter.Run(ctx, in)
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := p.fullAdapter.Run(running, refusingInbox{in, cancel}); err != nil || ctx.Err() != nil {
		return err
	}
	panic("broken by the test: run")
}

// refusingInbox is an inbox that accepts nothing, and calls cancel.
type refusingInbox struct {
	chats.Inbox
	cancel func()
}

func (r refusingInbox) Accept(context.Context, ...chats.Message) error {
	r.cancel()
	return errBroken
}

func (p *faultyAdapter) Send(ctx context.Context, to chats.Address, part chats.Part) (string, error) {
	if err := p.injectTextFault(stepSend, to, part.Text, part.Plain); err != nil {
		return "", err
	}
	return p.fullAdapter.Send(ctx, to, part)
}

func (p *faultyAdapter) Begin(ctx context.Context, to chats.Address, show chats.Preview) (string, error) {
	if err := p.injectTextFault(stepBegin, to, show.Text, show.Part.Text); err != nil {
		return "", err
	}
	return p.fullAdapter.Begin(ctx, to, show)
}

func (p *faultyAdapter) Update(ctx context.Context, to chats.Address, id string, show chats.Preview) error {
	if err := p.injectTextFault(stepUpdate, to, show.Text, show.Part.Text); err != nil {
		return err
	}
	return p.fullAdapter.Update(ctx, to, id, show)
}

func (p *faultyAdapter) Finish(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	if err := p.injectTextFault(stepFinish, to, part.Text, part.Plain); err != nil {
		return err
	}
	return p.fullAdapter.Finish(ctx, to, id, part)
}

func (p *faultyAdapter) SetTyping(ctx context.Context, to chats.Address, on bool) error {
	if err := p.injectFault(stepTyping, to.Chat); err != nil {
		return err
	}
	return p.fullAdapter.SetTyping(ctx, to, on)
}

func (p *faultyAdapter) Edit(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	if err := p.injectFault(stepEdit, to.Chat); err != nil {
		return err
	}
	return p.fullAdapter.Edit(ctx, to, id, part)
}

func (p *faultyAdapter) AnswerPress(ctx context.Context, press chats.Message, text string) error {
	if err := p.injectFault(stepPress, press.Chat); err != nil {
		return err
	}
	return p.fullAdapter.AnswerPress(ctx, press, text)
}

func (p *faultyAdapter) FetchFile(ctx context.Context, a chats.Attachment, w io.Writer) error {
	if err := p.injectFileFault(a.Ref); err != nil {
		return err
	}
	return p.fullAdapter.FetchFile(ctx, a, w)
}

// injectFileFault fails as the fault of the file says. A file that is fetched for the first time takes
// the next unassigned way.
func (p *faultyAdapter) injectFileFault(ref string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.files[ref] == nil && len(p.unassigned) > 0 {
		p.files[ref], p.unassigned = &callFault{step: stepFetch, way: p.unassigned[0], hit: make(chan struct{})}, p.unassigned[1:]
	}
	if b := p.files[ref]; b != nil {
		return b.fail()
	}
	return nil
}

// speak answers with the text of the message, in pieces, so that the answer is shown while it grows. If
// an update is to fail, it continues until one has failed.
func (p *faultyAdapter) speak(ctx context.Context, said []string, show func(string)) string {
	last := said[len(said)-1]
	if !strings.HasPrefix(last, poison) || strings.Contains(last, stepSend) {
		return echo(ctx, said)
	}
	text := reply(last)
	show(text)
	for n := 0; n < 3 || n < 20 && !p.hasFailed(last); n++ {
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

// hasFailed reports whether the update that a message names has failed; true for other messages.
func (p *faultyAdapter) hasFailed(message string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.chats {
		if b.step == stepUpdate && strings.Contains(message, b.String()) {
			return b.hits > 0
		}
	}
	return true
}

func (b *callFault) String() string { return b.step + " " + b.way }

func testBreaksAlone(t testing.TB, w *world) {
	p := &faultyAdapter{chats: map[string]*callFault{}, files: map[string]*callFault{}}
	w.wrap = func(adapter chats.Platform) chats.Platform {
		var has bool
		if p.fullAdapter, has = adapter.(fullAdapter); !has {
			t.Skip("the platform lacks calls that could break")
		}
		return p
	}
	w.stream = p.speak
	w.cfg.Turns.RedactPartial = func(text string) string { return text[:strings.LastIndexByte(text, ' ')+1] }
	w.cfg.Limits.RetryFor, w.cfg.Limits.MaxWaitingMember = 50*time.Millisecond, 100
	places := map[Place]string{} // the fault in each place
	breaks := func(step, way string) Place {
		place := w.open(Shared, w.harness.Member)
		b := &callFault{step: step, way: way, hit: make(chan struct{})}
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
			p.unassigned, photos = append(p.unassigned, way), append(photos, breaks(stepFetch, way))
		}
	}
	w.start()
	for _, place := range said {
		w.say(place, poison+" "+places[place])
	}
	for _, place := range photos {
		w.harness.Service.(Photographer).Photograph(place, w.harness.Member, poison+" "+places[place], []byte("no picture"))
	}
	w.pressUndo(cards)
	w.want(w.awaitSettled(w.open(Direct, w.harness.Member)))
	for _, place := range slices.Concat(said, photos) {
		w.await("an answer despite the fault: "+places[place], func(v View) bool {
			return slices.ContainsFunc(v.inPlace(place), func(s Shown) bool {
				return s.hasIncident() || strings.Contains(s.Text, poison+" "+places[place])
			})
		})
	}
	for place := range places {
		w.awaitSettled(place)
	}
	// Edits of a card do not wait for messages in its chat.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, b := range p.chats {
		if b.step == stepFetch {
			continue
		}
		select {
		case <-b.hit:
		case <-ctx.Done():
			select {
			case <-b.hit:
			default:
				t.Errorf("this call was never made: %s", b)
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.unassigned) > 0 {
		t.Errorf("%d files were not fetched", len(p.unassigned))
	}
}

// pressUndo makes the administrator clear the conversations of places, and then press the button that
// undoes it.
func (w *world) pressUndo(places []Place) {
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
		all := w.await(fmt.Sprintf("a button in %s", place), func(v View) bool { return slices.ContainsFunc(v.inPlace(place), buttons) }).inPlace(place)
		card := all[slices.IndexFunc(all, buttons)]
		presser.Press(place, w.harness.Admin, card.ID, card.Buttons[0][0].Data)
	}
}
