package slack

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"oneclaw/internal/emulator/slack/blockkit"
)

// Limits documented on the pages of assistant.threads.setSuggestedPrompts and views.publish.
const (
	maxPrompts    = 4
	maxHomeBlocks = 100
)

// Prompt is a suggested prompt.
type Prompt struct {
	Title   string `json:"title"`
	Message string `json:"message"`
}

// setSuggestedPrompts sets the suggested prompts of a chat. For an agent app, a call with a thread
// silently does nothing (its page).
func setSuggestedPrompts(c *call) (any, *refusal) {
	ch, err := c.world.findChannel(c.p.Text("channel_id"), false)
	if err != nil {
		return nil, err
	}
	var prompts []Prompt
	_, bad := c.p.DecodeJSON("prompts", &prompts)
	lacks := func(p Prompt) bool { return p.Title == "" || p.Message == "" }
	if bad != nil || len(prompts) == 0 || len(prompts) > maxPrompts || slices.ContainsFunc(prompts, lacks) {
		return nil, newRefusal("invalid_arguments", "[ERROR] want 1 to 4 prompts, each with a title and a message") // assumed
	}
	if c.p.Text("thread_ts") == "" {
		ch.prompts = prompts
		c.hub.Wake()
	}
	return nil, nil
}

// setThreadTitle sets the title of a thread in a direct chat with the app.
func setThreadTitle(c *call) (any, *refusal) {
	ch, err := c.world.findChannel(c.p.Text("channel_id"), false)
	if err != nil {
		return nil, err
	}
	thread, title := c.p.Text("thread_ts"), c.p.Text("title")
	switch m := ch.byTS[thread]; {
	case m == nil || m.parent != nil || ch.kind != DM:
		return nil, newRefusal("invalid_thread_ts") // the page of assistant.threads.setTitle
	case title == "":
		return nil, newRefusal("invalid_arguments", "[ERROR] missing required field: title") // assumed
	}
	ch.titles[thread] = title
	c.hub.Wake()
	return nil, nil
}

// publishHome publishes a view in a user's Home tab
// (docs.slack.dev/reference/methods/views.publish).
func publishHome(c *call) (any, *refusal) {
	var view struct {
		Type   string          `json:"type"`
		Blocks json.RawMessage `json:"blocks"`
	}
	has, bad := c.p.DecodeJSON("view", &view)
	if !has || bad != nil || view.Type != "home" {
		return nil, newRefusal("invalid_arguments", "[ERROR] want a view of the type home") // assumed
	}
	if err := checkBlocks(view.Blocks, maxHomeBlocks); err != nil {
		return nil, err
	}
	user := c.p.Text("user_id")
	switch {
	case c.world.users[user] == nil:
		return nil, newRefusal("user_not_found") // assumed
	case c.app.noHomeTab:
		return nil, newRefusal("not_enabled") // its page
	}
	c.world.homes[user] = view.Blocks
	c.hub.Wake()
	return map[string]any{"view": map[string]any{"id": c.world.newID("V"), "type": "home"}}, nil
}

// openView opens a modal for the user of a command or a button press. Nobody fills it in.
func openView(c *call) (any, *refusal) {
	var view struct {
		Type   string          `json:"type"`
		Blocks json.RawMessage `json:"blocks"`
	}
	if has, bad := c.p.DecodeJSON("view", &view); !has || bad != nil || view.Type != "modal" {
		return nil, newRefusal("invalid_arguments", "[ERROR] want a view of the type modal") // assumed
	}
	if err := checkBlocks(view.Blocks, maxHomeBlocks); err != nil {
		return nil, err
	}
	trigger := c.p.Text("trigger_id")
	r := c.world.responses[strings.ToUpper(trigger[strings.LastIndexByte(trigger, '.')+1:])]
	switch {
	case r == nil:
		return nil, newRefusal("invalid_trigger_id") // its page
	case r.opened:
		return nil, newRefusal("exchanged_trigger_id") // its page
	}
	r.opened = true
	return map[string]any{"view": map[string]any{"id": c.world.newID("V"), "type": "modal", "team_id": c.cfg.Team, "app_id": appID, "bot_id": BotID}}, nil
}

// OpenHome opens the app for a user, at its tab "home" or "messages"
// (docs.slack.dev/reference/events/app_home_opened).
func (p *People) OpenHome(userID, tab string) (Sent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.world.users[userID] == nil || tab != "home" && tab != "messages" || tab == "home" && p.app.noHomeTab {
		return Sent{}, fmt.Errorf("slack emulator: user %s cannot open the tab %q", userID, tab)
	}
	c := p.world.openDM(userID)
	if !p.app.isSubscribed("app_home_opened") {
		return Sent{Channel: c.id}, nil
	}
	event, err := json.Marshal(map[string]any{"type": "app_home_opened", "user": userID, "channel": c.id, "tab": tab, "event_ts": p.world.nextTS()})
	if err != nil {
		return Sent{}, fmt.Errorf("slack emulator: %w", err)
	}
	return p.notifier.sendEvent(c, "", json.RawMessage(event), Sent{Channel: c.id}), nil
}

// Home returns the visible text of a user's Home tab, or "".
func (st State) Home(user string) string {
	text, _, _ := blockkit.Render("", st.world.homes[user])
	return text
}

// HomeBlocks returns the blocks of a user's Home tab, as they were published.
func (st State) HomeBlocks(user string) json.RawMessage { return slices.Clone(st.world.homes[user]) }

// Prompts returns the suggested prompts of a chat.
func (st State) Prompts(channel string) []Prompt {
	return slices.Clone(st.channel(channel).prompts)
}

// Title returns the title of a thread.
func (st State) Title(channel, thread string) string {
	return st.channel(channel).titles[thread]
}
