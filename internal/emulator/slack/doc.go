// Package slack is a Slack workspace with one installed app for tests, the demo and
// benchmarks. It speaks the part of the Web API that a chat bot needs and Socket
// Mode, over real HTTP and WebSockets, and refuses what the service refuses, in its
// words: wrong tokens and kinds of tokens, missing scopes, unknown channels and
// threads, blocks and texts over the limits.
//
// There are three faces. The app's face is [Server.ServeHTTP] under /api/, the
// sockets that apps.connections.open hands out, and the addresses of files and
// responses. The people's face is [People]: [People.AddUser], [People.AddChannel],
// [People.Say], [People.Command], [People.Press] and so on make the events that people's
// apps would. The observer's face is [Observer]: [Observer.WaitFor], [Observer.View] and
// [Observer.Subscribe] show what the app did without sleeping. [wire.Faults.Inject] makes
// the server misbehave: refuse, cut connections before or after accepting, hang, repeat or
// delay envelopes; [outbox.Control] does the same to sockets.
//
// Behind them lies the world: people, channels and messages, with the rules of the service.
// People and the methods that the app calls (api) change it, and each has the app told (news)
// over the package delivery. One lock guards all of it. Whose methods tests or requests call
// takes the lock; what is below is called with the lock held.
//
// An event goes to one of the open sockets, chosen by chance, and waits where there
// is none. What is not acknowledged in time, or was with a socket that broke, is
// sent again a limited number of times; see [Delivery].
//
// Each refusal names where it is from: "its page" is the list of errors of the method that
// refuses (docs.slack.dev/reference/methods/<name>), and "assumed" is what nothing was
// found for. What is assumed stands in docs/live.md too.
//
// Everything is kept in memory and bounded. A Server has no goroutine of its own
// until [Server.Start] or the first socket; [Server.Close] ends every request and
// socket and waits for it.
package slack
