package telegram

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/platformtest"
	emulator "oneclaw/internal/emulator/telegram"
	"oneclaw/internal/markdown"
)

// The other tests of this package speak HTTP/1.1 without TLS, so the suite does not.
func TestOverTLS(t *testing.T) {
	for _, protocol := range []string{"h2", "http/1.1"} {
		t.Run(strings.ReplaceAll(protocol, "/", " "), func(t *testing.T) {
			if protocol != "h2" {
				platformtest.OnlyNightly(t)
			}
			platformtest.Run(t, func(t *testing.T) platformtest.Harness { return newHarness(t, protocol) })
		})
	}
}

// harness is the emulator as the suite of all platforms sees it. Places are chats in
// words; threads are topics of one forum.
type harness struct {
	*emulated
	t      *testing.T
	people []int64
	admin  int64
	forum  int64
}

// newHarness makes a service that speaks a protocol over TLS.
func newHarness(t *testing.T, protocol string) platformtest.Harness {
	return harnessOver(t, newSecureEmulated(t, protocol))
}

func harnessOver(t *testing.T, s *emulated) platformtest.Harness {
	w := &harness{emulated: s, t: t, people: []int64{s.ann}}
	for _, name := range []string{"Chief", "Eve"} {
		id := s.AddUser(emulator.User{FirstName: name}).ID
		s.chat(t, emulator.ChatSpec{Kind: emulator.Private, User: id})
		w.people = append(w.people, id)
	}
	w.admin = w.people[1]
	w.forum = s.chat(t, w.group(true))
	id := func(i int) string { return strconv.FormatInt(w.people[i], 10) }
	return platformtest.Harness{Service: w, Member: id(0), Admin: id(1), Stranger: id(2), Limit: maxText}
}

func (w *harness) group(forum bool) emulator.ChatSpec {
	return emulator.ChatSpec{Kind: emulator.Supergroup, Title: "Group", Forum: forum, Members: w.people, Admins: []int64{w.admin}, BotAdmin: true}
}

func (w *harness) number(s string) int64 {
	w.t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// at reads a place: its chat and, where it is one, its topic.
func (w *harness) at(place platformtest.Place) (chat, topic int64) {
	w.t.Helper()
	c, err := chats.ParseChat(string(place))
	if err != nil {
		w.t.Fatal(err)
	}
	if c.Thread != "" {
		topic = w.number(c.Thread)
	}
	return w.number(c.ID), topic
}

func place(chat, topic int64) platformtest.Place {
	return platformtest.Place(to(chat, topic, 0).Chat.String())
}

func (w *harness) Adapter() chats.Platform { return w.platform(w.t, w.Token()) }

func (w *harness) Open(kind platformtest.Kind, by string) platformtest.Place {
	w.t.Helper()
	switch kind {
	case platformtest.Direct:
		return place(w.number(by), 0)
	case platformtest.Shared:
		return place(w.chat(w.t, w.group(false)), 0)
	}
	topic, err := w.AddTopic(w.forum, "Topic")
	if err != nil {
		w.t.Fatal(err)
	}
	return place(w.forum, topic)
}

func (w *harness) Say(in platformtest.Place, by, text string) string {
	w.t.Helper()
	return w.tell(in, by, text, emulator.SayOptions{})
}

// Speak implements [platformtest.Speaker].
func (w *harness) Speak(in platformtest.Place, by string, sound []byte) {
	w.t.Helper()
	w.tell(in, by, "", emulator.SayOptions{Attachment: &emulator.Attachment{Kind: emulator.KindVoice, MIME: "audio/ogg", Data: sound, Seconds: 3}})
}

// React implements [platformtest.Reactor]. In groups the bot hears of it as an administrator.
func (w *harness) React(in platformtest.Place, by, message string, good, back bool) {
	w.t.Helper()
	chat, _ := w.at(in)
	if chat < 0 {
		if _, err := w.SetBotStatus(chat, w.number(by), emulator.Administrator); err != nil {
			w.t.Fatal(err)
		}
	}
	emoji := "👎"
	switch {
	case back:
		emoji = ""
	case good:
		emoji = "👍"
	}
	if _, err := w.Server.React(chat, w.number(message), w.number(by), emoji); err != nil {
		w.t.Fatal(err)
	}
}

// Photograph implements [platformtest.Photographer].
func (w *harness) Photograph(in platformtest.Place, by, text string, picture []byte) {
	w.t.Helper()
	w.tell(in, by, text, emulator.SayOptions{Attachment: &emulator.Attachment{Kind: emulator.KindPhoto, Name: "photo.png", Data: picture}})
}

// Quote implements [platformtest.Quoter]. In a direct chat it is a message of another chat
// that is answered.
func (w *harness) Quote(in platformtest.Place, by, text string, at platformtest.Original) {
	w.t.Helper()
	chat, topic := w.at(in)
	var opts emulator.SayOptions
	var file *emulator.Attachment
	if at.File != "" {
		file = &emulator.Attachment{Name: at.File, MIME: "text/plain", Data: []byte(at.Text)}
	}
	switch {
	case at.Own != "":
		opts.ReplyTo = w.number(at.Own)
	case text == "":
		opts.Forward = &emulator.Origin{Kind: emulator.OriginHidden, User: w.number(at.Author)}
		text = at.Text
	case chat > 0:
		opts.Quote = at.Text
		opts.External = &emulator.ExternalMessage{Origin: emulator.Origin{Kind: emulator.OriginUser, User: w.number(at.Author)}, Title: "Elsewhere", Attachment: file}
	default:
		sent, err := w.Server.Say(chat, w.number(at.Author), at.Text, &emulator.SayOptions{Thread: topic, Attachment: file})
		if err != nil {
			w.t.Fatal(err)
		}
		opts.ReplyTo = sent.Message
	}
	w.tell(in, by, text, opts)
}

func (w *harness) Ambient(in platformtest.Place, by, text string) {
	w.t.Helper()
	chat, topic := w.at(in)
	if _, err := w.Server.Say(chat, w.number(by), text, &emulator.SayOptions{Thread: topic}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *harness) tell(in platformtest.Place, by, text string, opts emulator.SayOptions) string {
	w.t.Helper()
	chat, topic := w.at(in)
	switch command := strings.HasPrefix(text, "/"); {
	case chat > 0:
	case command:
		name, rest, _ := strings.Cut(text, " ")
		text = strings.TrimSpace(name + "@" + w.Bot().Username + " " + rest)
	default:
		text = "@" + w.Bot().Username + " " + text
	}
	opts.Thread = topic
	sent, err := w.Server.Say(chat, w.number(by), text, &opts)
	if err != nil {
		w.t.Fatal(err)
	}
	return strconv.FormatInt(sent.Message, 10)
}

func (w *harness) SayAlbum(in platformtest.Place, by, text string, files ...string) {
	w.t.Helper()
	chat, topic := w.at(in)
	if chat < 0 {
		text = "@" + w.Bot().Username + " " + text
	}
	var items []emulator.Attachment
	for _, name := range files {
		items = append(items, emulator.Attachment{Name: name + ".txt", Data: []byte(name)})
	}
	if _, err := w.Server.SayAlbum(chat, w.number(by), text, items...); err != nil || topic != 0 {
		w.t.Fatal("no album: ", err)
	}
}

func (w *harness) SayLong(in platformtest.Place, by, text string) {
	w.t.Helper()
	chat, topic := w.at(in)
	if _, err := w.Server.SayLong(chat, w.number(by), text, &emulator.SayOptions{Thread: topic}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *harness) Amend(in platformtest.Place, _, message, text string) {
	w.t.Helper()
	chat, _ := w.at(in)
	if _, err := w.Edit(chat, w.number(message), text); err != nil {
		w.t.Fatal(err)
	}
}

func (w *harness) Press(in platformtest.Place, by, message, data string) {
	w.t.Helper()
	chat, _ := w.at(in)
	if _, err := w.Server.Press(chat, w.number(message), w.number(by), data, true); err != nil {
		w.t.Fatal(err)
	}
}

// Remove implements [platformtest.Remover].
func (w *harness) Remove(in platformtest.Place, message string) {
	w.t.Helper()
	chat, _ := w.at(in)
	if err := w.DeleteBotMessage(chat, w.number(message)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *harness) Inject(in platformtest.Place, fault platformtest.Fault) {
	w.t.Helper()
	chat, _ := w.at(in)
	f := emulator.Fault{Method: "sendMessage", Chat: chat, Times: 1, RetryAfter: int(fault.RetryAfter.Seconds())}
	if fault.Edit {
		f.Method = "editMessageText"
	}
	switch fault.Effect {
	case platformtest.Slow:
		f.Effect, f.Delay = emulator.Slow, fault.RetryAfter
	case platformtest.Refused:
		f.Effect, f.Status = emulator.ServerError, http.StatusRequestEntityTooLarge
	case platformtest.AnswerDropped:
		f.Effect = emulator.CutAfter
	case platformtest.RateLimited:
		f.Effect = emulator.TooManyRequests
	case platformtest.ServerError:
		f.Effect = emulator.ServerError
	case platformtest.Outage:
		f.Effect = emulator.CutBefore
		w.inject(w.t, emulator.Fault{Method: "getMe", Times: 3, Effect: emulator.CutBefore})
	case platformtest.DuplicateDelivery:
		f = emulator.Fault{Method: "getUpdates", Times: 1, Effect: emulator.Duplicate}
	}
	w.inject(w.t, f)
}

func (w *harness) Await(ctx context.Context, enough func(platformtest.View) bool) error {
	return w.WaitFor(ctx, func(st emulator.State) bool { return enough(view(st)) })
}

func view(st emulator.State) platformtest.View {
	v := platformtest.View{Sends: st.CallCount("sendmessage")}
	for _, chat := range st.Chats() {
		working := map[platformtest.Place]emulator.Action{}
		for _, a := range st.Actions(chat) {
			working[place(chat, a.Thread)] = a
		}
		for _, m := range st.Ephemeral(chat) {
			v.Toasts = append(v.Toasts, platformtest.Toast{To: strconv.FormatInt(m.Receiver, 10), Text: m.Text})
		}
		for _, m := range st.Messages(chat) {
			if slices.Contains(m.Reactions, "👀") {
				v.Acknowledged = append(v.Acknowledged, strconv.FormatInt(m.ID, 10))
			}
		}
		for _, m := range st.Answers(chat) {
			shown := platformtest.Shown{
				Place: place(chat, m.Thread), Text: m.Text, Length: markdown.UTF16Len(m.Text), ID: strconv.FormatInt(m.ID, 10),
			}
			for _, row := range m.Buttons {
				var list []chats.Button
				for _, b := range row {
					list = append(list, chats.Button{Label: b.Text, Data: b.CallbackData, Style: chats.ButtonStyle(b.Style), URL: b.URL})
				}
				shown.Buttons = append(shown.Buttons, list)
			}
			if m.ReplyTo != 0 {
				shown.ReplyTo = fmt.Sprint(m.ReplyTo)
			}
			v.Messages = append(v.Messages, shown)
			// A message of the bot takes the sign down.
			if a, shows := working[shown.Place]; shows && !a.At.After(m.Date) {
				delete(working, shown.Place)
			}
		}
		for p := range working {
			v.Working = append(v.Working, p)
		}
	}
	for _, c := range st.Callbacks() {
		if c.Text != "" {
			v.Toasts = append(v.Toasts, platformtest.Toast{To: strconv.FormatInt(c.User, 10), Text: c.Text})
		}
	}
	return v
}
