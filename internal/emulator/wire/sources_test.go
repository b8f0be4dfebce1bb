package wire

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// refusal finds where an emulator refuses something in words of its own.
var refusal = regexp.MustCompile(`(?:newRefusal|badRequest|errorf)\((?:\d+, )?["` + "`" + `]`)

// An emulator that is laxer or stricter than its service hides faults, so that each of its
// refusals says where it is known from, or that it is assumed.
func TestEachRefusalNamesItsSource(t *testing.T) {
	for _, dir := range []string{"../slack", "../telegram"} {
		files, err := filepath.Glob(dir + "/*.go")
		below, errBelow := filepath.Glob(dir + "/*/*.go")
		if err := errors.Join(err, errBelow); err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", dir, err)
		}
		found := 0
		for _, name := range append(files, below...) {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(data), "\n") {
				if !refusal.MatchString(line) || strings.HasPrefix(strings.TrimSpace(line), "//") {
					continue
				}
				if found++; !strings.Contains(line, " // ") {
					t.Errorf("%s:%d: a refusal without its source: %s", name, i+1, strings.TrimSpace(line))
				}
			}
		}
		if found < 20 {
			t.Errorf("only %d refusals were found in %s", found, dir)
		}
	}
}
