// Package bill measures what a conversation costs under each way of routing tools.
//
// It plays conversations to the real agent, with the real registry, routers and
// encoder; only the model is a script, which does what the conversation says it did:
// it loads, searches or calls, whichever the tools of the request ask of it. Every
// request is kept as the bytes that would have gone to the provider, and the cache of
// each provider is simulated on them. So the figures depend on nothing but what the
// program sends and on the rules and prices of the caches, which stand in [Tables].
//
// What is counted are billed-equivalent input tokens (o200k_base): one that is neither
// written to a cache nor read from it counts once, one that is written or read counts
// as often as the provider charges for it. Caches are taken never to expire within a
// conversation.
package bill
