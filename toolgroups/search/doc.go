// Package search lets a model find tools that are not in its tools array.
//
// [Router] assembles the array of each request. In a search, a catalogue holds the tools that one
// conversation may use and that can be left out of the array, and a bridge replaces them by three tools:
// tool_search finds them, tool_describe shows their parameters, tool_call runs them. All three read the same
// catalogue, which is made from the registry of the request; so the bridge cannot drift from the registry. A
// call of tool_call is resolved before anything else looks at it, so that policy, approvals, logs and the
// history see the tool that actually runs.
//
// The retrieval is BM25 over names, descriptions, parameter names and sources, with synonyms, similar
// spellings and the word vectors of package meaning. It excludes nothing: every tool that shares a word with
// the query can be found. An [Embedder], which is optional, adds a ranking by meaning.
// [Match] scores any texts, so that those for different messages compare.
package search
