package main

import (
	"context"
	"os"

	"oneclaw/internal/emulator/dns"
	"oneclaw/storage"
)

// namesVariable is the address of the name server that the program asks.
const namesVariable = "TEST_NAMES"

// newerVariable makes the program one that knows a format more.
const newerVariable = "TEST_NEWER"

// fromTest is what the program is run with where a test starts it.
func fromTest() outside {
	o := standard()
	if os.Getenv(newerVariable) != "" {
		o.migrations = append(o.migrations, func(ctx context.Context, store storage.Store) error {
			_, err := store.Put(ctx, "newer", []byte("format"), storage.Any)
			return err
		})
	}
	if address := os.Getenv(namesVariable); address != "" {
		o.resolver = dns.Resolver(address)
	}
	return o
}
