package surface

import (
	"context"
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
	"oneclaw/internal/wording"
)

// Methods of prompts, titles and the Home tab.
const (
	setPrompts  = "assistant.threads.setSuggestedPrompts"
	setTitle    = "assistant.threads.setTitle"
	publishView = "views.publish"
)

const (
	// maxPrompts bounds the prompts, maxHome the blocks of a view.
	maxPrompts, maxHome = 4, 100
	// maxTitle bounds the title of a thread, maxHeader a header, in characters.
	maxTitle, maxHeader = 80, 150
)

// OpenEvent is the opening, by a user, of the chat with the bot, or of the app's Home tab.
type OpenEvent struct {
	Home bool
	// User and Channel are the user and their chat with the bot. Thread is set in the assistant view,
	// the predecessor of the agent view.
	User, Channel, Thread string
}

// Greet shows a user who has opened the app what the bot can do.
func (s *Surface) Greet(ctx context.Context, host chats.Welcomer, m chats.Message, at OpenEvent) error {
	method := setPrompts
	if at.Home {
		method = publishView
	}
	if !s.canUse(method) {
		return nil
	}
	w, err := host.Welcome(ctx, m)
	switch {
	case err != nil:
		return fmt.Errorf("slack: %w", err)
	case at.Home:
		return s.publishHome(ctx, at.User, w.Sections)
	case len(w.Prompts) == 0:
		return nil
	}
	params := slack.AssistantThreadsSetSuggestedPromptsParameters{ChannelID: at.Channel, ThreadTS: at.Thread, Title: "Ask me, for example"}
	for _, p := range w.Prompts[:min(len(w.Prompts), maxPrompts)] {
		params.AddPrompt(p.Title, p.Message)
	}
	return s.call(ctx, method, func(ctx context.Context, api *slack.Client) error {
		return api.SetAssistantThreadsSuggestedPromptsContext(ctx, params)
	})
}

// publishHome shows sections in a user's Home tab.
func (s *Surface) publishHome(ctx context.Context, user string, sections []chats.Section) error {
	var blocks []slack.Block
	for _, section := range sections {
		title := slack.NewTextBlockObject(slack.PlainTextType, wording.Clip(section.Title, maxHeader), false, false)
		blocks = append(append(blocks, slack.NewHeaderBlock(title)), s.cfg.RenderBlocks(section.Text)...)
	}
	view := slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: blocks[:min(len(blocks), maxHome)]}}
	return s.call(ctx, publishView, func(ctx context.Context, api *slack.Client) error {
		_, err := api.PublishViewContext(ctx, slack.PublishViewContextRequest{UserID: user, View: view})
		return err
	})
}

// SetThreadTitle sets the title of a thread in a direct chat if the message begins it.
func (s *Surface) SetThreadTitle(ctx context.Context, m chats.Message) {
	title := titleOf(m.Text)
	if !m.Direct || m.Kind != chats.KindText || m.Chat.Thread != m.ID || title == "" || !s.canUse(setTitle) {
		return
	}
	s.RunInBackground(ctx, "a thread has no title", func(ctx context.Context) error {
		return s.call(ctx, setTitle, func(ctx context.Context, api *slack.Client) error {
			return api.SetAssistantThreadsTitleContext(ctx, slack.AssistantThreadsSetTitleParameters{ChannelID: m.Chat.ID, ThreadTS: m.Chat.Thread, Title: title})
		})
	})
}

// titleOf returns the first line of a text, or an empty string for a command.
func titleOf(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if strings.HasPrefix(line, "/") {
		return ""
	}
	return wording.Clip(strings.TrimSpace(line), maxTitle)
}
