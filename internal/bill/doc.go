// Package bill computes what a conversation costs under each routing of tools.
//
// It plays conversations with the real agent, registry, routers and encoder; only the model is a
// script, which loads, searches or calls as the tools of the request require. The cache of each
// provider is simulated on the bytes that would have been sent, so the figures depend only on
// those and on the rules and prices in [Providers].
//
// The unit is billed-equivalent input tokens (o200k_base): a token that is written to a cache or
// read from it counts as much as the provider charges for it. If turns have pauses between them,
// cache entries expire.
package bill
