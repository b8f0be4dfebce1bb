package house

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
)

var failedTo = regexp.MustCompile(`(?i)^["` + "`" + `](.*: )?(failed|unable) to\b`)

// checkSleep: a test waits for what it waits for. In a synctest bubble a sleep
// moves the clock and is fine.
func checkSleep(m *module) []finding {
	var found []finding
	for _, s := range m.sources {
		if !s.test {
			continue
		}
		eachFunc(s.File, func(name string, fn ast.Node) {
			ast.Inspect(fn, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				switch {
				case !ok:
					return true
				case s.selects(call.Fun, "testing/synctest", "Test"):
					return false
				case s.selects(call.Fun, "time", "Sleep"):
					found = append(found, m.at(call.Pos(), name, "time.Sleep in %s: wait on a channel, or run it in testing/synctest", name))
				}
				return true
			})
		})
	}
	return found
}

// checkErrorTexts: an error says what was tried; that it failed is what an error is.
func checkErrorTexts(m *module) []finding {
	var found []finding
	for _, s := range m.sources {
		ast.Inspect(s.File, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 || !s.selects(call.Fun, "fmt", "Errorf") && !s.selects(call.Fun, "errors", "New") {
				return true
			}
			lit, ok := call.Args[0].(*ast.BasicLit)
			if ok && lit.Kind == token.STRING && failedTo.MatchString(lit.Value) {
				found = append(found, m.at(lit.Pos(), "", "error text %s: name what was tried, without \"failed to\"", lit.Value))
			}
			return true
		})
	}
	return found
}

// checkContextFields: a context belongs to a call, not to a value.
func checkContextFields(m *module) []finding {
	var found []finding
	for s := range m.program {
		name := ""
		ast.Inspect(s.File, func(n ast.Node) bool {
			switch t := n.(type) {
			case *ast.TypeSpec:
				name = t.Name.Name
			case *ast.StructType:
				for _, f := range contextFields(s, t) {
					found = append(found, m.at(f.Pos(), name, "%s keeps a context: make it the first parameter of what waits", name))
				}
			}
			return true
		})
	}
	return found
}

func contextFields(s *source, t *ast.StructType) []*ast.Field {
	return slices.DeleteFunc(slices.Clone(t.Fields.List), func(f *ast.Field) bool {
		return !s.selects(f.Type, "context", "Context")
	})
}
