// Package service has what Google's services share: groups of operations on the account of the
// user who asks. It does not manage accounts; [Connect] finds one.
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
// An operation gets a client that is authorised for the user, and the validated arguments of all
// operations of the group, of which it uses its own. It returns the value to encode: a type of
// the client library, a struct of the contract's shape, or a [toolgroups.Result] with files for
// the chat. It returns the library's errors unchanged: they are mapped to the codes of the
// contract in one place. It calls ".Context(ctx)" on each request. Retries, refreshed tokens,
// missing scopes, refusing consequential tools outside the user's direct chat, and long results
// are handled for it. Helpers: [Bounded] for maxima, [Collect] for pages, [Each] for concurrent
// details, [Invalidf] for arguments, the methods of [Conn] for files of the workspace.
package service
