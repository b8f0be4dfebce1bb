package main

import (
	"context"
	"iter"
	"strings"

	"oneclaw/internal/config"
	"oneclaw/internal/connections"
	"oneclaw/internal/doctor/live"
	"oneclaw/internal/guard"
	"oneclaw/toolgroups/mcp/oauth"
)

// tryCatalogue asks the servers of the catalogue how people sign in, and yields how that agrees with the
// catalogue. It signs no user in.
func tryCatalogue(ctx context.Context, cfg config.Config, catalogue connections.Catalogue) (iter.Seq[live.Row], error) {
	private, err := cfg.AllowPrivate()
	if err != nil {
		return nil, err
	}
	client := guard.NewClient(guard.Config{AllowPrivate: private, Resolver: cfg.Runtime.Resolver})
	return func(yield func(live.Row) bool) {
		for _, e := range catalogue.Servers {
			row := live.Row{Where: "catalogue", Step: e.Name, Emulator: describeSignIn(e.Client == connections.ClientRegisters, e.Issuer)}
			found, err := oauth.Inspect(ctx, oauth.Server{Name: e.Name, URL: e.URL, HTTP: client})
			if row.Err = err; e.Issuer == "" {
				found.Issuer = "" // the catalogue names none
			}
			row.Service = describeSignIn(found.TakesClients, strings.TrimRight(found.Issuer, "/"))
			if !yield(row) || ctx.Err() != nil {
				return
			}
		}
	}, nil
}

// describeSignIn describes a sign-in for comparison.
func describeSignIn(takesClients bool, issuer string) string {
	text := "takes clients made by hand"
	if takesClients {
		text = "takes this bot as a client"
	}
	if issuer != "" {
		text += ", at " + issuer
	}
	return text
}
