package oauth

import (
	"context"
	"iter"
	"strings"

	"oneclaw/storage"
)

// Connection is an account that a user has connected at a server.
type Connection struct{ Server, User string }

// Connections yields the connected accounts, sorted by server and user, after the given one; the
// zero value for all.
func Connections(ctx context.Context, kv storage.KV, after Connection) iter.Seq2[Connection, error] {
	r := storage.Range{Prefix: accountPrefix}
	if after.Server != "" {
		r.After = accountPrefix + accountKey(after.Server, after.User)
	}
	return connections(ctx, kv, r)
}

func connections(ctx context.Context, kv storage.KV, r storage.Range) iter.Seq2[Connection, error] {
	return func(yield func(Connection, error) bool) {
		for entry, err := range kv.List(ctx, r) {
			server, user, _ := strings.Cut(strings.TrimPrefix(entry.Key, r.Prefix), "/")
			if !yield(Connection{server, user}, err) || err != nil {
				return
			}
		}
	}
}

// OfUser yields the accounts that a user has connected, and the sign-ins in progress.
func OfUser(ctx context.Context, kv storage.KV, user string) iter.Seq2[Connection, error] {
	return func(yield func(Connection, error) bool) {
		for _, prefix := range []string{accountPrefix, pendingPrefix} {
			for c, err := range connections(ctx, kv, storage.Range{Prefix: prefix}) {
				if (err != nil || c.User == user) && !yield(c, err) {
					return
				}
			}
		}
	}
}
