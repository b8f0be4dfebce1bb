// Package telegram connects the bot to Telegram.
//
// It polls the Bot API for updates and confirms them only once the inbox has them on disk: the offset
// moves after Accept, never before. An update that cannot be decoded is logged and skipped by itself,
// so that it cannot block those behind it. The poll loop never gives up, and [Platform.Health] says
// what it waits for.
//
// The client library sends the requests, but its errors contain the bot's token: they are converted at
// the one place where they enter, and nothing else in this package sees them.
package telegram
