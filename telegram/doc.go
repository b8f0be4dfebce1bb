// Package telegram connects the bot to Telegram.
//
// It polls the Bot API for updates and confirms them only once the inbox has them on disk: the offset
// moves after Accept, never before. An update that cannot be decoded is logged and skipped on its own,
// so that it cannot block later updates. The poll loop never gives up, and [Platform.Health] reports
// what it waits for.
//
// The client library sends the requests. Its errors contain the bot's token, so they are converted in
// the one place where they enter, and nothing else in this package sees them.
package telegram
