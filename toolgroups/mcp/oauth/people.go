package oauth

import (
	"context"
	"iter"
	"strings"

	"oneclaw/storage"
)

// Connection is an account that a user has connected at a server.
type Connection struct{ Server, User string }

// Connections yields the connected accounts, sorted by server and user.
func Connections(ctx context.Context, kv storage.KV) iter.Seq2[Connection, error] {
	return listConnections(ctx, kv, accountPrefix)
}

func listConnections(ctx context.Context, kv storage.KV, prefix string) iter.Seq2[Connection, error] {
	return func(yield func(Connection, error) bool) {
		for entry, err := range kv.List(ctx, storage.Range{Prefix: prefix}) {
			server, user, _ := strings.Cut(strings.TrimPrefix(entry.Key, prefix), "/")
			if !yield(Connection{server, user}, err) || err != nil {
				return
			}
		}
	}
}

// UserConnections yields the accounts that a user has connected and the user's sign-ins in progress.
func UserConnections(ctx context.Context, kv storage.KV, user string) iter.Seq2[Connection, error] {
	return func(yield func(Connection, error) bool) {
		for _, prefix := range []string{accountPrefix, pendingPrefix} {
			for c, err := range listConnections(ctx, kv, prefix) {
				if (err != nil || c.User == user) && !yield(c, err) {
					return
				}
			}
		}
	}
}
