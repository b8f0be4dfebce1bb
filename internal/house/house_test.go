package house

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// checks are the rules. The name of each is that of its example in testdata.
var checks = []check{
	{"imports", checkImports},
	{"clients", checkClients},
	{"packagecomments", checkPackageComments},
	{"docs", checkDocs},
	{"init", checkInit},
	{"blankimports", checkBlankImports},
	{"globals", checkGlobals},
	{"sleep", checkSleep},
	{"clock", checkClock},
	{"errortexts", checkErrorTexts},
	{"contextfields", checkContextFields},
	{"foreignwords", checkForeignWords},
	{"links", checkLinks},
	{"claims", checkClaims},
	{"fuzz", checkFuzz},
}

type check struct {
	name string
	run  func(*module) []finding
}

// exceptions are findings that stand, each with the reason. Subject is the name of
// the function, type or variable that the finding is about. One that no longer
// finds its place fails.
var exceptions = []exception{
	{"contextfields", "bridge/queue/queue.go", "Queue", "what jobs run under outlives the calls of Accept that queue them; Close ends it"},
	{"sleep", "bridge/crash_test.go", "waitDead", "looks at what a platform has got until the bridge has died"},
	{"sleep", "bridge/outage_test.go", "disk.write", "a slow disk, in a synctest bubble only"},
	{"sleep", "storage/replicas/replicas_test.go", "cluster.after", "lets time pass in a synctest bubble"},
	{"sleep", "cmd/oneclaw/model_outage_test.go", "let", "lets time pass in a synctest bubble"},
	{"sleep", "cmd/oneclaw/trial_soak_test.go", "soak.settled", "what goroutines and descriptors a process has can only be looked at"},
	{"sleep", "toolgroups/mcp/trial_lies_test.go", "drip", "a server that is slow by the clock, until its client leaves"},
	{"contextfields", "storage/bolt/admin.go", "cancelWriter", "io.Writer has no room for a context, and it lives no longer than the call"},
}

type exception struct {
	check, file, subject, reason string
}

func (e exception) covers(check string, f finding) bool {
	return e.check == check && e.file == f.file && e.subject == f.subject
}

func TestHouse(t *testing.T) {
	t.Parallel()
	m, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			for _, problem := range judge(c.name, c.run(m), exceptions) {
				t.Error(problem)
			}
		})
	}
}

// judge takes the exceptions out of the findings, and reports those exceptions
// that have no reason or nothing to except.
func judge(check string, found []finding, exceptions []exception) []string {
	var problems []string
	used := make([]bool, len(exceptions))
	for _, f := range sorted(found) {
		i := slices.IndexFunc(exceptions, func(e exception) bool { return e.covers(check, f) })
		if i < 0 {
			problems = append(problems, f.String())
			continue
		}
		used[i] = true
	}
	for i, e := range exceptions {
		switch {
		case e.check != check:
		case e.reason == "":
			problems = append(problems, fmt.Sprintf("the exception for %s of %s has no reason", e.subject, e.file))
		case !used[i]:
			problems = append(problems, fmt.Sprintf("the exception for %s of %s excepts nothing: remove it", e.subject, e.file))
		}
	}
	return problems
}

func sorted(found []finding) []finding {
	return slices.SortedFunc(slices.Values(found), func(a, b finding) int {
		return strings.Compare(fmt.Sprintf("%s:%06d:%s", a.file, a.line, a.message), fmt.Sprintf("%s:%06d:%s", b.file, b.line, b.message))
	})
}

// TestExamples runs each rule over a small module with faults. The findings that
// are expected stand in front of the files, all of them: what the rule must let
// pass is in the files too.
func TestExamples(t *testing.T) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			archive, err := txtar.ParseFile(path.Join("testdata", c.name+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			root := fstest.MapFS{}
			for _, f := range archive.Files {
				root[f.Name] = &fstest.MapFile{Data: expand(f.Data)}
			}
			var got strings.Builder
			for _, f := range sorted(c.run(loadExample(t, root))) {
				fmt.Fprintln(&got, f)
			}
			want := string(expand(archive.Comment))
			if want == "" {
				t.Error("the example expects no finding: it shows nothing")
			}
			if diff := cmp.Diff(want, got.String()); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func loadExample(t *testing.T, root fstest.MapFS) *module {
	t.Helper()
	if root["go.mod"] == nil {
		root["go.mod"] = &fstest.MapFile{Data: []byte("module oneclaw\n")}
	}
	m, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// expand fills in what an example cannot hold: "«repeat 3»x" is a line three times,
// and a bar within a word, as in fo¦reign, is taken out.
func expand(data []byte) []byte {
	var b strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(string(data), "¦", "")) {
		n := 1
		if rest, ok := strings.CutPrefix(line, "«repeat "); ok {
			if count, text, ok := strings.Cut(rest, "»"); ok {
				if _, err := fmt.Sscan(count, &n); err == nil {
					line = text
				}
			}
		}
		b.WriteString(strings.Repeat(line, n))
	}
	return []byte(b.String())
}

func TestExceptions(t *testing.T) {
	found := []finding{
		{"a.go", 1, "Long", "too long"},
		{"a.go", 9, "Other", "too long"},
	}
	for _, tc := range []struct {
		name       string
		exceptions []exception
		want       []string
	}{
		{"none", nil, []string{"a.go:1: too long", "a.go:9: too long"}},
		{"one stands", []exception{{"size", "a.go", "Long", "a table"}}, []string{"a.go:9: too long"}},
		{"of another rule", []exception{{"docs", "a.go", "Long", "a table"}}, []string{"a.go:1: too long", "a.go:9: too long"}},
		{
			"stale",
			[]exception{{"size", "a.go", "Long", "a table"}, {"size", "a.go", "Other", "too"}, {"size", "b.go", "Gone", "was long"}},
			[]string{"the exception for Gone of b.go excepts nothing: remove it"},
		},
		{
			"without a reason",
			[]exception{{"size", "a.go", "Long", ""}, {"size", "a.go", "Other", "too"}},
			[]string{"the exception for Long of a.go has no reason"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, judge("size", found, tc.exceptions)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	root := fstest.MapFS{
		"go.mod":               file("module example.org/x\n"),
		".gitignore":           file("# built\n/bin/\n*.test\n"),
		".git/config":          file("text"),
		".ci/run":              file("text"),
		"bin/x.go":             file("not Go"),
		"a/bin/x.go":           file("package bin\n"),
		"a/a.test":             file("text"),
		"a/a_test.go":          file("package a\n"),
		"a/testdata/broken.go": file("not Go"),
		"a/picture":            file("\x89PNG\x00"),
	}
	m, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	var sources, texts []string
	for _, s := range m.sources {
		sources = append(sources, fmt.Sprint(s.name, " ", s.test))
	}
	for _, x := range m.texts {
		texts = append(texts, x.name)
	}
	if diff := cmp.Diff([]string{"a/a_test.go true", "a/bin/x.go false"}, sources); diff != "" {
		t.Errorf("Go files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{".ci/run", ".gitignore", "a/a_test.go", "a/bin/x.go", "a/testdata/broken.go", "go.mod"}, texts); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	if m.path != "example.org/x" {
		t.Errorf("module path is %q", m.path)
	}
	for name, root := range map[string]fs.FS{
		"no go.mod":  fstest.MapFS{},
		"broken Go":  fstest.MapFS{"go.mod": file("module x\n"), "x.go": file("func")},
		"gitignore!": fstest.MapFS{"go.mod": file("module x\n"), ".gitignore": file("!x\n")},
	} {
		if _, err := load(root); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
