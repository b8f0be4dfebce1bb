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
// Everything is kept in memory and bounded. A Server has no goroutine of its own
// until [Server.Start]; [Server.Close] ends every request and waits for it.
package telegram
