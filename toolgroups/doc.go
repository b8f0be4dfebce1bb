// Package toolgroups knows tools, the groups they come in, and which of them one
// conversation can use. The model always sees the core tools; every other tool is
// in a [Group], and joins the request once the model has loaded that group by name
// with load_tool_group.
//
// A [Registry] holds everything the bot has and never changes; a change of tools
// builds a new one. A [Set] is what one conversation can use: the registry and the
// groups it has loaded, in first-load order. Groups come from manifests (JSON).
package toolgroups
