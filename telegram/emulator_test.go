package telegram

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/telegram"
	"oneclaw/internal/emulator/wire"
	"oneclaw/internal/redact"
)

// emulated is a platform against the emulator over HTTP.
type emulated struct {
	*emulator.Server
	p   *platform
	url string
	ann int64 // a user and her private chat
	// root is what to trust, where the service speaks TLS.
	root []byte
}

// newSecureEmulated is a emulated with a service that speaks a protocol over TLS.
func newSecureEmulated(t *testing.T, protocol string) *emulated {
	t.Helper()
	config, root, err := wire.NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	config.NextProtos = []string{protocol}
	s := newEmulated(t, emulator.Config{TLS: config})
	s.root = root
	s.p = s.platform(t, s.Token())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: s.transport(t)}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || (resp.ProtoMajor == 2) != (protocol == "h2") {
		t.Fatalf("the service speaks %s: %v", resp.Proto, err)
	}
	return s
}

func (s *emulated) transport(t *testing.T) *http.Transport {
	transport := &http.Transport{}
	if s.root != nil {
		transport = wire.TransportTrusting(s.root)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

func newEmulated(t *testing.T, cfg ...emulator.Config) *emulated {
	t.Helper()
	conf := append(cfg, emulator.Config{})[0]
	conf.RequireLength = true
	s, err := emulator.New(conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	address, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	st := &emulated{Server: s, url: address, ann: s.AddUser(emulator.User{FirstName: "Ann"}).ID}
	st.p = st.platform(t, s.Token())
	st.chat(t, emulator.ChatSpec{Kind: emulator.Private, User: st.ann})
	return st
}

func (s *emulated) platform(t *testing.T, token string) *platform {
	t.Helper()
	p, err := newPlatform(config{
		Settings: Settings{Token: redact.Secret(token), APIURL: s.url}, httpClient: &http.Client{Transport: s.transport(t)},
		pollTimeout: time.Second, conflictWait: 10 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (s *emulated) chat(t *testing.T, spec emulator.ChatSpec) int64 {
	t.Helper()
	id, err := s.AddChat(spec)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (s *emulated) say(t *testing.T, chat int64, text string, opts *emulator.SayOptions) emulator.Sent {
	t.Helper()
	sent, err := s.Say(chat, s.ann, text, opts)
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

func (s *emulated) inject(t *testing.T, f emulator.Fault) {
	t.Helper()
	if _, err := s.Inject(f); err != nil {
		t.Fatal(err)
	}
}

func (s *emulated) until(t *testing.T, cond func(emulator.State) bool) {
	t.Helper()
	if err := s.WaitFor(t.Context(), cond); err != nil {
		t.Fatal(err)
	}
}

func (s *emulated) answers(chat int64) (list []emulator.Message) {
	s.View(func(st emulator.State) { list = st.Answers(chat) })
	return list
}

func to(chat, thread, reply int64) chats.Address {
	a := chats.Address{Chat: chatOf(chat)}
	if thread != 0 {
		a.Chat.Thread = strconv.FormatInt(thread, 10)
	}
	if reply != 0 {
		a.ReplyTo = strconv.FormatInt(reply, 10)
	}
	return a
}

func TestReceiveOverHTTP(t *testing.T) {
	s := newEmulated(t)
	in := newInbox()
	first := s.say(t, s.ann, "hello", nil)
	stop := run(t, s.p, in)
	defer stop()
	in.wait(t, atLeast(1))
	second := s.say(t, s.ann, "again", nil)
	got := in.wait(t, atLeast(2))
	if got[0].Text != "hello" || got[1].Text != "again" || got[0].ID != strconv.FormatInt(first.Message, 10) || !got[0].Direct {
		t.Errorf("accepted %+v", got)
	}
	s.until(t, func(st emulator.State) bool { return st.IsConfirmed(second.Update) })
	if _, err := s.Edit(s.ann, second.Message, "amended"); err != nil {
		t.Fatal(err)
	}
	got = in.wait(t, atLeast(3))
	if e := got[2]; e.Kind != chats.KindEdit || e.ID != got[1].ID || e.Text != "amended" {
		t.Errorf("the edit came as %+v", e)
	}
	if err := s.p.Health(); err != nil {
		t.Errorf("Health = %v", err)
	}
}

// listening is an inbox that wants what is not said to the bot.
type listening struct{ *inbox }

func (listening) WantsAmbient(chats.Chat) bool { return true }

// The text without the mention is the same before and after such an edit.
func TestAnEditThatAddsTheForgottenMentionIsForTheBotAlsoWhereItListens(t *testing.T) {
	s := newEmulated(t)
	in := newInbox()
	defer run(t, s.p, listening{in})()
	group := s.chat(t, emulator.ChatSpec{Kind: emulator.Group, Title: "G", User: s.ann, BotAdmin: true})
	said := s.say(t, group, "what is new?", nil)
	s.until(t, func(st emulator.State) bool { return st.IsConfirmed(said.Update) })
	edited, err := s.Edit(group, said.Message, "@"+s.Bot().Username+" what is new?")
	if err != nil {
		t.Fatal(err)
	}
	s.until(t, func(st emulator.State) bool { return st.IsConfirmed(edited.Update) })
	var kinds []chats.Kind
	for _, m := range in.wait(t, atLeast(1)) {
		kinds = append(kinds, m.Kind)
	}
	if want := []chats.Kind{chats.KindAmbient, chats.KindText, chats.KindEdit}; !slices.Equal(kinds, want) {
		t.Errorf("accepted %q, want %q", kinds, want)
	}
}

func TestDuplicatesKeepTheirIdentity(t *testing.T) {
	s := newEmulated(t)
	in := newInbox()
	s.inject(t, emulator.Fault{Method: "getUpdates", Times: 1, Effect: emulator.Duplicate})
	s.say(t, s.ann, "hello", nil)
	stop := run(t, s.p, in)
	defer stop()
	got := in.wait(t, atLeast(2))
	if a, b := got[0], got[1]; a.Chat != b.Chat || a.ID != b.ID || a.Kind != b.Kind {
		t.Errorf("the same update came as %+v and %+v", a, b)
	}
}

func TestOutagesOfPolling(t *testing.T) {
	for _, effect := range []emulator.Effect{emulator.CutBefore, emulator.CutAfter, emulator.BadJSON, emulator.ServerError, emulator.Conflict, emulator.TooManyRequests} {
		t.Run(string(effect), func(t *testing.T) {
			t.Parallel()
			s := newEmulated(t)
			in := newInbox()
			s.inject(t, emulator.Fault{Method: "getUpdates", Times: 1, Effect: effect, RetryAfter: 1})
			s.say(t, s.ann, "hello", nil)
			stop := run(t, s.p, in)
			defer stop()
			if got := in.wait(t, atLeast(1)); got[0].Text != "hello" {
				t.Errorf("accepted %+v", got)
			}
		})
	}
}

func TestTwoPollers(t *testing.T) {
	s := newEmulated(t)
	in := newInbox()
	stop := run(t, s.p, in)
	defer stop()
	stopOther := run(t, s.platform(t, s.Token()), in)
	for i := range 3 {
		s.say(t, s.ann, strconv.Itoa(i), nil)
		in.wait(t, func(in *inbox) bool {
			return slices.ContainsFunc(in.accepted, func(m chats.Message) bool { return m.Text == strconv.Itoa(i) })
		})
	}
	stopOther()
	s.say(t, s.ann, "alone", nil)
	in.wait(t, func(in *inbox) bool { return in.accepted[len(in.accepted)-1].Text == "alone" })
}

func TestWrongTokenOverHTTP(t *testing.T) {
	s := newEmulated(t)
	// This one has the client of its own, which must be closed when Run ends.
	p, err := newPlatform(config{Settings: Settings{Token: "999:NOT-the-token-of-this-bot", APIURL: s.url}})
	if err != nil {
		t.Fatal(err)
	}
	err = p.Run(t.Context(), newInbox())
	if err == nil || !strings.Contains(err.Error(), "TELEGRAM_BOT_TOKEN") || strings.Contains(err.Error(), "NOT-the") {
		t.Errorf("Run = %v", err)
	}
}

func TestMigration(t *testing.T) {
	s := newEmulated(t)
	group := s.chat(t, emulator.ChatSpec{Kind: emulator.Group, Title: "G", User: s.ann})
	in := newInbox()
	stop := run(t, s.p, in)
	defer stop()
	s.until(t, func(st emulator.State) bool { return st.IsPolling() })
	super, err := s.Migrate(group, s.ann)
	if err != nil {
		t.Fatal(err)
	}
	in.wait(t, func(in *inbox) bool { return len(in.moves) == 1 })
	if got := in.moves[0]; got != [2]chats.Chat{chatOf(group), chatOf(super)} {
		t.Errorf("moved %v", got)
	}
	_, err = s.p.Send(t.Context(), to(group, 0, 0), chats.Part{Text: "hi"})
	var got *chats.SendError
	if !errors.As(err, &got) || got.Outcome != chats.Later || got.MovedTo != chatOf(super).ID {
		t.Errorf("Send to the old chat = %v", err)
	}
}

// An anonymous administrator writes as the group, and presses as the account.
func TestAnAnonymousAdministratorWritesAsTheGroup(t *testing.T) {
	s := newEmulated(t)
	in := newInbox()
	defer run(t, s.p, in)()
	group := s.chat(t, emulator.ChatSpec{Kind: emulator.Supergroup, Title: "Team", User: s.ann})
	s.say(t, group, "@"+s.Bot().Username+" hello", &emulator.SayOptions{Anonymous: true})
	got := in.wait(t, atLeast(1))[0]
	if got.User != got.Chat.ID || got.UserName != "Team" || !s.p.IsChat(got.User) || s.p.IsChat(strconv.FormatInt(s.ann, 10)) {
		t.Errorf("wrote as %+v", got)
	}
	for user, want := range map[string]bool{got.User: true, strconv.FormatInt(s.ann, 10): true, "99": false} {
		if is, err := s.p.IsAdmin(t.Context(), got.Chat, user); is != want && err == nil {
			t.Errorf("%s administers the group: %t (%v)", user, is, err)
		}
	}
}
