// Package telegram connects the bot to Telegram.
//
// It polls the Bot API for updates and confirms them only once the inbox has them
// on disk: the offset moves after Accept, never before. An update that cannot be
// decoded is logged and skipped by itself, so that it cannot block those behind it.
//
// Answers are sent as Telegram's HTML, and as plain text where Telegram refuses the
// HTML. The client library carries the requests, but its errors contain the bot's
// token: they are taken apart at the one place where they enter, and nothing else
// in this package sees them.
//
// Files go out as photos where Telegram takes them as such, else as documents, by
// the same rules as texts.
package telegram
