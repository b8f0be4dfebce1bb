package search

import (
	"go/build"
	"path/filepath"
	"strings"
	"testing"
)

// Nothing that searches, describes and calls tools can run a script or a
// program: what could is not even linked in.
func TestNoScriptSandbox(t *testing.T) {
	seen := map[string]bool{}
	var walk func(dir string)
	walk = func(dir string) {
		pkg, err := build.ImportDir(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range pkg.Imports {
			if seen[path] {
				continue
			}
			seen[path] = true
			for _, part := range []string{"os/exec", "javascript", "quickjs", "jstools", "wazero", "plugin"} {
				if strings.Contains(path, part) {
					t.Errorf("%s is imported by %s", path, dir)
				}
			}
			if ours, ok := strings.CutPrefix(path, "oneclaw/"); ok {
				walk(filepath.Join("..", "..", filepath.FromSlash(ours)))
			}
		}
	}
	walk(".")
	if !seen["oneclaw/toolgroups"] {
		t.Errorf("looked at %v", seen)
	}
}
