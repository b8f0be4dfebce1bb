// Package openai is a model server that speaks Chat Completions and the Responses API, for tests, the demo
// and benchmarks. It checks requests as strictly as the hosted service does, keeps
// them for inspection, counts tokens and finds out how much of a prompt a cache
// would have known.
//
// What it answers comes from a [Responder]: a [Script] of replies, with errors and
// broken streams among them, a function, or [Offline], a rule-based model that shows
// the product without a key.
//
// A [Server] has no goroutine of its own until [Server.Start]; [Server.Close] ends
// every request and waits for it.
package openai
