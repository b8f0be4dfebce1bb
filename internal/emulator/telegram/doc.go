// Package telegram emulates a Telegram Bot API server with one bot for tests, the demo and benchmarks.
// It implements the part of Bot API 10 that a chat bot needs, over real HTTP. It refuses the same
// requests as the service, with the same errors: wrong tokens, unbalanced HTML, texts over the limit,
// unknown chats, topics and messages, a second poller.
//
// It has three interfaces. The bot uses [Server.ServeHTTP] under /bot<token>/ and /file/bot<token>/. The
// control interface acts for the users: [Server.AddUser], [Server.AddChat], [Server.Say], [Server.Press]
// and so on cause the updates that the users' own apps would. Observers wait for actions of the bot:
// [Server.WaitFor], [Server.View] and [Server.Subscribe]. [Server.Inject] makes the server misbehave:
// refuse calls, break connections before or after accepting, hang, repeat updates.
//
// The package has layers. The world has users, chats, messages and files, and the queue delivers updates
// to the bot. The bot's calls (api) and the control interface (setup, people, observer) use both.
//
// Each refusal names its source. Files ending in .cpp belong to the service's own source
// (github.com/tdlib/telegram-bot-api, or tdlib/td if it says so or only that has the file),
// core.telegram.org/api/errors lists the errors of the server behind the Bot API, and "assumed" means
// that no source was found. SERVICES.md lists the assumptions.
//
// Everything is kept in memory and bounded. A Server has no goroutine of its own until [Server.Start];
// [Server.Close] ends every request and waits for its handler.
package telegram
