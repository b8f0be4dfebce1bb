package house

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
)

// claims is the document each of whose claims about defences names the test that shows
// it, as `package.TestName`.
const claims = "SECURITY.md"

// defended begins the headings of sections with such claims, one to a list item.
const defended = "## Defended"

var namedTest = regexp.MustCompile("`([a-z0-9_/]+)[.]((?:Test|Fuzz)[A-Za-z0-9_]+)`")

// checkClaims looks for the tests that the document names, and for claims without one.
func checkClaims(m *module) []finding {
	tests := m.testNames()
	var found []finding
	for _, t := range m.texts {
		if t.name != claims {
			continue
		}
		item, begun, inside := "", 0, false
		end := func() {
			if inside && strings.HasPrefix(item, "- ") && !namedTest.MatchString(item) {
				found = append(found, finding{t.name, begun, "", "a claim without a test: name one as `package.TestName`"})
			}
			item = ""
		}
		for i, line := range strings.Split(string(t.data), "\n") {
			for _, name := range namedTest.FindAllStringSubmatch(line, -1) {
				if !tests[name[1]+"."+name[2]] {
					found = append(found, finding{t.name, i + 1, "", fmt.Sprintf("there is no %s in %s", name[2], name[1])})
				}
			}
			switch {
			case strings.HasPrefix(line, "#"):
				end()
				inside = strings.HasPrefix(line, defended)
			case strings.HasPrefix(line, "- "):
				end()
				item, begun = line, i+1
			case strings.TrimSpace(line) == "":
				end()
			default:
				item += line
			}
		}
		end()
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
