// Package search lets a model find tools that are not in its tools array.
//
// A [Catalogue] holds the tools that one conversation may use and that can be left out of the array.
// [Bridge] replaces them by three tools: tool_search finds them, tool_describe shows their
// parameters, tool_call runs them. All three, and [Bridge.Resolve], read the same catalogue, which
// is made from the registry of the request; so the bridge cannot drift from the registry.
//
// The caller first resolves a call of tool_call with [Bridge.Resolve], so that policy,
// approvals, logs and the history see the tool that actually runs.
//
// [Index] is the retrieval: BM25 over names, descriptions, parameter names and sources, with
// synonyms, similar spellings and the word vectors of package meaning. It excludes nothing: every
// tool that shares a word with the query can be found. [Eval] measures it. [Index.Match] scores any
// texts, so that those for different queries compare. [NewHybrid] adds an
// [Embedder], which is optional.
package search
