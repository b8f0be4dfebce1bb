package postgres_test

import (
	_ "embed"
	"fmt"
	"net"
	"strings"
	"testing"

	"oneclaw/internal/emulator/npmtest"
	"oneclaw/storage/postgres"
	"oneclaw/storage/postgres/pgtest"
)

//go:embed testdata/pglite/serve.cjs
var pgliteScript string

// PGlite is refused with a sentence, with and without pooler=true, by a server of one connection and as often as
// one of many is tried.
func TestPGliteIsRefused(t *testing.T) {
	t.Parallel()
	for connections, pooled := range map[int][]bool{1: {false}, 2: {true}, 20: {false, true, false, true}} {
		t.Run(fmt.Sprint(connections), func(t *testing.T) {
			t.Parallel()
			port, err := pgtest.FreePort()
			if err != nil {
				t.Fatal(err)
			}
			ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var refusals []string
			tried := make(chan struct{})
			go func() {
				defer close(tried)
				conn, err := ln.Accept()
				if err != nil {
					return // nothing was started
				}
				defer func() { _ = conn.Close() }() // which ends the server
				for _, pooler := range pooled {
					s, err := postgres.Open(t.Context(), postgres.Config{URL: fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port), Pooler: pooler})
					if err == nil {
						_ = s.Close() // it should not have been opened
					}
					refusals = append(refusals, fmt.Sprint(err))
				}
			}()
			defer func() { <-tried }()
			defer func() { _ = ln.Close() }()
			npmtest.Run(t, pgliteScript, map[string]any{"port": port, "connections": connections, "waiting": ln.Addr().(*net.TCPAddr).Port}, "@electric-sql/pglite-socket")
			<-tried
			for _, text := range refusals {
				if !strings.Contains(text, "is PGlite, which serves one connection") {
					t.Error(text)
				}
			}
			if len(refusals) != len(pooled) {
				t.Errorf("%d of %d were refused", len(refusals), len(pooled))
			}
		})
	}
}
