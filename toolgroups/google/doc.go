// Package google is the family of tools for Google Workspace: mail, calendar,
// drive, contacts, documents, spreadsheets, slides, forms and tasks, each a group
// of its own, on the account of the user who asks.
//
// A tool runs with the token of Call.User and of nobody else. Tokens lie encrypted
// in the KV and are refreshed under a lock. Nothing is built before it is used: the
// client of a service lives as long as one call.
//
// # Adding a group
//
// A group is two files. manifests/google_x.json holds the _meta entry and the
// tools: name, description (short, schemas cost tokens), parameters, timeout_s,
// effect (read_only; consequential for what reaches other people or cannot be
// taken back; nothing for the rest) and function, the key in the operations below.
// x.go holds
//
//	func xGroup() group {
//		return group{
//			name:   "google_x",
//			scopes: []string{x.XScope},
//			operations: operations{
//				"xListThings": with(x.NewService, xListThings),
//				"xSendThing":  with(x.NewService, xSendThing).needs(x.XSendScope),
//			},
//		}
//	}
//
//	func xListThings(ctx context.Context, api *x.Service, c *conn, in xListArgs) (any, error)
//
// and is entered in groups. An operation gets a service that is authorised for the
// user, its arguments decoded and validated against the schema, and returns what is
// encoded as the result: a type of the client library, a struct of the contract's
// shape, or a [toolgroups.Result] where files are to be delivered to the chat. It
// returns errors of the library as they are: they are mapped to the codes of the
// contract in one place. It calls ".Context(ctx)" on each request. Retries, refreshed
// tokens, missing scopes, the ban on consequential tools outside of the user's direct
// chat, and results that are too long are none of its business. What helps it:
// bounded for maxima, collect for pages, each for concurrent details, invalidf for
// arguments, c.read, c.save and c.deliver for files of the workspace.
package google
