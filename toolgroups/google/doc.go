// Package google has the tools for Google Workspace: mail, calendar, drive, contacts, documents,
// spreadsheets, slides, forms and tasks. Each is a group, and its tools use the account of the
// requester.
//
// The package stores the accounts and sends the requests. A tool runs with the token of Call.User
// and of no other user. Tokens are encrypted in the KV and refreshed under a lock. The client for a
// service is built for each call.
//
// The groups are in the packages mail, organizer and drive; package service describes how to add
// one.
package google
