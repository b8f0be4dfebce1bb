package platformtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"oneclaw/bridge/chats"
)

// Presser is a [Service] whose messages can have buttons. A service whose adapter is a [chats.Editor]
// must be one; for other services the properties of buttons are skipped.
type Presser interface {
	// Press makes a user press the button with this data under a message of the bot. If there is no such
	// button, the press is forged, because a client can send any data.
	Press(in Place, by, message, data string)
}

func buttonProperties() []property {
	return []property{
		{"ButtonsShow", "A part with buttons shows them below its text, in rows; a part without buttons shows none.", testButtonsShow},
		{"LinkShows", "A button with a URL shows that it leads there, beside a button that is pressed.", testLinkShows},
		{"PressArrives", "A press arrives once, with the user, the data, the message and the chat.", testPressArrives},
		{"PressIsKept", "A press that cannot be stored is not confirmed: it arrives again, with the same id.", testPressIsKept},
		{"PressForged", "Data that belongs to no button arrives as it was sent, with the user who sent it.", testPressForged},
		{"PressAnswered", "The answer to a press is shown to the user who pressed, and nothing is posted; answering again is no error.", testPressAnswered},
		{"EditReplaces", "An edit replaces the text and the buttons of its message and of no other; repeating it is harmless.", testEditReplaces},
		{"EditOfNothing", "An edit of a message that does not exist is refused permanently.", testEditOfNothing},
	}
}

// bareAdapter is an adapter without a bridge behind it.
type bareAdapter struct {
	chats.Platform
	chats.Editor
	*world
	press func(in Place, by, message, data string)
	inbox *recordingInbox
}

// startBare starts an adapter that delivers into a recordingInbox, or skips the test.
func (w *world) startBare() *bareAdapter {
	w.t.Helper()
	platform := w.harness.Adapter()
	editor, edits := platform.(chats.Editor)
	presser, presses := w.harness.Service.(Presser)
	if !edits || !presses {
		w.t.Skip("the platform shows no buttons")
	}
	f := &bareAdapter{Platform: platform, Editor: editor, world: w, press: presser.Press, inbox: newRecordingInbox()}
	f.run(platform, f.inbox)
	return f
}

// run runs an adapter until the world stops.
func (w *world) run(platform chats.Platform, in chats.Inbox) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- platform.Run(ctx, in) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("Run: %v", err)
		}
	})
}

// recordingInbox is an inbox that keeps every message, or rejects all while err is set.
type recordingInbox struct {
	mu       sync.Mutex // guards the fields below
	err      error
	refused  int
	messages []chats.Message
	changed  chan struct{}
}

func newRecordingInbox() *recordingInbox { return &recordingInbox{changed: make(chan struct{})} }

// update changes the inbox and wakes waiters.
func (d *recordingInbox) update(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
	close(d.changed)
	d.changed = make(chan struct{})
}

// Accept implements [chats.Inbox].
func (d *recordingInbox) Accept(_ context.Context, messages ...chats.Message) (err error) {
	d.update(func() {
		if err = d.err; err != nil {
			d.refused++
			return
		}
		d.messages = append(d.messages, messages...)
	})
	return err
}

// Moved implements [chats.Inbox].
func (d *recordingInbox) Moved(context.Context, chats.Chat, chats.Chat) error { return nil }

// await returns the presses once enough returns true.
func (f *bareAdapter) await(what string, enough func(d *recordingInbox, presses []chats.Message) bool) []chats.Message {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	for {
		f.inbox.mu.Lock()
		presses := slices.DeleteFunc(slices.Clone(f.inbox.messages), func(m chats.Message) bool { return m.Kind != chats.KindPress })
		ok, changed := enough(f.inbox, presses), f.inbox.changed
		f.inbox.mu.Unlock()
		if ok {
			return presses
		}
		select {
		case <-changed:
		case <-ctx.Done():
			f.t.Fatalf("waited in vain for %s; these presses have arrived: %+v", what, presses)
		}
	}
}

// awaitPresses waits for n presses and returns all presses.
func (f *bareAdapter) awaitPresses(n int) []chats.Message {
	f.t.Helper()
	return f.await(fmt.Sprintf("%d presses", n), func(_ *recordingInbox, presses []chats.Message) bool { return len(presses) >= n })
}

// address returns the destination of an answer in a place.
func (f *bareAdapter) address(in Place) chats.Address {
	f.t.Helper()
	chat, err := chats.ParseChat(string(in))
	if err != nil {
		f.t.Fatal(err)
	}
	return chats.Address{Chat: chat}
}

// part returns a text of one line with buttons.
func (f *bareAdapter) part(text string, rows ...[]chats.Button) chats.Part {
	f.t.Helper()
	parts := f.Render(text)
	if len(parts) != 1 {
		f.t.Fatalf("%q is rendered in %d parts", text, len(parts))
	}
	parts[0].Buttons = rows
	return parts[0]
}

// post sends a part and returns its message as users see it.
func (f *bareAdapter) post(in Place, part chats.Part) Shown {
	f.t.Helper()
	id, err := f.Send(f.t.Context(), f.address(in), part)
	if err != nil {
		f.t.Fatal(err)
	}
	return f.message(in, id)
}

// message returns the message with the given id.
func (f *bareAdapter) message(in Place, id string) Shown {
	f.t.Helper()
	for _, s := range f.view().inPlace(in) {
		if s.ID == id {
			return s
		}
	}
	f.t.Fatalf("there is no message %s in %s", id, in)
	return Shown{}
}

func yesNo() []chats.Button {
	return []chats.Button{{Label: "Yes", Data: "tok_1-A:0", Style: chats.StylePrimary}, {Label: "No & never <b>", Data: "tok_1-A:1", Style: chats.StyleDanger}}
}

func laterButton() []chats.Button { return []chats.Button{{Label: "Später 🕐", Data: "tok_1-A:2"}} }

// wantMessage checks the text and the buttons of a message. The style is up to the platform.
func (f *bareAdapter) wantMessage(s Shown, text string, rows ...[]chats.Button) {
	f.t.Helper()
	f.want([]Shown{s}, text)
	plain := func(rows [][]chats.Button) (list [][]chats.Button) {
		for _, row := range rows {
			var short []chats.Button
			for _, b := range row {
				short = append(short, chats.Button{Label: b.Label, Data: b.Data})
			}
			list = append(list, short)
		}
		return list
	}
	if got, want := plain(s.Buttons), plain(rows); !slices.EqualFunc(got, want, slices.Equal[[]chats.Button]) {
		f.t.Errorf("%q has the buttons %q, want %q", s.Text, got, want)
	}
}

func testButtonsShow(_ testing.TB, w *world) {
	f := w.startBare()
	for _, place := range w.openAll() {
		f.wantMessage(f.post(place, f.part("sure?", yesNo(), laterButton())), "sure?", yesNo(), laterButton())
		f.wantMessage(f.post(place, f.part("as you like")), "as you like")
	}
}

func testLinkShows(t testing.TB, w *world) {
	f := w.startBare()
	const address = "https://pay.example.com/order/1?from=bot&n=2"
	row := []chats.Button{{Label: "Open pay.example.com", Data: "tok_1-A:3", URL: address}, {Label: "Done", Data: "tok_1-A:4"}}
	for _, place := range w.openAll() {
		shown := f.post(place, f.part("pay", row)).Buttons
		if len(shown) != 1 || len(shown[0]) != 2 || shown[0][0].URL != address || shown[0][0].Label != row[0].Label {
			t.Fatalf("the buttons in %s are %q", place, shown)
		}
		if done := shown[0][1]; done.URL != "" || done.Data != row[1].Data {
			t.Errorf("the button beside it in %s is %q", place, done)
		}
	}
}

func testPressArrives(t testing.TB, w *world) {
	f := w.startBare()
	ids := map[string]bool{}
	for i, place := range w.openAll() {
		f.post(place, f.part("another", laterButton()))
		card := f.post(place, f.part("sure?", yesNo()))
		for n, by := range []string{w.harness.Member, w.harness.Member, w.harness.Admin} {
			if i == 0 {
				by = w.harness.Member // the direct chat is the member's
			}
			data := yesNo()[n%2].Data
			f.press(place, by, card.ID, data)
			got := f.awaitPresses(len(ids) + 1)
			p := got[len(got)-1]
			if p.Chat != f.address(place).Chat || p.TargetID != card.ID || p.User != by || p.Text != data || p.Direct != (i == 0) {
				t.Errorf("the press of %s under %s in %s by %s arrived as %+v", data, card.ID, place, by, p)
			}
			if len(got) != len(ids)+1 || p.ID == "" || ids[p.ID] {
				t.Errorf("%d presses arrived of %d, the last with the id %q", len(got), len(ids)+1, p.ID)
			}
			ids[p.ID] = true
		}
	}
}

func testPressIsKept(t testing.TB, w *world) {
	f := w.startBare()
	place := w.open(Shared, w.harness.Member)
	card := f.post(place, f.part("sure?", yesNo()))
	f.inbox.update(func() { f.inbox.err = errFull })
	f.press(place, w.harness.Member, card.ID, yesNo()[1].Data)
	f.await("a press that is refused", func(d *recordingInbox, _ []chats.Message) bool { return d.refused > 0 })
	w.stop()
	f.inbox.update(func() { f.inbox.err = nil })
	w.run(w.harness.Adapter(), f.inbox)
	if w.harness.PressesOnce {
		f.press(place, w.harness.Member, card.ID, yesNo()[1].Data)
	}
	if got := f.awaitPresses(1); len(got) != 1 || got[0].Text != yesNo()[1].Data || got[0].TargetID != card.ID {
		t.Errorf("presses arrived as %+v", got)
	}
	// The next one shows that the first was confirmed.
	f.press(place, w.harness.Member, card.ID, yesNo()[0].Data)
	if got := f.awaitPresses(2); len(got) != 2 || got[1].Text != yesNo()[0].Data {
		t.Errorf("presses arrived as %+v", got)
	}
}

func testPressForged(t testing.TB, w *world) {
	f := w.startBare()
	place := w.open(Shared, w.harness.Member)
	card := f.post(place, f.part("sure?", yesNo()))
	for i, data := range []string{"x", "tok_2-B:0", "../card/<&\"'ä", "0123456789012345678901234567890123456789012345678901234567890123"} {
		f.press(place, w.harness.Stranger, card.ID, data)
		if p := f.awaitPresses(i + 1)[i]; p.Text != data || p.User != w.harness.Stranger {
			t.Errorf("forged %q of %s arrived as %+v", data, w.harness.Stranger, p)
		}
	}
}

func testPressAnswered(t testing.TB, w *world) {
	f := w.startBare()
	place := w.open(thread, w.harness.Member)
	card := f.post(place, f.part("sure?", yesNo()))
	f.press(place, w.harness.Member, card.ID, yesNo()[0].Data)
	press := f.awaitPresses(1)[0]
	for range 2 {
		if err := f.AnswerPress(t.Context(), press, "Thank you."); err != nil {
			t.Error(err)
		}
	}
	w.await("the answer to be shown", func(v View) bool { return slices.Contains(v.Toasts, Toast{To: w.harness.Member, Text: "Thank you."}) })
	f.press(place, w.harness.Admin, card.ID, yesNo()[1].Data)
	if err := f.AnswerPress(t.Context(), f.awaitPresses(2)[1], ""); err != nil {
		t.Error(err)
	}
	v := w.view()
	if got := texts(v.inPlace(place)); !slices.Equal(got, []string{"sure?"}) {
		t.Errorf("shown: %q, want the question alone", got)
	}
	if slices.ContainsFunc(v.Toasts, func(toast Toast) bool { return toast.To != w.harness.Member }) {
		t.Errorf("shown are %+v, want nothing but to who pressed first", v.Toasts)
	}
}

func testEditReplaces(t testing.TB, w *world) {
	f := w.startBare()
	for _, place := range w.openAll() {
		before := f.post(place, f.part("before"))
		card := f.post(place, f.part("sure?", yesNo()))
		after := f.post(place, f.part("after", laterButton()))
		for _, part := range []chats.Part{
			f.part("**really** sure?", laterButton(), yesNo()), f.part("**really** sure?", laterButton()), f.part("done"), f.part("sure?", yesNo()), f.part("closed"),
		} {
			for range 2 {
				if err := f.Edit(t.Context(), f.address(place), card.ID, part); err != nil {
					t.Errorf("edit: %v", err)
				}
			}
			shown := f.message(place, card.ID)
			f.wantMessage(shown, f.post(w.open(Direct, w.harness.Member), part).Text, part.Buttons...)
		}
		f.wantMessage(f.message(place, before.ID), "before")
		f.wantMessage(f.message(place, after.ID), "after", laterButton())
	}
}

func testEditOfNothing(t testing.TB, w *world) {
	f := w.startBare()
	place := w.open(thread, w.harness.Member)
	card := f.post(place, f.part("sure?", yesNo()))
	for _, id := range []string{"", "999999999", "nothing"} {
		var failure *chats.SendError
		if err := f.Edit(t.Context(), f.address(place), id, f.part("changed")); !errors.As(err, &failure) || failure.Outcome != chats.Refused {
			t.Errorf("edit of message %q = %v, want that it is refused", id, err)
		}
	}
	f.wantMessage(f.message(place, card.ID), "sure?", yesNo())
}
