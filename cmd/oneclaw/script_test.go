package main

import (
	"errors"
	"log/slog"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"oneclaw/internal/app"
	"oneclaw/internal/config"
	"oneclaw/storage/postgres/pgtest"
)

// TestScripts runs the program as a person in a shell would: testdata/script.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Setup: endPromptly})
}

// endPromptly is [promptEnd] for the programs of a script.
func endPromptly(env *testscript.Env) error {
	env.Vars = append(env.Vars, promptEnd)
	return nil
}

// TestPostgresScripts does so with a server beside, and a data folder in which there is a conversation.
func TestPostgresScripts(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	server.Database(t) // it is started, or the test is skipped
	testscript.Run(t, testscript.Params{Dir: "testdata/postgres", Setup: func(env *testscript.Env) error {
		base := server.Database(t)
		changed := func(change func(u *url.URL)) string {
			u, err := url.Parse(base)
			if err != nil {
				t.Fatal(err)
			}
			change(u)
			return u.String()
		}
		option := func(name string) string {
			return changed(func(u *url.URL) { u.RawQuery += "&options=" + url.QueryEscape("-c"+name) })
		}
		env.Setenv("EMPTY", changed(func(u *url.URL) { u.User = url.UserPassword("postgres", "open sesame") }))
		env.Setenv("FRESH", server.Database(t))
		env.Setenv("WRONG", changed(func(u *url.URL) { u.User = url.UserPassword(pgtest.Guarded, "not open sesame") }))
		env.Setenv("GUARDED", changed(func(u *url.URL) { u.User = url.User(pgtest.Guarded) }))
		env.Setenv("MISSING", changed(func(u *url.URL) { u.Path = "nowhere" }))
		env.Setenv("READONLY", option("default_transaction_read_only=on"))
		env.Setenv("ASYNC", option("synchronous_commit=off"))
		_ = endPromptly(env)
		cfg := config.Default()
		cfg.DataDir = filepath.Join(env.WorkDir, "data")
		store, err := app.OpenStore(t.Context(), cfg, slog.New(slog.NewTextHandler(t.Output(), nil)))
		if err != nil {
			return err
		}
		key, err := cfg.Place().SecretKey(t.Context(), store)
		env.Setenv("ONECLAW_SECRET_KEY", string(key))
		if err == nil {
			_, err = store.Append(t.Context(), "telegram:1001/1", 0, spoken(0, 20)...)
		}
		return errors.Join(err, store.Close())
	}})
}
