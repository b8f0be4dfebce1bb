package demo

import (
	"cmp"
	"slices"
	"strconv"

	"oneclaw/bridge/chats"
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
)

// view is the content of the page.
type view struct {
	Bot     botState `json:"bot"`
	Offline bool     `json:"offline"`
	Model   string   `json:"model"`
	// Routing is the current routing. Routings are the possible ones.
	Routing  string   `json:"routing"`
	Routings []string `json:"routings"`
	// Commands is set if commands can run here.
	Commands bool `json:"commands"`
	Telegram pane `json:"telegram"`
	Slack    pane `json:"slack"`
}

type pane struct {
	Messages []message `json:"messages"`
	Busy     bool      `json:"busy"`
	// Surface is nil for Telegram.
	Surface *surface `json:"surface,omitempty"`
	// Usage is the usage by thread. Telegram has one, under the empty name.
	Usage map[string]chatUsage `json:"ledgers"`
}

// message is a message as the page shows it.
type message struct {
	ID     string `json:"id"`
	Thread string `json:"thread,omitempty"`
	// Place is the tab of the Slack pane; empty for the channel.
	Place    string            `json:"place,omitempty"`
	Bot      bool              `json:"bot"`
	Text     string            `json:"text"`
	Entities []telegram.Entity `json:"entities,omitempty"`
	Files    []sentFile        `json:"files,omitempty"`
	// Forwarded is the author of a forwarded message.
	Forwarded string `json:"forwarded,omitempty"`
	// Reply is the id of the message that it replies to.
	Reply string `json:"reply,omitempty"`
	// RequestTools is the number of tools in the model's request for it; 0 if there was none.
	RequestTools int `json:"given,omitempty"`
	// Reactions are those of the bot: emoji on Telegram, their names on Slack.
	Reactions []string `json:"reactions,omitempty"`
	// Tasks are the steps shown for it.
	Tasks []task `json:"tasks,omitempty"`
	// Buttons are in rows.
	Buttons [][]button `json:"buttons,omitempty"`
	Time    int64      `json:"time"`
}

// button is a button below a message; Data is sent when it is pressed.
type button struct {
	Label string `json:"label"`
	Data  string `json:"data"`
	Style string `json:"style,omitempty"`
}

const maxShown = 200

func (d *Demo) view() (view, <-chan struct{}) {
	d.mu.Lock()
	v := view{Bot: d.bot, Offline: d.offline != nil, Model: d.env.Config.Model.Name, Routing: d.routing, Routings: d.controls.Routings, Commands: d.controls.CanRunCommands}
	changed, tools := d.changed, map[string]int{}
	v.Telegram.Usage, v.Slack.Usage = map[string]chatUsage{}, map[string]chatUsage{}
	for name, l := range d.usage {
		chat, err := chats.ParseChat(name)
		if err != nil {
			continue
		}
		into := v.Telegram.Usage
		if chat.Platform == "slack" {
			into = v.Slack.Usage
		}
		shown := *l
		shown.Calls, shown.Groups = slices.Clone(l.Calls), slices.Clone(l.Groups)
		into[chat.Thread] = shown
	}
	for _, g := range d.requests {
		for _, ref := range g.refs {
			tools[ref] = g.Tools
		}
	}
	d.mu.Unlock()
	d.Telegram.View(func(s telegram.State) { v.Telegram.fillTelegram(s, d.TelegramUser) })
	d.Slack.View(func(s slack.State) {
		v.Slack.fillSlack(s, d.slackChannel)
		v.Slack.fillSurface(s, d.SlackDM, d.SlackUser)
	})
	v.Telegram.markRequests(d.chatOf("telegram", ""), tools)
	v.Slack.markRequests(d.chatOf("slack", ""), tools)
	v.Slack.markRequests(d.chatOf("slack", directTab), tools)
	return v, changed
}

func (p *pane) fillTelegram(s telegram.State, chat int64) {
	p.Messages = []message{}
	for _, m := range lastMessages(s.Messages(chat)) {
		if m.Deleted {
			continue
		}
		shown := message{ID: strconv.FormatInt(m.ID, 10), Bot: m.FromBot, Text: cmp.Or(m.Text, describe(m.Contents)), Forwarded: m.Forwarded, Entities: m.Entities, Reactions: m.Reactions, Time: m.Date.UnixMilli()}
		if m.File != nil {
			shown.Files = []sentFile{newSentFile(cmp.Or(m.File.Name, m.File.Kind), m.File.MIME, m.File.Data)}
		}
		if m.ReplyTo != 0 {
			shown.Reply = strconv.FormatInt(m.ReplyTo, 10)
		}
		shown.Buttons = convertButtons(m.Buttons, func(b telegram.Button) button { return button{b.Text, b.CallbackData, b.Style} })
		p.Messages = append(p.Messages, shown)
	}
	if actions := s.Actions(chat); len(actions) > 0 && len(p.Messages) > 0 {
		newest := p.Messages[len(p.Messages)-1]
		p.Busy = !newest.Bot && actions[len(actions)-1].At.UnixMilli() >= newest.Time
	}
}

func (p *pane) fillSlack(s slack.State, channel string) {
	p.Messages = []message{}
	for _, m := range lastMessages(s.Messages(channel)) {
		if m.Deleted {
			continue
		}
		shown := message{ID: m.TS, Thread: m.Thread, Bot: m.FromBot, Text: m.Shown, Reactions: m.Reactions, Time: m.Date.UnixMilli()}
		if m.Ephemeral != "" {
			shown.Text = "_Only you can see this._\n" + shown.Text
		}
		shown.Buttons = convertButtons(m.Buttons, func(b slack.Button) button { return button{b.Label, b.Value, b.Style} })
		for _, t := range m.Tasks {
			shown.Tasks = append(shown.Tasks, task{Title: t.Title, Done: t.Status == "complete"})
		}
		for _, f := range m.Files {
			shown.Files = append(shown.Files, newSentFile(f.Name, f.MIME, f.Data))
		}
		p.Messages = append(p.Messages, shown)
	}
	p.Busy = slices.ContainsFunc(s.Statuses(channel), func(st slack.Status) bool {
		now, set := s.Status(channel, st.Thread)
		return set && now.Text != ""
	})
}

// chatOf returns the chat of a pane, in the form used in the keys of messages.
func (d *Demo) chatOf(pane, tab string) string {
	if pane == "slack" {
		return "slack:" + d.channelOf(pageRequest{Place: tab})
	}
	return "telegram:" + strconv.FormatInt(d.TelegramUser, 10)
}

// markRequests sets the number of tools of the messages for which the model was called.
func (p *pane) markRequests(chat string, tools map[string]int) {
	for i := range p.Messages {
		m := &p.Messages[i]
		m.RequestTools = cmp.Or(m.RequestTools, tools[chat+"/"+m.ID+"/text"])
	}
}

// convertButtons converts a platform's rows of buttons.
func convertButtons[B any](from [][]B, one func(B) button) [][]button {
	out := make([][]button, len(from))
	for i, row := range from {
		for _, b := range row {
			out[i] = append(out[i], one(b))
		}
	}
	return out
}

func lastMessages[T any](all []T) []T { return all[max(0, len(all)-maxShown):] }
