// Package service is what the services of Google share: groups of operations on the
// account of the user who asks. It knows no accounts; [Connect] finds one.
//
// # Adding a group
//
// A group is two files. manifests/google_x.json holds the _meta entry and the
// tools: name, description (short, schemas cost tokens), parameters, timeout_s,
// effect (read_only; consequential for what reaches other people or cannot be
// taken back; nothing for the rest) and function, the key in the operations below.
// x.go, in the package that it belongs to, holds the function X that returns the [Group],
// and the functions of its [Operations], as tasks.go does. X is entered in groups of
// package google.
//
// An operation gets a service that is authorised for the user, and the validated
// arguments: those of all operations of the group, of which it takes its own. It returns
// what is encoded as the result: a type of the client library, a struct of the contract's
// shape, or a [toolgroups.Result] with files for the chat. It returns errors of the library as they are: they are mapped to the codes of
// the contract in one place. It calls ".Context(ctx)" on each request. Retries,
// refreshed tokens, missing scopes, the ban on consequential tools outside of the
// user's direct chat, and results that are too long are none of its business. What
// helps it: [Bounded] for maxima, [Collect] for pages, [Each] for concurrent details,
// [Invalidf] for arguments, the methods of [Conn] for files of the workspace.
package service
