package slack

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/platformtest"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/wire"
	"oneclaw/internal/redact"
	"oneclaw/slack/manifest"
)

// The app is the one of the manifest: it has no scope and gets no event but those.
func TestTheAppOfTheManifestOverHTTP2(t *testing.T) {
	platformtest.Run(t, func(t *testing.T) platformtest.Harness { return newHarness(t, "h2", manifest.YAML()) })
}

// The other tests of this package speak HTTP/1.1 without TLS, so the suite does not.
func TestOverTLSWithHTTP1(t *testing.T) {
	platformtest.OnlyNightly(t)
	platformtest.Run(t, func(t *testing.T) platformtest.Harness { return newHarness(t, "http/1.1", nil) })
}

// harness is the emulator as the suite of all platforms sees it. Places are chats in
// words. A shared chat is a channel in which the first message opens a thread for all
// that follow; threads begin in one channel, under what somebody says to others.
type harness struct {
	*fixture
	people []string
	direct map[string]string // the DM of each person
	forum  string
	root   []byte // to trust
	agent  bool   // direct chats are threads

	mu    sync.Mutex        // guards roots and never is held in a call of the emulator
	roots map[string]string // the thread of each shared channel, empty before it is opened
}

// newHarness makes a service that speaks a protocol over TLS, with the app of a manifest, or
// with one that has no agent view.
func newHarness(t *testing.T, protocol string, app []byte) platformtest.Harness {
	return harnessOver(t, quick(), protocol, app)
}

func harnessOver(t *testing.T, cfg emulator.Config, protocol string, app []byte) platformtest.Harness {
	cfg.AckTimeout = time.Second
	w := &harness{agent: app != nil, direct: map[string]string{}, roots: map[string]string{}}
	var err error
	if cfg.TLS, w.root, err = wire.NewCertificate(); err != nil {
		t.Fatal(err)
	}
	cfg.TLS.NextProtos = slices.Compact([]string{protocol, "http/1.1"}) // sockets begin with the latter
	w.fixture = setup(t, cfg, nil)
	if w.agent {
		if err := w.Install(app); err != nil {
			t.Fatal(err)
		}
	}
	w.speaks(protocol)
	w.people, w.direct[w.user] = []string{w.user}, w.dm
	for _, u := range []emulator.User{{ID: "U2", Name: "chief", Admin: true}, {ID: "U3", Name: "eve"}} {
		w.AddUser(u)
		w.people = append(w.people, u.ID)
		w.direct[u.ID] = w.make(emulator.ChannelSpec{Kind: emulator.DM, Members: []string{u.ID}})
	}
	w.forum = w.make(emulator.ChannelSpec{Members: w.people})
	return platformtest.Harness{Service: w, Member: w.people[0], Admin: w.people[1], Stranger: w.people[2], Limit: 4000, PressesOnce: true}
}

// speaks checks that the service and a client of the adapter agree on a protocol.
func (w *harness) speaks(protocol string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url+"auth.test", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := w.client().Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || (resp.ProtoMajor == 2) != (protocol == "h2") {
		w.t.Fatalf("the service speaks %s: %v", resp.Proto, err)
	}
}

func (w *harness) client() *http.Client {
	transport := wire.TransportTrusting(w.root)
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// at reads a place: its channel and, where it is one, its thread.
func (w *harness) at(place platformtest.Place) chats.Chat {
	w.t.Helper()
	c, err := chats.ParseChat(string(place))
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func place(channel, thread string) platformtest.Place {
	return platformtest.Place(chatOf(channel, thread).String())
}

func (w *harness) Adapter() chats.Platform {
	w.t.Helper()
	// What is pressed before Slack has noticed that the one before is gone is lost.
	w.wait(func(s emulator.State) bool { return s.ActiveSockets() == 0 })
	p, err := newPlatform(config{Settings: Settings{BotToken: redact.Secret(w.BotToken()), AppToken: redact.Secret(w.AppToken()), APIURL: w.url}, httpClient: w.client()})
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *harness) Open(kind platformtest.Kind, by string) platformtest.Place {
	w.t.Helper()
	switch kind {
	case platformtest.Direct:
		if w.agent {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.roots[w.direct[by]] += "" // the first message opens the thread of the chat
		}
		return place(w.direct[by], "")
	case platformtest.Shared:
		channel := w.make(emulator.ChannelSpec{Members: w.people})
		w.mu.Lock()
		defer w.mu.Unlock()
		w.roots[channel] = ""
		return place(channel, "")
	}
	root, err := w.Server.Say(w.forum, by, "something for everybody", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return place(w.forum, root.TS)
}

func (w *harness) Say(in platformtest.Place, by, text string) string {
	w.t.Helper()
	return w.tell(in, by, text, emulator.SayOptions{})
}

// Quote implements [platformtest.Quoter].
func (w *harness) Quote(in platformtest.Place, by, text string, at platformtest.Original) {
	w.t.Helper()
	of := emulator.Share{Channel: w.at(in).ID, TS: at.Own}
	if at.Own == "" {
		of.Channel = w.make(emulator.ChannelSpec{Members: w.people, WithoutBot: true})
		var files []emulator.Attachment
		if at.File != "" {
			files = []emulator.Attachment{{Name: at.File, MIME: "text/plain", Data: []byte(at.Text)}}
		}
		command, isCommand := strings.CutPrefix(at.Text, "/")
		if isCommand {
			command = "!" + command
		}
		sent, err := w.Server.Say(of.Channel, at.Author, command, &emulator.SayOptions{Files: files})
		if err != nil {
			w.t.Fatal(err)
		}
		of.TS = sent.TS
	}
	w.tell(in, by, text, emulator.SayOptions{Share: &of})
}

func (w *harness) Ambient(in platformtest.Place, by, text string) {
	w.t.Helper()
	chat := w.at(in)
	if _, err := w.Server.Say(chat.ID, by, text, &emulator.SayOptions{Thread: chat.Thread}); err != nil {
		w.t.Fatal(err)
	}
}

// Speak implements [platformtest.Speaker].
func (w *harness) Speak(in platformtest.Place, by string, sound []byte) {
	w.t.Helper()
	w.tell(in, by, "", emulator.SayOptions{Files: []emulator.Attachment{{Name: "audio_message.m4a", MIME: "audio/mp4", Data: sound, ClipSeconds: 3}}})
}

// React implements [platformtest.Reactor].
func (w *harness) React(in platformtest.Place, by, message string, good, back bool) {
	w.t.Helper()
	name := "thumbsdown"
	if good {
		name = "+1::skin-tone-3"
	}
	if _, err := w.Server.React(w.at(in).ID, message, by, name, back); err != nil {
		w.t.Fatal(err)
	}
}

// Photograph implements [platformtest.Photographer].
func (w *harness) Photograph(in platformtest.Place, by, text string, picture []byte) {
	w.t.Helper()
	w.tell(in, by, text, emulator.SayOptions{Files: []emulator.Attachment{{Name: "photo.png", MIME: "image/png", Data: picture}}})
}

// SayAlbum has one message: so does Slack.
func (w *harness) SayAlbum(in platformtest.Place, by, text string, files ...string) {
	w.t.Helper()
	var with []emulator.Attachment
	for _, name := range files {
		with = append(with, emulator.Attachment{Name: name + ".txt", Data: []byte(name)})
	}
	w.tell(in, by, text, emulator.SayOptions{Files: with})
}

// SayLong has one message: Slack takes 40,000 characters.
func (w *harness) SayLong(in platformtest.Place, by, text string) {
	w.t.Helper()
	w.tell(in, by, text, emulator.SayOptions{})
}

func (w *harness) Amend(in platformtest.Place, _, message, text string) {
	w.t.Helper()
	if _, err := w.Edit(w.at(in).ID, message, text); err != nil {
		w.t.Fatal(err)
	}
}

func (w *harness) tell(in platformtest.Place, by, text string, opts emulator.SayOptions) string {
	w.t.Helper()
	chat := w.at(in)
	command, isCommand := strings.CutPrefix(text, "/")
	direct := w.direct[by] == chat.ID
	// Commands about a channel are said in no thread.
	if isCommand && (direct && !w.agent || strings.HasPrefix(command, "observe")) {
		sent, err := w.Command(chat.ID, by, "/oneclaw", command)
		if err != nil {
			w.t.Fatal(err)
		}
		return sent.TriggerID
	}
	w.mu.Lock()
	root, shared := w.roots[chat.ID]
	w.mu.Unlock()
	switch {
	case direct && isCommand:
		text = "!" + command
	case direct:
		// Where the bot takes part nobody has to mention it, except for commands.
	case chat.Thread != "" || shared && (root == "" || isCommand):
		text = "<@" + w.BotUser() + "> " + command
	}
	if shared {
		chat.Thread = root
	}
	opts.Thread = chat.Thread
	sent, err := w.Server.Say(chat.ID, by, text, &opts)
	if err != nil {
		w.t.Fatal(err)
	}
	if shared && root == "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.roots[chat.ID] = sent.TS
	}
	return sent.TS
}

// Press implements [platformtest.Presser].
func (w *harness) Press(in platformtest.Place, by, message, data string) {
	w.t.Helper()
	there := slices.ContainsFunc(slices.Concat(w.message(w.at(in).ID, message).Buttons...), func(b emulator.Button) bool { return b.Value == data })
	if _, err := w.Server.Press(w.at(in).ID, message, by, data, !there); err != nil {
		w.t.Fatal(err)
	}
}

// Stop implements [platformtest.Stopper].
func (w *harness) Stop(in platformtest.Place, by, message string) {
	w.t.Helper()
	channel := w.at(in).ID
	if _, err := w.StopSession(channel, w.message(channel, message).Thread, by); err != nil {
		w.t.Fatal(err)
	}
}

func buttonsOf(m emulator.Message) (rows [][]chats.Button) {
	for _, row := range m.Buttons {
		var shown []chats.Button
		for _, b := range row {
			shown = append(shown, chats.Button{Label: b.Label, Data: b.Value, Style: chats.ButtonStyle(b.Style), URL: b.URL})
		}
		rows = append(rows, shown)
	}
	return rows
}

// Remove implements [platformtest.Remover].
func (w *harness) Remove(in platformtest.Place, message string) {
	w.t.Helper()
	if err := w.DeleteBotMessage(w.at(in).ID, message); err != nil {
		w.t.Fatal(err)
	}
}

func (w *harness) Inject(in platformtest.Place, fault platformtest.Fault) {
	w.t.Helper()
	f := emulator.Fault{Method: "chat.postMessage", Chat: w.at(in).ID, Times: 1, RetryAfter: int(fault.RetryAfter.Seconds())}
	if fault.Edit {
		f.Method = "chat.update"
	}
	switch fault.Effect {
	case platformtest.Slow:
		f.Effect, f.Delay = emulator.Slow, fault.RetryAfter
	case platformtest.Refused:
		f.Effect, f.Status = emulator.Refuse, 0
		f.Error = "edit_window_closed"
	case platformtest.AnswerDropped:
		f.Effect = emulator.CutAfter
	case platformtest.RateLimited:
		f.Effect = emulator.TooManyRequests
	case platformtest.ServerError:
		f.Effect = emulator.ServerError
	case platformtest.Outage:
		f.Effect = emulator.CutBefore
		w.inject(emulator.Fault{Method: "auth.test", Times: 3, Effect: emulator.CutBefore})
	case platformtest.DuplicateDelivery:
		f.Method, f.Effect = "envelope", emulator.Duplicate
	}
	w.inject(f)
}

func (w *harness) Await(ctx context.Context, enough func(platformtest.View) bool) error {
	return w.WaitFor(ctx, func(st emulator.State) bool { return enough(w.view(st)) })
}

func (w *harness) view(st emulator.State) platformtest.View {
	v := platformtest.View{Sends: st.CallCount("chat.postMessage") + st.CallCount("chat.startStream")}
	for _, channel := range st.Channels() {
		for _, m := range st.Answers(channel) {
			if m.Ephemeral != "" {
				v.Toasts = append(v.Toasts, platformtest.Toast{To: m.Ephemeral, Text: unescape(m.Shown)})
				continue
			}
			v.Messages = append(v.Messages, platformtest.Shown{
				Place: w.placeOf(m), Text: unescape(m.Shown), Length: len(utf16.Encode([]rune(m.Shown))), ID: m.TS, Buttons: buttonsOf(m), Streams: m.IsStreaming,
			})
		}
		for _, m := range st.Messages(channel) {
			if slices.Contains(m.Reactions, eyesEmoji) {
				v.Acknowledged = append(v.Acknowledged, m.TS)
			}
			if _, stands := st.Status(channel, m.TS); (stands || st.Session(channel, m.TS) == "processing") && !slices.Contains(v.Working, place(channel, m.TS)) {
				v.Working = append(v.Working, place(channel, m.TS))
			}
		}
	}
	return v
}

// placeOf tells where a message of the bot stands.
func (w *harness) placeOf(m emulator.Message) platformtest.Place {
	w.mu.Lock()
	defer w.mu.Unlock()
	root, shared := w.roots[m.Channel]
	switch {
	case shared && m.Thread == root:
		return place(m.Channel, "")
	case shared && m.Thread == "":
		return place(m.Channel, "outside")
	}
	return place(m.Channel, m.Thread)
}
