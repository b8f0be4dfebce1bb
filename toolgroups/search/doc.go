// Package search lets a model find tools that are not in its tools array.
//
// A [Catalogue] holds the tools that one conversation may use and that were left
// out of the array. [Bridge] puts three tools in their place: tool_search finds
// them, tool_describe shows their parameters, tool_call runs them. All three, and
// [Bridge.Resolve], read the same catalogue; nothing is kept between requests, so
// that none of it can drift from the registry.
//
// The caller resolves a call of tool_call before anything else looks at it, with
// [Bridge.Resolve], so that policy, approvals, logs and the history see the tool
// that really runs.
//
// [Index] is the retrieval below: BM25 over names, descriptions, parameter names
// and sources. It gates nothing: what shares a word with the query can be found.
// [Eval] measures it. An [Embedder] may be joined to it with [NewHybrid], but
// nothing needs one.
package search
