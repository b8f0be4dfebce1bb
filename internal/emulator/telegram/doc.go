// Package telegram emulates a Telegram Bot API server with one bot for tests, the demo and
// benchmarks. It implements the part of Bot API 10 that a chat bot needs, over real HTTP, and
// refuses what the service refuses, in its words: wrong tokens, unbalanced HTML, texts over the
// limit, unknown chats, topics and messages, a second poller.
//
// It has three interfaces. The bot uses [Server.ServeHTTP] under /bot<token>/ and
// /file/bot<token>/. The control side acts for people: [Server.AddUser], [Server.AddChat],
// [Server.Say], [Server.Press] and so on cause the updates that people's apps would. Observers
// wait for what the bot did: [Server.WaitFor], [Server.View] and [Server.Subscribe].
// [Server.Inject] makes the server misbehave: refuse, cut connections before or after accepting,
// hang, repeat updates.
//
// Inside there are layers: the world has people, chats, messages and files, the queue delivers
// updates to the bot, and both are used by the bot's calls (api) and the control side (stage,
// people, observer).
//
// Each refusal names its source: files ending in .cpp belong to the service's own source
// (github.com/tdlib/telegram-bot-api, and tdlib/td if it says so or only that has the file),
// core.telegram.org/api/errors lists the errors of the server behind it, and "assumed" means
// that no source was found. docs/live.md lists the assumptions.
//
// Everything is kept in memory and bounded. A Server has no goroutine of its own
// until [Server.Start]; [Server.Close] ends every request and waits for it.
package telegram
