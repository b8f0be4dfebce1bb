package house

import (
	"fmt"
	"go/ast"
	"regexp"
	"strconv"
	"strings"
)

// claims is the document whose claims about defences have numbers, under which a table names the
// tests that show them, as `package.TestName`.
const claims = "SECURITY.md"

// defended begins the headings of sections with such claims, one to a list item.
const defended = "## Defended"

var (
	namedTest = regexp.MustCompile("`([a-z0-9_/]+)[.]((?:Test|Fuzz)[A-Za-z0-9_]+)`")
	claim     = regexp.MustCompile(`^- D([0-9]+) `)
	testsOf   = regexp.MustCompile(`^\| D([0-9]+) \|`)
)

// checkClaims looks for the tests that the document names, for claims without a number or without a row in
// the table, and for rows that are out of order or of no claim. The numbers of claims may be in any order, so
// that a new claim can stand where it belongs.
func checkClaims(m *module) []finding {
	tests := m.testNames()
	var found []finding
	for _, t := range m.texts {
		if t.name != claims {
			continue
		}
		claimed, rows, last, inside := map[int]int{}, map[int]int{}, 0, false
		for i, line := range strings.Split(string(t.data), "\n") {
			report := func(format string, args ...any) {
				found = append(found, finding{t.name, i + 1, "", fmt.Sprintf(format, args...)})
			}
			named := namedTest.FindAllStringSubmatch(line, -1)
			for _, name := range named {
				if !tests[name[1]+"."+name[2]] {
					report("there is no %s in %s", name[2], name[1])
				}
			}
			if strings.HasPrefix(line, "#") {
				inside = strings.HasPrefix(line, defended)
			}
			if row := testsOf.FindStringSubmatch(line); row != nil {
				n, _ := strconv.Atoi(row[1])
				if n <= last {
					report("D%d is out of order", n)
				}
				if len(named) == 0 {
					report("D%d names no test, as `package.TestName`", n)
				}
				rows[n], last = i+1, max(n, last)
			}
			if !inside || !strings.HasPrefix(line, "- ") {
				continue
			}
			number := claim.FindStringSubmatch(line)
			if number == nil {
				report("a claim without a number: begin it with D and the next free one")
				continue
			}
			n, _ := strconv.Atoi(number[1])
			if claimed[n] > 0 {
				report("two claims are D%d", n)
			}
			claimed[n] = i + 1
		}
		for n, line := range claimed {
			if rows[n] == 0 {
				found = append(found, finding{t.name, line, "", fmt.Sprintf("D%d has no row in the table of tests", n)})
			}
		}
		for n, line := range rows {
			if claimed[n] == 0 {
				found = append(found, finding{t.name, line, "", fmt.Sprintf("no claim is D%d", n)})
			}
		}
	}
	return found
}

// fuzzed is the document whose section about fuzzing has tables of the fuzz targets, by their packages.
const fuzzed = "CONTRIBUTING.md"

var fuzzTarget = regexp.MustCompile(`\bFuzz[A-Za-z0-9_]+`)

// checkFuzz compares those tables with the targets that there are. A row without a package belongs to the
// one above it.
func checkFuzz(m *module) []finding {
	tests, listed := m.testNames(), map[string]bool{}
	var found []finding
	for _, t := range m.texts {
		if t.name != fuzzed {
			continue
		}
		inside, dirs, last := false, []string(nil), 0
		for i, line := range strings.Split(string(t.data), "\n") {
			if strings.HasPrefix(line, "## ") {
				inside = line == "## Fuzzing"
			}
			cells := strings.Split(line, "|")
			if !inside || len(cells) < 3 {
				continue
			}
			if names := strings.FieldsFunc(cells[1], func(r rune) bool { return r == ' ' || r == ',' }); len(names) > 0 {
				dirs = names
			}
			last = i + 1
			for _, name := range fuzzTarget.FindAllString(cells[2], -1) {
				known := false
				for _, dir := range dirs {
					if tests[dir+"."+name] {
						listed[dir+"."+name], known = true, true
					}
				}
				if !known {
					found = append(found, finding{t.name, last, name, "no package of this row has " + name})
				}
			}
		}
		for name := range tests {
			if strings.Contains(name, ".Fuzz") && !listed[name] {
				found = append(found, finding{t.name, last, name, "the tables of fuzz targets lack " + name})
			}
		}
	}
	return found
}

// testNames are the tests of all packages, as folder.TestName.
func (m *module) testNames() map[string]bool {
	names := map[string]bool{}
	for _, s := range m.sources {
		if !s.test {
			continue
		}
		for _, d := range s.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				names[s.dir+"."+fn.Name.Name] = true
			}
		}
	}
	return names
}
