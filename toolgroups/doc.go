// Package toolgroups defines tools, their groups, and which of them a conversation can use. The
// model always sees the core tools; every other tool is in a [Group], and joins the request once
// the model has loaded that group by name with load_tool_group.
//
// A [Registry] holds all tools of the bot and is immutable; a change of tools builds a new one.
// A [Set] holds the tools that one conversation can use: the registry and the groups loaded by the
// conversation, in first-load order. Groups come from manifests (JSON).
package toolgroups
