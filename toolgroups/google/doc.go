// Package google is the family of tools for Google Workspace: mail, calendar,
// drive, contacts, documents, spreadsheets, slides, forms and tasks, each a group
// of its own, on the account of the user who asks.
//
// It keeps the accounts and carries the requests. A tool runs with the token of
// Call.User and of no other user. Tokens lie encrypted in the KV and are refreshed under
// a lock. Nothing is built before it is used: the client of a service lives as long as
// one call.
//
// The groups are in the packages mail, organizer and drive; package service says how
// to add one.
package google
