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
