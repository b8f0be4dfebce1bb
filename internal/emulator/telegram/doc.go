// Package telegram is a Telegram Bot API server of one bot for tests, the demo and
// benchmarks. It speaks the part of Bot API 10 that a chat bot needs, over real
// HTTP, and refuses what the service refuses, in the words of the service: wrong
// tokens, unbalanced HTML, texts over the limit, unknown chats, topics and
// messages, a second poller.
//
// There are three faces. The bot's face is [Server.ServeHTTP] under /bot<token>/
// and /file/bot<token>/. The people's face is the control side: [Server.AddUser],
// [Server.AddChat], [Server.Say], [Server.Press] and so on make updates as people's
// apps would. The observer's face is [Server.WaitFor], [Server.View] and
// [Server.Subscribe], which show what the bot did without sleeping. [Server.Inject]
// makes the server misbehave: refuse, cut connections before or after accepting,
// hang, repeat updates.
//
// Inside, each knows what is below it alone: the world keeps people, chats, messages and
// files, the queue carries updates to the bot, and on both stand what the bot calls (api) and
// the control side (stage, people, observer).
//
// Each refusal names where its words are from: files ending in .cpp are those of the
// service's own source (github.com/tdlib/telegram-bot-api, and tdlib/td where that says so
// or has the file alone), core.telegram.org/api/errors is the list of what the server
// behind it says, and "assumed" is what nothing was found for. What is assumed stands in
// docs/live.md too.
//
// Everything is kept in memory and bounded. A Server has no goroutine of its own
// until [Server.Start]; [Server.Close] ends every request and waits for it.
package telegram
