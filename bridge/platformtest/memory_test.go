package platformtest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oneclaw/bridge/chats"
)

const memoryLimit = 1000

// memory is a chat service in memory. Its adapters have a bug where one is named.
type memory struct {
	t   testing.TB
	bug string

	mu       sync.Mutex // guards what follows
	changed  chan struct{}
	ids      int
	opened   int
	adapters int
	updates  []chats.Message  // not confirmed
	twice    map[string]bool  // chats whose next message is delivered twice
	faults   map[string]Fault // for the next send in a chat
	edits    map[string]Fault // for the next edit in a chat
	outage   int              // pings that are to fail
	openers  map[string]string
	ambient  map[Place][]chats.Quoted
	view     View
	files    [][]byte
}

func newMemory(t testing.TB, bug string) *memory {
	return &memory{
		t: t, bug: bug, changed: make(chan struct{}),
		twice: map[string]bool{}, faults: map[string]Fault{}, edits: map[string]Fault{}, openers: map[string]string{}, ambient: map[Place][]chats.Quoted{},
	}
}

func newMemoryHarness(t testing.TB, bug string) Harness {
	return Harness{Service: newMemory(t, bug), Member: "ann", Admin: "chief", Stranger: "eve", Limit: memoryLimit}
}

// change changes the service and tells those who watch.
func (m *memory) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *memory) Adapter() chats.Platform {
	a := &adapter{m: m, still: make(chan struct{}, 1)}
	m.change(func() {
		m.adapters++
		a.restarted = m.adapters > 1
	})
	return a
}

func (m *memory) Open(kind Kind, by string) (place Place) {
	m.change(func() {
		m.opened++
		switch kind {
		case Direct:
			place = Place("memory:dm-" + by)
		case Shared:
			place = Place(fmt.Sprintf("memory:shared-%d", m.opened))
		case thread:
			place = Place(fmt.Sprintf("memory:forum:%d", m.opened))
			m.openers[string(place)] = by
		}
	})
	return place
}

// Speak implements [Speaker].
func (m *memory) Speak(in Place, by string, sound []byte) {
	m.say(in, by, "", chats.Attachment{Ref: m.keep(sound), Name: "voice.ogg", Sound: chats.Sound{Kind: chats.SoundSpoken}})
}

// Photograph implements [Photographer].
func (m *memory) Photograph(in Place, by, text string, picture []byte) {
	m.say(in, by, text, chats.Attachment{Ref: m.keep(picture), Name: "photo.png"})
}

// keep keeps a file.
func (m *memory) keep(data []byte) (ref string) {
	m.change(func() {
		m.files = append(m.files, data)
		ref = fmt.Sprint(len(m.files) - 1)
	})
	return ref
}

// say has somebody say something with files.
func (m *memory) say(in Place, by, text string, files ...chats.Attachment) {
	m.send(in, by, text, func(msg *chats.Message) { msg.Files = files })
}

func (m *memory) Quote(in Place, by, text string, at Original) {
	q := chats.Quoted{Kind: chats.RefReply, By: at.Author, Text: at.Text}
	if text == "" {
		q.Kind = chats.RefForward
	}
	if at.Own != "" {
		m.mu.Lock()
		i := slices.IndexFunc(m.view.Messages, func(s Shown) bool { return s.ID == at.Own })
		q.FromBot, q.Text = true, m.view.Messages[i].Text
		m.mu.Unlock()
	}
	if at.File != "" {
		q.Files = []chats.Attachment{{Ref: m.keep([]byte(at.Text)), Name: at.File}}
	}
	m.tell(in, by, text, q)
}

func (m *memory) Ambient(in Place, by, text string) {
	chat, err := chats.ParseChat(string(in))
	if err != nil {
		m.t.Fatal(err)
	}
	m.change(func() {
		m.ids++
		if chat.Thread == "" {
			m.updates = append(m.updates, chats.Message{
				Chat: chat, ID: fmt.Sprint(m.ids), Kind: chats.KindAmbient, User: by, UserName: by, Text: text, Time: time.Now(),
			})
			return
		}
		m.ambient[in] = append(m.ambient[in], chats.Quoted{Kind: chats.RefThread, ID: fmt.Sprint(m.ids), By: by, Text: text})
	})
}

// Said is what was said to others in a place, behind a message.
func (m *memory) said(in Place, after string) (list []chats.Quoted) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, _ := strconv.Atoi(after)
	for _, q := range m.ambient[in] {
		if id, _ := strconv.Atoi(q.ID); id > last {
			list = append(list, q)
		}
	}
	return list
}

func (m *memory) tell(in Place, by, text string, quoted ...chats.Quoted) {
	m.send(in, by, text, func(msg *chats.Message) { msg.Quoted = quoted })
}

func (m *memory) Say(in Place, by, text string) (id string) {
	return m.send(in, by, text, func(*chats.Message) {})
}

// send has somebody say something that is changed before it is delivered.
func (m *memory) send(in Place, by, text string, change func(*chats.Message)) (id string) {
	chat, err := chats.ParseChat(string(in))
	if err != nil {
		m.t.Fatal(err)
	}
	m.change(func() {
		m.ids++
		id = fmt.Sprint(m.ids)
		msg := chats.Message{
			Chat: chat, ID: id, Kind: chats.KindText, User: by, UserName: by, Text: text,
			Direct: strings.HasPrefix(chat.ID, "dm-"), Opener: m.openers[string(in)],
			InThread: chat.Thread != "", MentionsBot: chat.Thread != "",
		}
		change(&msg)
		m.updates = append(m.updates, msg)
		if m.twice[chat.ID] {
			m.updates = append(m.updates, msg)
			delete(m.twice, chat.ID)
		}
	})
	return id
}

func (m *memory) Inject(in Place, fault Fault) {
	chat, err := chats.ParseChat(string(in))
	if err != nil {
		m.t.Fatal(err)
	}
	m.change(func() {
		if fault.Effect == DuplicateDelivery {
			m.twice[chat.ID] = true
			return
		}
		if fault.Effect == Outage {
			m.outage = 3
		}
		if fault.Edit {
			m.edits[chat.ID] = fault
			return
		}
		m.faults[chat.ID] = fault
	})
}

func (m *memory) Await(ctx context.Context, enough func(View) bool) error {
	for {
		m.mu.Lock()
		v, changed := m.view, m.changed
		v.Messages, v.Working, v.Toasts, v.Acknowledged = slices.Clone(v.Messages), slices.Clone(v.Working), slices.Clone(v.Toasts), slices.Clone(v.Acknowledged)
		m.mu.Unlock()
		if enough(v) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take returns what is to be delivered next and how to learn of more.
func (m *memory) take() (next []chats.Message, changed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.updates), m.changed
}

func (m *memory) fault(chat string) Fault {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.faults[chat]
	delete(m.faults, chat)
	return f
}

// back reports whether it answers who asks.
func (m *memory) back() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.outage--
	return m.outage < 0
}

// show puts up a message.
func (m *memory) show(to chats.Address, text string, buttons [][]chats.Button) (id string) {
	m.change(func() {
		m.ids++
		id = fmt.Sprint(m.ids)
		place := Place(to.Chat.String())
		m.view.Messages = append(m.view.Messages, Shown{Place: place, Text: text, Length: len([]rune(text)), ReplyTo: to.ReplyTo, ID: id, Buttons: buttons})
	})
	return id
}

func (m *memory) SayAlbum(in Place, by, text string, files ...string) {
	for range files {
		m.send(in, by, text, func(msg *chats.Message) { msg.Group = fmt.Sprint("album ", files) })
		text = ""
	}
}

func (m *memory) SayLong(in Place, by, text string) {
	parts := cut(text)
	for i, part := range parts {
		m.send(in, by, strings.TrimSpace(part.Text), func(msg *chats.Message) {
			if i < len(parts)-1 {
				msg.Cut = chats.CutBetween
			}
		})
	}
}

func (m *memory) Amend(in Place, by, message, text string) {
	m.send(in, by, text, func(msg *chats.Message) { msg.ID, msg.Kind = message, chats.KindEdit })
}

var (
	_ Service = (*memory)(nil)
	_ Burster = (*memory)(nil)
	_ Speaker = (*memory)(nil)

	_ Photographer = (*memory)(nil)
	_ Reactor      = (*memory)(nil)
	_ Quoter       = (*memory)(nil)
)
