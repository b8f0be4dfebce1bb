// Package slack emulates a Slack workspace with one installed app for tests, the demo and benchmarks. It
// implements the part of the Web API that a chat bot needs and Socket Mode, over real HTTP and
// WebSockets. It refuses the same requests as the service, with the same errors: wrong tokens and kinds
// of tokens, missing scopes, unknown channels and threads, blocks and texts over the limits.
//
// It has three interfaces. The app uses [Server.ServeHTTP] under /api/, the sockets of
// apps.connections.open, and the addresses of files and responses. [People] acts for the users:
// [People.AddUser], [People.AddChannel], [People.Say], [People.Command], [People.Press] and so on cause
// the events that the users' own apps would. [Observer] waits for actions of the app:
// [Observer.WaitFor], [Observer.View] and [Observer.Subscribe]. [wire.Faults.Inject] makes the server
// misbehave: refuse calls, break connections before or after accepting, hang, repeat or delay envelopes;
// [delivery.Control] disturbs the sockets and delivers envelopes again.
//
// The world has the users, channels and messages, with the rules of the service. People and the app's
// calls (api) change it, and both send events to the app (notifier) through package delivery. One lock
// guards all of it. Methods called by tests or requests take the lock; the others are called with the
// lock held.
//
// An event is sent over a random open socket, or waits for one. If it is not acknowledged in time, or
// its socket breaks, it is sent again a limited number of times; see [Delivery].
//
// Each refusal names its source: "its page" is the list of errors of the refusing method
// (docs.slack.dev/reference/methods/<name>), and "assumed" means that no source was found. SERVICES.md
// lists the assumptions.
//
// Everything is kept in memory and bounded. A Server has no goroutine of its own until [Server.Start] or
// the first socket; [Server.Close] ends every request and socket and waits until they have ended.
package slack
