package slack

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"oneclaw/internal/emulator/slack/delivery"
	"oneclaw/internal/emulator/slack/manifest"
)

// Sent identifies the result of a user's action.
type Sent struct {
	// Channel and TS identify the message.
	Channel string `json:"channel"`
	TS      string `json:"ts"`
	// Events are the ids of its events; none if the bot is not in the channel or lacks the scopes.
	Events []string `json:"events"`
	// Envelopes are the ids of the envelopes that contain the events.
	Envelopes []string `json:"envelopes"`
	// TriggerID is the trigger_id of a command or a button press.
	TriggerID string `json:"trigger,omitempty"`
}

// ChannelSpec describes a new channel.
type ChannelSpec struct {
	// ID is the channel's id. Empty means the next free one.
	ID string `json:"id"`
	// Kind is public, Private, DM or groupDM. Empty means public.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Topic and Purpose are the texts at the top of the channel.
	Topic   string `json:"topic"`
	Purpose string `json:"purpose"`
	// Members are the users in the channel. A DM has one.
	Members []string `json:"members"`
	// WithoutBot makes a channel that the bot is not in.
	WithoutBot bool `json:"without_bot"`
}

// Attachment is a file that a user sends.
type Attachment struct {
	// Name and MIME are from the user's app.
	Name string `json:"name"`
	MIME string `json:"mime"`
	// Data is the content of the file.
	Data []byte `json:"data"`
	// Size may exceed the length of Data.
	Size int `json:"size"`
	// External makes the attachment a link to an external file.
	External bool `json:"external"`
	// ClipSeconds makes the file an audio clip of this length, recorded in Slack.
	ClipSeconds int `json:"clip"`
	// NeedsLookup leaves all but the id out of events, as in channels shared with other workspaces:
	// files.info returns the other fields.
	NeedsLookup bool `json:"lookup"`
}

// SayOptions are the details of a user's message.
type SayOptions struct {
	// Thread is the ts of the first message of the thread.
	Thread string `json:"thread"`
	// Broadcast shows a reply in the channel too.
	Broadcast bool `json:"broadcast"`
	// Files are attached to the message.
	Files []Attachment `json:"files"`
	// Share forwards a message, with or without text.
	Share *Share `json:"share"`
	// Subtype makes the message one of another kind, such as channel_join.
	Subtype string `json:"subtype"`
	// Table are the rows of a table that the user pastes, as from a spreadsheet.
	Table [][]string `json:"table"`
	// Viewing is the id of the channel that the user looks at meanwhile. Apps with the agent view are told it in
	// direct messages.
	Viewing string `json:"viewing"`
	// Blocks and Attachments are those of a message of another app.
	Blocks      json.RawMessage   `json:"blocks"`
	Attachments []json.RawMessage `json:"attachments"`
}

// People acts for the users, whose actions send events to the app. Its methods take the lock.
type People struct {
	cfg      *Config // immutable
	mu       *sync.Mutex
	world    *world
	app      *App
	notifier *notifier
}

// AddUser adds a user. An empty ID gets the next free one.
func (p *People) AddUser(u User) User {
	p.mu.Lock()
	defer p.mu.Unlock()
	if u.ID == "" {
		u.ID = p.world.newID("U")
	}
	if u.Name == "" {
		u.Name = strings.ToLower(u.ID)
	}
	if u.RealName == "" {
		u.RealName = u.Name
	}
	p.world.users[u.ID] = &u
	return u
}

// AddChannel adds a channel and returns its id. The bot is a member, unless the spec says
// otherwise.
func (p *People) AddChannel(spec ChannelSpec) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch spec.Kind {
	case "":
		spec.Kind = public
	case public, Private, DM, groupDM:
	default:
		return "", fmt.Errorf("slack emulator: unknown kind of channel %q", spec.Kind)
	}
	if p.world.channels[spec.ID] != nil {
		return "", fmt.Errorf("slack emulator: channel %s exists", spec.ID)
	}
	if spec.Kind == DM && !spec.WithoutBot && len(spec.Members) != 1 {
		return "", errors.New("slack emulator: a DM with the bot has one other member")
	}
	for _, id := range spec.Members {
		if p.world.users[id] == nil {
			return "", fmt.Errorf("slack emulator: unknown member %s", id)
		}
	}
	return p.world.addChannel(spec).id, nil
}

// AddUserGroup adds a group of users, which texts mention by its id.
func (p *People) AddUserGroup(id, handle string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.world.userGroups = append(p.world.userGroups, userGroup{id, handle})
}

// Archive archives a channel.
func (p *People) Archive(channelID string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.world.channels[channelID]
	if c == nil {
		return fmt.Errorf("slack emulator: unknown channel %s", channelID)
	}
	c.archived = true
	return nil
}

// writableChannel returns a channel, or an error if the user may not write to it.
func (w *world) writableChannel(channelID, userID string) (*channel, error) {
	c := w.channels[channelID]
	switch {
	case c == nil:
		return nil, fmt.Errorf("slack emulator: unknown channel %s", channelID)
	case w.users[userID] == nil:
		return nil, fmt.Errorf("slack emulator: unknown user %s", userID)
	case !slices.Contains(c.members, userID):
		return nil, fmt.Errorf("slack emulator: user %s is not in channel %s", userID, channelID)
	case c.archived:
		return nil, fmt.Errorf("slack emulator: channel %s is archived", channelID)
	}
	return c, nil
}

// Say writes a message as a user. The text has the form in which the service stores it: mentions
// as <@U…>, and &amp; &lt; &gt; for & < >; see [Escape]. A mention of the bot in a
// channel makes two events with the same ts. A nil opts means a plain text.
func (p *People) Say(channelID, userID, text string, opts *SayOptions) (Sent, error) {
	if opts == nil {
		opts = &SayOptions{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c, err := p.world.writableChannel(channelID, userID)
	if err != nil {
		return Sent{}, err
	}
	m := &message{user: userID, text: text, subtype: opts.Subtype, broadcast: opts.Broadcast, viewing: opts.Viewing}
	if opts.Thread != "" {
		if m.parent = c.byTS[opts.Thread]; m.parent == nil || m.parent.parent != nil {
			return Sent{}, fmt.Errorf("slack emulator: no thread %s in channel %s", opts.Thread, channelID)
		}
	}
	if err := p.world.attachShared(m, opts); err != nil {
		return Sent{}, err
	}
	if err := m.attachTable(opts.Table); err != nil {
		return Sent{}, err
	}
	for _, a := range opts.Files {
		m.files = append(m.files, p.world.files.add(p.world.newID("F"), userID, a))
	}
	if len(m.files) > 0 && m.subtype == "" {
		m.subtype = "file_share"
	}
	if m.broadcast && m.subtype == "" {
		m.subtype = "thread_broadcast"
	}
	p.world.addMessage(c, m)
	return p.notifier.notify(c, m), nil
}

// Look opens a channel beside the user's chat with an app that has the agent view, whose event the app gets
// (docs.slack.dev/reference/events/app_context_changed).
func (p *People) Look(userID, channelID string) Sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.app.isSubscribed("app_context_changed") || !p.app.hasScope(manifest.AgentScope) {
		return Sent{}
	}
	dm := p.world.openDM(userID)
	return p.notifier.sendEvent(nil, "", map[string]any{
		"type": "app_context_changed", "user": userID, "channel": dm.id, "event_ts": p.world.nextTS(), "context": p.world.viewOf(channelID),
	}, Sent{Channel: dm.id})
}

// Invite adds the bot to a channel, as a member of it, whose event the app gets
// (docs.slack.dev/reference/events/member_joined_channel). An invitation of the bot where it is already
// sends the event again, as a repeated delivery does.
func (p *People) Invite(channelID, userID string) (Sent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.world.channels[channelID]
	if c == nil || c.kind == DM || !slices.Contains(c.members, userID) {
		return Sent{}, fmt.Errorf("slack emulator: %s cannot invite the bot to %q", userID, channelID)
	}
	c.hasBot = true
	if !p.app.isSubscribed("member_joined_channel") || !p.app.hasScope("channels:read") {
		return Sent{Channel: c.id}, nil
	}
	return p.notifier.sendEvent(c, "", map[string]any{
		"type": "member_joined_channel", "user": p.cfg.BotUser, "channel": c.id, "channel_type": "C", "team": p.cfg.Team, "inviter": userID, "event_ts": p.world.nextTS(),
	}, Sent{Channel: c.id}), nil
}

// viewOf describes what a user looks at.
func (w *world) viewOf(channelID string) map[string]any {
	if channelID == "" {
		return map[string]any{}
	}
	return map[string]any{"entities": []any{map[string]any{"type": "slack#/types/channel_id", "value": channelID, "team_id": w.cfg.Team}}}
}

// Escape converts typed text to the form that the service stores.
func Escape(typed string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(typed)
}

// SayAsBot writes a message as another integration. A nil opts means a plain text; of the others it may have
// a thread, blocks and attachments.
func (p *People) SayAsBot(channelID, botID, name, text string, opts *SayOptions) (Sent, error) {
	if opts == nil {
		opts = &SayOptions{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.world.channels[channelID]
	if c == nil {
		return Sent{}, fmt.Errorf("slack emulator: unknown channel %s", channelID)
	}
	m := &message{user: name, otherBotID: botID, text: text, parent: c.byTS[opts.Thread]}
	if err := m.setBlocks(opts.Blocks, opts.Attachments); err != nil {
		return Sent{}, err
	}
	p.world.addMessage(c, m)
	return p.notifier.notify(c, m), nil
}

// Edit edits a user's message.
func (p *People) Edit(channelID, ts, text string) (Sent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, m, err := p.world.userMessage(channelID, ts)
	if err != nil {
		return Sent{}, err
	}
	before := p.world.messageJSON(m)
	m.edits = append(m.edits, Edit{At: p.cfg.Now(), Text: m.text})
	m.text, m.edited = text, p.cfg.Now()
	p.world.emit(event{Kind: eventEdit, Chat: c.id, Message: m.ts}, c, m)
	return p.notifier.notifyEdit(c, m, before), nil
}

// Delete deletes a user's message.
func (p *People) Delete(channelID, ts string) (Sent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, m, err := p.world.userMessage(channelID, ts)
	if err != nil {
		return Sent{}, err
	}
	return p.notifier.remove(c, m), nil
}

// DeleteBotMessage deletes a message of the bot as an administrator (slack.com/help/articles/202395258).
// The app gets the event of a deletion.
func (p *People) DeleteBotMessage(channelID, ts string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.world.channels[channelID]
	if c == nil || c.byTS[ts] == nil || !c.byTS[ts].fromBot {
		return fmt.Errorf("slack emulator: no message %s of the bot in channel %s", ts, channelID)
	}
	p.notifier.remove(c, c.byTS[ts])
	return nil
}

func (w *world) userMessage(channelID, ts string) (*channel, *message, error) {
	c := w.channels[channelID]
	if c == nil || c.byTS[ts] == nil {
		return nil, nil, fmt.Errorf("slack emulator: no message %s in channel %s", ts, channelID)
	}
	if c.byTS[ts].fromBot {
		return nil, nil, errors.New("slack emulator: users cannot change messages of the bot")
	}
	return c, c.byTS[ts], nil
}

// Command types a slash command as a user. It works in every channel of the user, even
// without the bot, but not in threads.
func (p *People) Command(channelID, userID, command, text string) (Sent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, err := p.world.writableChannel(channelID, userID)
	if err != nil {
		return Sent{}, err
	}
	trigger, url := p.world.newResponseURL(c, userID, nil)
	return p.notifier.push(c, delivery.KindCommand, map[string]any{
		"token": "verification", "team_id": p.cfg.Team, "team_domain": strings.ToLower(p.cfg.TeamName),
		"channel_id": c.id, "channel_name": c.payloadName(), "user_id": userID, "user_name": p.world.users[userID].Name,
		"command": command, "text": text, "api_app_id": appID, "is_enterprise_install": "false",
		"response_url": url, "trigger_id": trigger,
	}, Sent{Channel: c.id, TriggerID: trigger}), nil
}

// SendEvent sends any event to the app. event is the inner event, and team its workspace; an empty team
// means the emulated workspace.
func (p *People) SendEvent(team string, event json.RawMessage) Sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.notifier.sendEvent(nil, team, event, Sent{})
}
