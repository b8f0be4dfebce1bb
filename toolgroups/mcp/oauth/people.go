package oauth

import (
	"context"
	"iter"
	"strings"

	"oneclaw/storage"
)

// Connection is an account that a user has connected at a server.
type Connection struct{ Server, User string }

// Connections yields the connected accounts, sorted by server and user. It begins after the given
// one, or with the first one if that is the zero value.
func Connections(ctx context.Context, kv storage.KV, after Connection) iter.Seq2[Connection, error] {
	r := storage.Range{Prefix: accountPrefix}
	if after.Server != "" {
		r.After = accountPrefix + accountKey(after.Server, after.User)
	}
	return listConnections(ctx, kv, r)
}

func listConnections(ctx context.Context, kv storage.KV, r storage.Range) iter.Seq2[Connection, error] {
	return func(yield func(Connection, error) bool) {
		for entry, err := range kv.List(ctx, r) {
			server, user, _ := strings.Cut(strings.TrimPrefix(entry.Key, r.Prefix), "/")
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
			for c, err := range listConnections(ctx, kv, storage.Range{Prefix: prefix}) {
				if (err != nil || c.User == user) && !yield(c, err) {
					return
				}
			}
		}
	}
}
