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
// must be one; the properties of buttons are skipped for others.
type Presser interface {
	// Press makes a user press the button with this data under a message of the bot. If there is no
	// such button, the press is forged: apps can be made to send anything.
	Press(in Place, by, message, data string)
}

func buttonProperties() []property {
	return []property{
		{"ButtonsShow", "A part with buttons shows them under its text, in rows; one without shows none.", showsButtons},
		{"LinkShows", "A button with an address shows that it leads there, beside one that is pressed.", showsLinks},
		{"PressArrives", "A press arrives once, and says who pressed what under which message, and where it stands.", deliversPresses},
		{"PressIsKept", "A press that cannot be kept is not confirmed: it arrives again, as the same one.", keepsPresses},
		{"PressForged", "Data that is under no button arrives as it was sent, from whoever sent it.", deliversForged},
		{"PressAnswered", "Whoever pressed is shown the answer, and nothing is posted; to answer once more is no error.", answersPresses},
		{"EditReplaces", "An edit replaces the text and the buttons of its message and of no other; to do it twice is harmless.", edits},
		{"EditOfNothing", "An edit of a message that is not there is refused for good.", editsNothing},
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

// face starts an adapter that delivers into a drawer, or skips the test.
func (w *world) face() *bareAdapter {
	w.t.Helper()
	platform := w.harness.Adapter()
	editor, edits := platform.(chats.Editor)
	presser, presses := w.harness.Service.(Presser)
	if !edits || !presses {
		w.t.Skip("the platform shows no buttons")
	}
	f := &bareAdapter{Platform: platform, Editor: editor, world: w, press: presser.Press, inbox: newDrawer()}
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

// recordingInbox is an inbox that keeps every message, or rejects all while it is stuck.
type recordingInbox struct {
	mu      sync.Mutex // guards the fields below
	stuck   error
	refused int
	kept    []chats.Message
	changed chan struct{}
}

func newDrawer() *recordingInbox { return &recordingInbox{changed: make(chan struct{})} }

// change changes the drawer and wakes waiters.
func (d *recordingInbox) change(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
	close(d.changed)
	d.changed = make(chan struct{})
}

// Accept implements [bridge.Inbox].
func (d *recordingInbox) Accept(_ context.Context, messages ...chats.Message) (err error) {
	d.change(func() {
		if err = d.stuck; err != nil {
			d.refused++
			return
		}
		d.kept = append(d.kept, messages...)
	})
	return err
}

// Moved implements [bridge.Inbox].
func (d *recordingInbox) Moved(context.Context, chats.Chat, chats.Chat) error { return nil }

// await returns the presses once enough returns true.
func (f *bareAdapter) await(what string, enough func(d *recordingInbox, presses []chats.Message) bool) []chats.Message {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	for {
		f.inbox.mu.Lock()
		presses := slices.DeleteFunc(slices.Clone(f.inbox.kept), func(m chats.Message) bool { return m.Kind != chats.KindPress })
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

// presses waits for n presses and returns all.
func (f *bareAdapter) presses(n int) []chats.Message {
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

// post sends a part and returns its message as shown.
func (f *bareAdapter) post(in Place, part chats.Part) Shown {
	f.t.Helper()
	id, err := f.Send(f.t.Context(), f.address(in), part)
	if err != nil {
		f.t.Fatal(err)
	}
	return f.standing(in, id)
}

// standing returns the message with an id.
func (f *bareAdapter) standing(in Place, id string) Shown {
	f.t.Helper()
	for _, s := range f.look().in(in) {
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

func later() []chats.Button { return []chats.Button{{Label: "Später 🕐", Data: "tok_1-A:2"}} }

// looks checks the text and the buttons of a message. The style is up to the platform.
func (f *bareAdapter) looks(s Shown, text string, rows ...[]chats.Button) {
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

func showsButtons(_ testing.TB, w *world) {
	f := w.face()
	for _, place := range w.everywhere() {
		f.looks(f.post(place, f.part("sure?", yesNo(), later())), "sure?", yesNo(), later())
		f.looks(f.post(place, f.part("as you like")), "as you like")
	}
}

func showsLinks(t testing.TB, w *world) {
	f := w.face()
	const address = "https://pay.example.com/order/1?from=bot&n=2"
	row := []chats.Button{{Label: "Open pay.example.com", Data: "tok_1-A:3", URL: address}, {Label: "Done", Data: "tok_1-A:4"}}
	for _, place := range w.everywhere() {
		shown := f.post(place, f.part("pay", row)).Buttons
		if len(shown) != 1 || len(shown[0]) != 2 || shown[0][0].URL != address || shown[0][0].Label != row[0].Label {
			t.Fatalf("the buttons in %s are %q", place, shown)
		}
		if done := shown[0][1]; done.URL != "" || done.Data != row[1].Data {
			t.Errorf("the button beside it in %s is %q", place, done)
		}
	}
}

func deliversPresses(t testing.TB, w *world) {
	f := w.face()
	ids := map[string]bool{}
	for i, place := range w.everywhere() {
		f.post(place, f.part("another", later()))
		card := f.post(place, f.part("sure?", yesNo()))
		for n, by := range []string{w.harness.Member, w.harness.Member, w.harness.Admin} {
			if i == 0 {
				by = w.harness.Member // the direct chat is the member's
			}
			data := yesNo()[n%2].Data
			f.press(place, by, card.ID, data)
			got := f.presses(len(ids) + 1)
			p := got[len(got)-1]
			if p.Chat != f.address(place).Chat || p.On != card.ID || p.User != by || p.Text != data || p.Direct != (i == 0) {
				t.Errorf("the press of %s under %s in %s by %s arrived as %+v", data, card.ID, place, by, p)
			}
			if len(got) != len(ids)+1 || p.ID == "" || ids[p.ID] {
				t.Errorf("%d presses arrived of %d, the last with the id %q", len(got), len(ids)+1, p.ID)
			}
			ids[p.ID] = true
		}
	}
}

func keepsPresses(t testing.TB, w *world) {
	f := w.face()
	place := w.open(Shared, w.harness.Member)
	card := f.post(place, f.part("sure?", yesNo()))
	f.inbox.change(func() { f.inbox.stuck = errFull })
	f.press(place, w.harness.Member, card.ID, yesNo()[1].Data)
	f.await("a press that is refused", func(d *recordingInbox, _ []chats.Message) bool { return d.refused > 0 })
	w.stop()
	f.inbox.change(func() { f.inbox.stuck = nil })
	w.run(w.harness.Adapter(), f.inbox)
	if w.harness.PressesOnce {
		f.press(place, w.harness.Member, card.ID, yesNo()[1].Data)
	}
	if got := f.presses(1); len(got) != 1 || got[0].Text != yesNo()[1].Data || got[0].On != card.ID {
		t.Errorf("presses arrived as %+v", got)
	}
	// The next one shows that the first was confirmed.
	f.press(place, w.harness.Member, card.ID, yesNo()[0].Data)
	if got := f.presses(2); len(got) != 2 || got[1].Text != yesNo()[0].Data {
		t.Errorf("presses arrived as %+v", got)
	}
}

func deliversForged(t testing.TB, w *world) {
	f := w.face()
	place := w.open(Shared, w.harness.Member)
	card := f.post(place, f.part("sure?", yesNo()))
	for i, data := range []string{"x", "tok_2-B:0", "../card/<&\"'ä", "0123456789012345678901234567890123456789012345678901234567890123"} {
		f.press(place, w.harness.Stranger, card.ID, data)
		if p := f.presses(i + 1)[i]; p.Text != data || p.User != w.harness.Stranger {
			t.Errorf("forged %q of %s arrived as %+v", data, w.harness.Stranger, p)
		}
	}
}

func answersPresses(t testing.TB, w *world) {
	f := w.face()
	place := w.open(Thread, w.harness.Member)
	card := f.post(place, f.part("sure?", yesNo()))
	f.press(place, w.harness.Member, card.ID, yesNo()[0].Data)
	press := f.presses(1)[0]
	for range 2 {
		if err := f.AnswerPress(t.Context(), press, "Thank you."); err != nil {
			t.Error(err)
		}
	}
	w.await("the answer to be shown", func(v View) bool { return slices.Contains(v.Toasts, Toast{To: w.harness.Member, Text: "Thank you."}) })
	f.press(place, w.harness.Admin, card.ID, yesNo()[1].Data)
	if err := f.AnswerPress(t.Context(), f.presses(2)[1], ""); err != nil {
		t.Error(err)
	}
	v := w.look()
	if got := texts(v.in(place)); !slices.Equal(got, []string{"sure?"}) {
		t.Errorf("there stands %q, want the question alone", got)
	}
	if slices.ContainsFunc(v.Toasts, func(toast Toast) bool { return toast.To != w.harness.Member }) {
		t.Errorf("shown are %+v, want nothing but to who pressed first", v.Toasts)
	}
}

func edits(t testing.TB, w *world) {
	f := w.face()
	for _, place := range w.everywhere() {
		before := f.post(place, f.part("before"))
		card := f.post(place, f.part("sure?", yesNo()))
		after := f.post(place, f.part("after", later()))
		for _, part := range []chats.Part{
			f.part("**really** sure?", later(), yesNo()), f.part("**really** sure?", later()), f.part("done"), f.part("sure?", yesNo()), f.part("closed"),
		} {
			for range 2 {
				if err := f.Edit(t.Context(), f.address(place), card.ID, part); err != nil {
					t.Errorf("edit: %v", err)
				}
			}
			shown := f.standing(place, card.ID)
			f.looks(shown, f.post(w.open(Direct, w.harness.Member), part).Text, part.Buttons...)
		}
		f.looks(f.standing(place, before.ID), "before")
		f.looks(f.standing(place, after.ID), "after", later())
	}
}

func editsNothing(t testing.TB, w *world) {
	f := w.face()
	place := w.open(Thread, w.harness.Member)
	card := f.post(place, f.part("sure?", yesNo()))
	for _, id := range []string{"", "999999999", "nothing"} {
		var failure *chats.SendError
		if err := f.Edit(t.Context(), f.address(place), id, f.part("changed")); !errors.As(err, &failure) || failure.Outcome != chats.Refused {
			t.Errorf("edit of message %q = %v, want that it is refused", id, err)
		}
	}
	f.looks(f.standing(place, card.ID), "sure?", yesNo())
}
