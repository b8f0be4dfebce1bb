// Package openai is a model server with Chat Completions and the Responses API, for tests, the
// demo and benchmarks. It checks requests as strictly as the hosted service, records them,
// counts tokens and simulates the prompt cache.
//
// Replies come from a [Responder]. It can be a [Script] of replies, including errors and broken
// streams, a function, or [Offline], a rule-based model that shows the product without a key.
//
// A [Server] has no goroutine of its own until [Server.Start]; [Server.Close] ends
// every request and waits for its handler.
package openai
