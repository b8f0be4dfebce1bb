package demo

import (
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
)

// Platforms are emulated platforms with one user.
type Platforms struct {
	Telegram *telegram.Server
	Slack    *slack.Server
	// TelegramUser is the user on Telegram, and their private chat.
	TelegramUser int64
	// telegramFriend is a person whose messages the user forwards.
	telegramFriend int64
	// SlackUser is the user on Slack, SlackDM their direct chat with the app, slackChannel a shared channel.
	SlackUser, SlackDM, slackChannel string
}

// NewPlatforms makes the platforms. The Slack app is that of the manifest; nil means a plain one. With
// control, they have their control interfaces.
func NewPlatforms(manifest []byte, control bool) (p Platforms, err error) {
	if p.Telegram, err = telegram.New(telegram.Config{Control: control}); err != nil {
		return p, err
	}
	p.TelegramUser = p.Telegram.AddUser(telegram.User{FirstName: "Robin"}).ID
	p.telegramFriend = p.Telegram.AddUser(telegram.User{FirstName: "Anna", LastName: "Berg"}).ID
	if _, err = p.Telegram.AddChat(telegram.ChatSpec{Kind: telegram.Private, User: p.TelegramUser}); err != nil {
		return p, err
	}
	if p.Slack, err = slack.New(slack.Config{TeamName: "Lighthouse", Control: control}); err != nil {
		return p, err
	}
	p.SlackUser = p.Slack.AddUser(slack.User{Name: "robin", RealName: "Robin", Admin: true}).ID
	if p.slackChannel, err = p.Slack.AddChannel(slack.ChannelSpec{Name: "general", Members: []string{p.SlackUser}}); err != nil {
		return p, err
	}
	if p.SlackDM, err = p.Slack.AddChannel(slack.ChannelSpec{Kind: slack.DM, Members: []string{p.SlackUser}}); err == nil && manifest != nil {
		err = p.Slack.Install(manifest)
	}
	return p, err
}
