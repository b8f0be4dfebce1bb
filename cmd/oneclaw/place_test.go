package main

import (
	"bytes"
	"image"
	"image/png"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
)

// saying is a message of a person.
type saying struct {
	// who is the number of the person. Aside, it is said to the others and not to the bot.
	who   int
	aside bool
	text  string
	files []string
	// picture and voice make it one, voice of the text.
	picture, voice bool
	// of is what Bob has written: with a text it is answered, without one it is passed on. The
	// part of it that is meant is part.
	of   *saying
	part string
	// reply says that it answers what was said before it.
	reply bool
}

// shown is a message of the bot as people see it.
type shown struct {
	id, text string
	// only is the one person who sees it, if there is just one.
	only string
	// buttons are the data of the buttons by label.
	buttons map[string]string
	// file is what came with it, by its name.
	file struct {
		name string
		data []byte
	}
}

// The kinds of places. In a group the bot is an administrator, in a team it is not.
const (
	inPrivate = iota
	inTeam
	inGroup
	inThread
)

// place is a chat with the bot on either platform, direct with the first person or shared by all.
type place interface {
	// speak has a person say something.
	speak(s saying)
	// when says when the pieces of a message are said, where the platform has such.
	when(pieces []saying) map[moment][]saying
	// until returns what the bot has written, once it is as it should be.
	until(what string, cond func([]shown) bool) []shown
	// react has a person react to a message with 👍 or 👎.
	react(who int, on shown, good bool)
	// seen waits until so many messages of people bear 👀.
	seen(n int)
	// session waits until the platform shows this of the conversation, where it shows anything.
	session(status string)
	// press has a person press a button; the returned function waits for the toast.
	// Forged, nothing with this data has to be there.
	press(who int, on shown, data string, forged bool) (toast func() string)
}

// tiny is a picture.
func tiny() []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, 30, 20))) // into memory
	return b.Bytes()
}

// telegramPlace is a place on Telegram.
type telegramPlace struct {
	w                 *harness
	people            []int64
	chat, topic, last int64
}

func (w *harness) onTelegram(kind int, names ...string) *telegramPlace {
	w.t.Helper()
	p := &telegramPlace{w: w}
	for _, name := range names {
		p.people = append(p.people, w.person(name))
	}
	if p.chat = p.people[0]; kind == inPrivate {
		return p
	}
	var err error
	if p.chat, err = w.telegram.AddChat(telegram.ChatSpec{Kind: telegram.Supergroup, Title: "Team", User: p.people[0], Members: p.people[1:], BotAdmin: kind != inTeam, Forum: kind == inThread}); err != nil {
		w.t.Fatal(err)
	}
	if kind == inThread {
		if p.topic, err = w.telegram.AddTopic(p.chat, "Topic"); err != nil {
			w.t.Fatal(err)
		}
	}
	return p
}

// when has each piece be a message of its own: the items of an album are.
func (*telegramPlace) when(pieces []saying) map[moment][]saying {
	return map[moment][]saying{cut: pieces[:1], down: pieces[1:]}
}

func (p *telegramPlace) speak(s saying) {
	p.w.t.Helper()
	opts := telegram.SayOptions{Thread: p.topic}
	for _, name := range s.files {
		opts.Attachment = &telegram.Attachment{Name: name, MIME: "text/plain", Data: []byte(name)}
		if s.of == nil {
			opts.Album = strconv.FormatInt(p.people[0], 10)
		}
	}
	text, called := s.text, "@"+p.w.telegram.Bot().Username
	switch {
	case s.picture:
		opts.Attachment = &telegram.Attachment{Kind: telegram.KindPhoto, Data: tiny()}
	case s.voice:
		opts.Attachment, text = &telegram.Attachment{Kind: telegram.KindVoice, MIME: "audio/ogg", Data: openai.Speech(text), Seconds: 2}, ""
	case s.of != nil && text == "":
		opts.Forward, text = &telegram.Origin{Kind: telegram.OriginHidden, User: p.people[1]}, s.of.text
	case s.of != nil:
		p.speak(saying{who: 1, aside: true, text: s.of.text, files: s.of.files})
		opts.ReplyTo, opts.Quote = p.last, s.part
	case s.reply:
		opts.ReplyTo = p.last
	}
	switch command, rest, _ := strings.Cut(text, " "); {
	case s.aside || p.chat == p.people[0]:
	case strings.HasPrefix(text, "/"):
		text = command + called + " " + rest
	default:
		text = called + " " + text
	}
	sent, err := p.w.telegram.Say(p.chat, p.people[s.who], text, &opts)
	if err != nil {
		p.w.t.Fatal(err)
	}
	p.last = sent.Message
}

func (p *telegramPlace) until(what string, cond func([]shown) bool) (all []shown) {
	p.w.t.Helper()
	p.w.until(nil, what, func(s telegram.State) bool {
		all = nil
		for _, m := range s.Answers(p.chat) {
			one := shown{id: strconv.FormatInt(m.ID, 10), text: m.Text, buttons: map[string]string{}}
			for _, b := range slices.Concat(m.Buttons...) {
				one.buttons[b.Text] = b.CallbackData
			}
			if m.File != nil {
				one.file.name, one.file.data = m.File.Name, m.File.Data
			}
			all = append(all, one)
		}
		return cond(all)
	})
	return all
}

// number is the id of a message.
func (p *telegramPlace) number(m shown) int64 {
	p.w.t.Helper()
	id, err := strconv.ParseInt(m.id, 10, 64)
	if err != nil {
		p.w.t.Fatal(err)
	}
	return id
}

func (p *telegramPlace) react(who int, on shown, good bool) {
	p.w.t.Helper()
	if _, err := p.w.telegram.React(p.chat, p.number(on), p.people[who], map[bool]string{true: "👍", false: "👎"}[good]); err != nil {
		p.w.t.Fatal(err)
	}
}

func (p *telegramPlace) seen(n int) {
	p.w.t.Helper()
	p.w.until(nil, "signs", func(s telegram.State) bool {
		signs := 0
		for _, m := range s.Messages(p.chat) {
			signs += len(m.Reactions)
		}
		return signs == n
	})
}

func (*telegramPlace) session(string) {}

func (p *telegramPlace) press(who int, on shown, data string, forged bool) func() string {
	p.w.t.Helper()
	sent, err := p.w.telegram.Press(p.chat, p.number(on), p.people[who], data, forged)
	if err != nil {
		p.w.t.Fatal(err)
	}
	return func() (text string) {
		p.w.until(nil, "answer to the press", func(s telegram.State) bool {
			c, _ := s.Callback(sent.Callback)
			text = c.Text
			return c.Answered
		})
		return text
	}
}

// slackPlace is a place on Slack.
type slackPlace struct {
	t          *testing.T
	server     *slack.Server
	people     []string
	chat, root string
	kind       int
	// threads has the first message open the thread of all others, also in a direct chat, and commands be
	// messages: that is how people use an app with the agent view.
	threads bool
}

func onSlack(t *testing.T, server *slack.Server, kind int) *slackPlace {
	t.Helper()
	ann, bob := server.AddUser(slack.User{RealName: "Ann", Admin: true}).ID, server.AddUser(slack.User{RealName: "Bob"}).ID
	p := &slackPlace{t: t, server: server, people: []string{ann, bob}, kind: kind}
	spec := slack.ChannelSpec{Members: p.people}
	if kind == inPrivate {
		spec = slack.ChannelSpec{Kind: slack.DM, Members: p.people[:1]}
	}
	if p.chat = p.channel(spec); kind == inThread {
		p.root = p.post(p.chat, bob, "something for everybody", slack.SayOptions{})
	}
	return p
}

// when has the pieces said at once: Slack has neither albums nor so low a limit for texts.
func (*slackPlace) when(pieces []saying) map[moment][]saying {
	whole := saying{}
	for _, p := range pieces {
		whole.text = strings.TrimSpace(whole.text + "\n" + p.text)
		whole.files = append(whole.files, p.files...)
	}
	return map[moment][]saying{cut: {whole}}
}

func (p *slackPlace) channel(spec slack.ChannelSpec) string {
	p.t.Helper()
	id, err := p.server.AddChannel(spec)
	if err != nil {
		p.t.Fatal(err)
	}
	return id
}

func (p *slackPlace) post(channel, who, text string, opts slack.SayOptions) string {
	p.t.Helper()
	sent, err := p.server.Say(channel, who, text, &opts)
	if err != nil {
		p.t.Fatal(err)
	}
	return sent.TS
}

func (p *slackPlace) speak(s saying) {
	p.t.Helper()
	opts, text := slack.SayOptions{Thread: p.root, Files: texts(s.files)}, s.text
	command, isCommand := strings.CutPrefix(text, "/")
	switch {
	case isCommand && !p.threads:
		if _, err := p.server.Command(p.chat, p.people[s.who], "/oneclaw", command); err != nil {
			p.t.Fatal(err)
		}
		return
	case s.picture:
		opts.Files = []slack.Attachment{{Name: "photo.png", MIME: "image/png", Data: tiny()}}
	case s.voice:
		opts.Files, text = []slack.Attachment{{Name: "audio_message.webm", MIME: "audio/webm", Data: openai.Speech(text), ClipSeconds: 2}}, ""
	case s.of != nil:
		// What is passed on was said where the bot is not, and commands begin otherwise there.
		elsewhere := p.channel(slack.ChannelSpec{Members: p.people, WithoutBot: true})
		command, isCommand := strings.CutPrefix(s.of.text, "/")
		if isCommand {
			command = "!" + command
		}
		opts.Share = &slack.Share{Channel: elsewhere, TS: p.post(elsewhere, p.people[1], command, slack.SayOptions{Files: texts(s.of.files)})}
	}
	if !s.aside && p.kind != inPrivate {
		text = "<@" + p.server.BotUser() + "> " + text
	}
	if sent := p.post(p.chat, p.people[s.who], text, opts); p.threads && p.root == "" {
		p.root = sent
	}
}

// texts are text files.
func texts(names []string) (files []slack.Attachment) {
	for _, name := range names {
		files = append(files, slack.Attachment{Name: name, MIME: "text/plain", Data: []byte(name)})
	}
	return files
}

func (p *slackPlace) until(what string, cond func([]shown) bool) (all []shown) {
	p.t.Helper()
	waitSlack(p.t, p.server, what, func(s slack.State) bool {
		all = nil
		for _, m := range s.Answers(p.chat) {
			one := shown{id: m.TS, text: m.Shown, only: m.Ephemeral, buttons: map[string]string{}}
			for _, b := range slices.Concat(m.Buttons...) {
				one.buttons[b.Label] = b.Value
			}
			for _, f := range m.Files {
				one.file.name, one.file.data = f.Name, f.Data
			}
			all = append(all, one)
		}
		return cond(all)
	})
	return all
}

func (p *slackPlace) react(who int, on shown, good bool) {
	p.t.Helper()
	if _, err := p.server.React(p.chat, on.id, p.people[who], map[bool]string{true: "+1", false: "-1"}[good], false); err != nil {
		p.t.Fatal(err)
	}
}

func (p *slackPlace) seen(n int) {
	p.t.Helper()
	waitSlack(p.t, p.server, "signs", func(s slack.State) bool {
		signs := 0
		for _, m := range s.Messages(p.chat) {
			signs += len(m.Reactions)
		}
		return signs == n
	})
}

func (p *slackPlace) session(status string) {
	p.t.Helper()
	waitSlack(p.t, p.server, "session that is "+status, func(s slack.State) bool { return s.Session(p.chat, p.root) == status })
}

func (p *slackPlace) press(who int, on shown, data string, forged bool) func() string {
	p.t.Helper()
	told := func(s slack.State) (texts []string) {
		for _, m := range s.Messages(p.chat) {
			if m.Ephemeral == p.people[who] {
				texts = append(texts, m.Shown)
			}
		}
		return texts
	}
	before := 0
	p.server.View(func(s slack.State) { before = len(told(s)) })
	if _, err := p.server.Press(p.chat, on.id, p.people[who], data, forged); err != nil {
		p.t.Fatal(err)
	}
	return func() (text string) {
		waitSlack(p.t, p.server, "answer to the press", func(s slack.State) bool {
			all := told(s)
			if len(all) > before {
				text = all[before]
			}
			return len(all) > before
		})
		return text
	}
}
