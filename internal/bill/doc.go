// Package bill measures what a conversation costs under each way of routing tools.
//
// It plays conversations to the real agent, registry, routers and encoder; only the model
// is a script, which loads, searches or calls, whichever the tools of the request ask of
// it. The cache of each provider is simulated on the bytes that it would have been sent,
// so the figures depend on those and on the rules and prices in [Tables] alone.
//
// What is counted are billed-equivalent input tokens (o200k_base): one that is written to
// a cache or read from it counts as often as the provider charges for it. Where turns
// have pauses between them, what caches keep expires.
package bill
