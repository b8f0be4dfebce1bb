// Package npmtest runs in tests what scripts named install have installed from npm: Telegram's own reader of
// texts, the libraries that other bots are made of and those of the models' services, writers and readers of
// documents, and a database.
package npmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is the time that a script may take, which is a few seconds on a machine that is not busy.
const patience = 3 * time.Minute

// folders are where packages are in the cache, each with what installs it.
var folders = [][2]string{
	{"clients", "internal/emulator/wire/testdata/clients/install"},
	{"types", "internal/emulator/wire/testdata/types/install"},
	{"documents", "toolgroups/documents/testdata/others/install"},
	{"pglite", "storage/postgres/testdata/pglite/install"},
}

// Run runs a script of Node, with the installed packages, and returns what it prints. The script finds input as
// JSON where it reads its standard input. A test whose packages are not installed is skipped, unless
// TEST_ONECLAW_TYPES is "must".
func Run(t testing.TB, script string, input any, packages ...string) []byte {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	modules := make([]string, len(folders))
	for i, folder := range folders {
		modules[i] = filepath.Join(cache, "oneclaw", folder[0], "node_modules")
	}
	for _, name := range packages {
		if !slices.ContainsFunc(modules, func(dir string) bool { return exists(filepath.Join(dir, filepath.FromSlash(name))) }) {
			if os.Getenv("TEST_ONECLAW_TYPES") == "must" {
				t.Fatalf("%s is not installed: run what is named install in %v", name, folders)
			}
			t.Skipf("%s is not installed: run what is named install in %v", name, folders)
		}
	}
	given, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "-e", script)
	cmd.Env = append(os.Environ(), "NODE_PATH="+strings.Join(modules, string(os.PathListSeparator)))
	cmd.Stdin = bytes.NewReader(given)
	var told bytes.Buffer
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, told.Bytes(), out)
	}
	return out
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
