package bridge_test

import (
	"encoding/json"
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

// What TestPlainMessages is told: how many to send, and where its functions report to.
const (
	plainMessages = "PLAIN_MESSAGES"
	plainCalls    = "PLAIN_CALLS"
)

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

// background are the functions that goroutines begin with for which no answer waits: what
// the bridge does after an answer, and the sign that it is at work.
var background = []string{"sync.(*WaitGroup).Go.", "oneclaw/bridge/delivery.(*Sender).ShowTyping."}

// The path of a plain message is one page to read: of the functions of the bridge's rooms,
// at most 50 run more often with one message more.
//
// Each function reports where the goroutine began that it runs on, so that those are left
// out that run in the background alone. The worker of a lane carries the message and counts.
func TestThePathOfAPlainMessageIsShort(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the bridge with counters")
	}
	overlay := countingBridge(t)
	once, thrice := countedFunctions(t, overlay, 1), countedFunctions(t, overlay, 3)
	var path []string
	for name, n := range thrice {
		if n > once[name] {
			path = append(path, name)
		}
	}
	slices.Sort(path)
	t.Logf("%d functions:\n%s", len(path), strings.Join(path, "\n"))
	if len(path) > 50 || len(path) < 10 {
		t.Errorf("a plain message passes %d functions, want at most 50", len(path))
	}
}

// countedFunctions returns how often the functions of the bridge's rooms were called for so
// many messages, in the foreground.
func countedFunctions(t *testing.T, overlay string, messages int) map[string]int {
	t.Helper()
	calls := filepath.Join(t.TempDir(), "calls")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-run", "^TestPlainMessages$", "-vet=off", "-overlay="+overlay, ".")
	cmd.Env = append(os.Environ(), plainMessages+"="+strconv.Itoa(messages), plainCalls+"="+calls)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int)
	for line := range strings.Lines(string(data)) {
		name, began, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if !slices.ContainsFunc(background, func(b string) bool { return strings.HasPrefix(began, b) }) {
			counts[name]++
		}
	}
	return counts
}

// reportCall is what each function calls. It writes who that is, and the function that the
// goroutine began with.
const reportCall = `package %s

import (
	"os"
	"runtime"
)

func reportCall() {
	callers := make([]uintptr, 1000)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	frame, more := frames.Next()
	name, began := frame.Function, ""
	for ; more; frame, more = frames.Next() {
		began = frame.Function // the last is runtime.goexit
	}
	file, err := os.OpenFile(os.Getenv("` + plainCalls + `"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return // another test's
	}
	defer func() { _ = file.Close() }()
	_, _ = file.WriteString(name + "\t" + began + "\n")
}
`

// countingBridge writes the rooms with a report at the beginning of each function, and
// returns the overlay that has the compiler take those.
func countingBridge(t *testing.T) string {
	t.Helper()
	dir, replace := t.TempDir(), make(map[string]string)
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) {
		short, _ := filepath.Rel(root, name)
		in := filepath.Join(dir, strings.ReplaceAll(short, string(filepath.Separator), "_"))
		if err := os.WriteFile(in, data, 0o600); err != nil {
			t.Fatal(err)
		}
		replace[name] = in
	}
	files, _ := filepath.Glob(filepath.Join(root, "*.go"))
	rooms, _ := filepath.Glob(filepath.Join(root, "*", "*.go"))
	for _, name := range append(files, rooms...) {
		short, _ := filepath.Rel(filepath.Dir(root), name)
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(short, filepath.Join("bridge", "platformtest")) {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range slices.Backward(file.Decls) {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				at := set.Position(f.Body.Lbrace).Offset + 1
				data = slices.Insert(data, at, []byte(" reportCall();")...)
			}
		}
		write(name, data)
		write(filepath.Join(filepath.Dir(name), "report_call.go"), fmt.Appendf(nil, reportCall, file.Name.Name))
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}
