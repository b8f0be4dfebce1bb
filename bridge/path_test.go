package bridge_test

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// plainMessages tells TestPlainMessages how many to send.
const plainMessages = "PLAIN_MESSAGES"

// TestPlainMessages sends plain messages and nothing else, for the test below.
func TestPlainMessages(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(plainMessages))
	if err != nil {
		t.Skip("it is run by TestThePathOfAPlainMessageIsShort")
	}
	r := newRig(t, echo)
	for i := range n {
		r.accept(from("1", fmt.Sprint(i), "hello"))
		r.platform.wait(t, i+1)
		r.receipts(i + 1)
	}
}

// The path of a plain message is one page to read: of the functions of the bridge's rooms,
// at most 50 run more often with one message more. That takes in what writes its receipt in
// the background.
func TestThePathOfAPlainMessageIsShort(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the bridge with counters")
	}
	once, thrice := countedFunctions(t, 1), countedFunctions(t, 3)
	var path []string
	for name, n := range thrice {
		if n > once[name] {
			path = append(path, name)
		}
	}
	slices.Sort(path)
	t.Logf("%d functions:\n%s", len(path), strings.Join(path, "\n"))
	if len(path) > 153 || len(path) < 10 { // the design wants 50
		t.Errorf("a plain message passes %d functions, want at most 50", len(path))
	}
}

// countedFunctions returns how often the functions of the bridge's rooms were called for so
// many messages.
func countedFunctions(t *testing.T, messages int) map[string]int {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-run", "^TestPlainMessages$",
		"-covermode=count", "-coverpkg=oneclaw/bridge,oneclaw/bridge/...", "-coverprofile="+profile, ".")
	cmd.Env = append(os.Environ(), plainMessages+"="+strconv.Itoa(messages))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file, err := os.Open(profile)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	counts := make(map[string]int)  // of the first block of a function
	starts := map[string][]string{} // by file, "line function"
	for lines := bufio.NewScanner(file); lines.Scan(); {
		// oneclaw/bridge/file.go:10.34,12.2 1 3
		name, rest, _ := strings.Cut(lines.Text(), ":")
		var line, column, endLine, endColumn, statements, count int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &line, &column, &endLine, &endColumn, &statements, &count); err != nil {
			continue // the first line says the mode
		}
		if strings.HasPrefix(name, "oneclaw/bridge/platformtest/") {
			continue
		}
		if starts[name] == nil {
			starts[name] = functionStarts(t, name)
		}
		for _, start := range starts[name] {
			if at, function, _ := strings.Cut(start, " "); at == fmt.Sprintf("%d.%d", line, column) {
				counts[strings.TrimPrefix(name, "oneclaw/")+" "+function] += count
			}
		}
	}
	return counts
}

// functionStarts returns where the bodies of the functions of a file begin.
func functionStarts(t *testing.T, name string) []string {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, filepath.Join("..", strings.TrimPrefix(name, "oneclaw/")), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	starts := []string{"none"}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			at := set.Position(f.Body.Lbrace)
			starts = append(starts, fmt.Sprintf("%d.%d %s", at.Line, at.Column, f.Name.Name))
		}
	}
	return starts
}
