// Package telegram connects the bot to Telegram.
//
// It polls the Bot API for updates, or receives them at a webhook, and confirms an update only once the
// inbox has it on disk: Accept returns before the offset moves or the post is answered. An update that
// cannot be decoded is logged and skipped on its own, so that it cannot block later updates. Once the
// bot is identified, the poll loop never gives up, and [platform.Health] reports what it waits for.
//
// The client library calls the methods. Its errors contain the bot's token, so the client converts them
// in the one place where they enter, and nothing else in this package sees them.
package telegram
