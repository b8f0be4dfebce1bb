package demo

import (
	"context"
	"encoding/json"

	"oneclaw/internal/emulator/slack"
)

// surface has the parts of an agent app that Slack shows besides messages.
type surface struct {
	// Prompts are suggested prompts, Home are the blocks of the Home tab.
	Prompts []slack.Prompt  `json:"prompts"`
	Home    json.RawMessage `json:"home,omitempty"`
	// Sessions are the states of the threads by id, Titles their names.
	Sessions map[string]string `json:"sessions"`
	Titles   map[string]string `json:"titles"`
}

// task is a step shown while an answer is being made.
type task struct {
	Title string `json:"title"`
	Done  bool   `json:"done"`
}

// directTab is the name of the tab with the direct chat.
const directTab = "direct"

// channelOf returns the conversation in Slack that a request refers to.
func (d *Demo) channelOf(what pageRequest) string {
	if what.Place == directTab {
		return d.SlackDM
	}
	return d.slackChannel
}

// openApp opens the app as the user, so that the bot shows its suggestions.
func (d *Demo) openApp(_ context.Context, what pageRequest) (any, error) {
	tab := "messages"
	if what.Place == "home" {
		tab = "home"
	}
	_, err := d.Slack.OpenHome(d.SlackUser, tab)
	return nil, err
}

// pressStop presses Slack's own stop button.
func (d *Demo) pressStop(_ context.Context, what pageRequest) (any, error) {
	_, err := d.Slack.StopSession(d.SlackDM, what.Thread, d.SlackUser)
	return nil, err
}

// fillSurface adds the direct chat to the pane, with the surface that Slack shows there.
func (p *pane) fillSurface(s slack.State, direct, member string) {
	var inside pane
	inside.fillSlack(s, direct)
	p.Surface = &surface{Prompts: s.Prompts(direct), Home: s.HomeBlocks(member), Sessions: map[string]string{}, Titles: map[string]string{}}
	for _, m := range inside.Messages {
		m.Place = directTab
		if p.Messages = append(p.Messages, m); m.Thread == "" || m.Thread == m.ID {
			p.Surface.Sessions[m.ID], p.Surface.Titles[m.ID] = s.Session(direct, m.ID), s.Title(direct, m.ID)
		}
	}
	p.Busy = p.Busy || inside.Busy
}
