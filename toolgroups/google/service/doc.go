// Package service has the common parts of Google's services: groups of operations on the account of
// the requester. It does not manage accounts; a [Connect] function finds one.
//
// # Adding a group
//
// A group is two files. manifests/google_x.json holds the _meta entry and the tools: name,
// description (short, schemas cost tokens), parameters, timeout_s, effect (read_only;
// consequential if it is irreversible or visible to others; nothing for the rest) and function,
// the key in the operations below. x.go, in the package that it belongs to, holds the function X
// that returns the [Group], and the functions of its [Operations], as in tasks.go. Add X to
// groups of package google.
//
// An operation gets a client that is authorised for the user, and the validated arguments in a
// struct that the operations of a group may share. It returns the value to encode: a type of the
// client library, a struct in the contract's shape, or a [toolgroups.Result] with files for the
// chat. It returns the library's errors unchanged: they are mapped to the codes of the contract in
// one place. It calls ".Context(ctx)" on each request. Retries, refreshed tokens, missing scopes and
// long results are handled here and in package google.
// Helpers: [ClampLimit] for maxima, [Collect] for pages, [MapConcurrent] for concurrent requests,
// [Invalidf] for wrong arguments, the methods of [Conn] for files in the workspace.
package service
