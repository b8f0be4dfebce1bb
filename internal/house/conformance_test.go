package house

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// conformance is the document that explains the codes in the names of tests: a row for
// each, with what it means and the tests that carry it.
const conformance = "docs/conformance.md"

var update = flag.Bool("update", false, "write the tests of each code into "+conformance)

var (
	// A code in the name of a test. "Acceptance008And018" are two. The rows of docs/live.md
	// have one code together.
	codeInName = regexp.MustCompile(`Live[A-D]\d*|Acceptance\d{3}(?:And\d{3})*|Attack\d{2}(?:And\d{2})*|[BCD]\d+`)
	// A code that begins the name of a case.
	codeOfCase = regexp.MustCompile(`^"(Acceptance\d{3}|Attack\d{2})`)
	codeRow    = regexp.MustCompile(`^\| ([A-Z][A-Za-z]*\d+|Live) \| (.+) \| (.*) \|$`)
)

// noTest begins the last cell of a row that no test carries; the reason follows.
const noTest = "none: "

// checkConformance compares the rows of the document with the names of the tests.
func checkConformance(m *module) []finding {
	carried := m.codes()
	var found []finding
	for _, t := range m.texts {
		if t.name != conformance {
			continue
		}
		for i, line := range strings.Split(string(t.data), "\n") {
			row := codeRow.FindStringSubmatch(line)
			if row == nil {
				continue
			}
			switch want := carriers(carried[row[1]]); {
			case want == "" && !strings.HasPrefix(row[3], noTest):
				found = append(found, finding{t.name, i + 1, row[1], fmt.Sprintf("no test carries %s: say why behind %q", row[1], noTest)})
			case want != "" && row[3] != want:
				found = append(found, finding{t.name, i + 1, row[1], fmt.Sprintf("the tests of %s are not those of the row: run this test with -update", row[1])})
			}
			delete(carried, row[1])
		}
	}
	for _, code := range slices.Sorted(maps.Keys(carried)) {
		found = append(found, finding{conformance, 0, code, "no row explains " + code + " of " + carriers(carried[code])})
	}
	return found
}

// carriers is the last cell of a row.
func carriers(tests []string) string {
	if len(tests) == 0 {
		return ""
	}
	return "`" + strings.Join(tests, "`, `") + "`"
}

// codes are the codes in the names of all tests and of their cases, with the tests that
// carry them, as folder.TestName.
func (m *module) codes() map[string][]string {
	carried := map[string][]string{}
	for _, s := range m.sources {
		if !s.test || s.dir == "internal/house" {
			continue
		}
		for _, d := range s.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !isTest(fn.Name.Name) {
				continue
			}
			for _, code := range codesOf(fn) {
				carried[code] = append(carried[code], s.dir+"."+fn.Name.Name)
			}
		}
	}
	for _, tests := range carried {
		slices.Sort(tests)
	}
	return carried
}

func isTest(name string) bool {
	return strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Benchmark")
}

// codesOf are the codes of one test, each once.
func codesOf(fn *ast.FuncDecl) []string {
	var codes []string
	for _, match := range codeInName.FindAllString(fn.Name.Name, -1) {
		if strings.HasPrefix(match, "Live") {
			codes = append(codes, "Live")
			continue
		}
		first, rest, _ := strings.Cut(match, "And")
		if len(first) < 3 || first[1] <= '9' && len(first) != 3 {
			continue // no code, a number behind a letter
		}
		codes = append(codes, first)
		family := strings.TrimRight(first, "0123456789")
		for more := range strings.SplitSeq(rest, "And") {
			if more != "" {
				codes = append(codes, family+more)
			}
		}
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
			if match := codeOfCase.FindStringSubmatch(text.Value); match != nil {
				codes = append(codes, match[1])
			}
		}
		return true
	})
	slices.Sort(codes)
	return slices.Compact(codes)
}

// TestUpdateConformance writes the tests into the rows, with -update.
func TestUpdateConformance(t *testing.T) {
	if !*update {
		t.Skip("without -update nothing is written")
	}
	m, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	carried := m.codes()
	data, err := os.ReadFile("../../" + conformance)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	for i, line := range lines {
		row := codeRow.FindStringSubmatch(line)
		if row == nil {
			continue
		}
		cell := carriers(carried[row[1]])
		if cell == "" && strings.HasPrefix(row[3], noTest) {
			cell = row[3]
		}
		lines[i] = "| " + row[1] + " | " + row[2] + " | " + cell + " |"
	}
	if err := os.WriteFile("../../"+conformance, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Log("wrote " + strconv.Itoa(len(carried)) + " codes")
}
