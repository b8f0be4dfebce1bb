package house

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
)

var failedTo = regexp.MustCompile(`(?i)^["` + "`" + `](.*: )?(failed|unable) to\b`)

// checkSleep: a test waits for what it waits for. It neither sleeps, nor waits for a
// timer and nothing else, nor looks again every few milliseconds. In a synctest bubble a
// sleep moves the clock and is fine.
func checkSleep(m *module) []finding {
	var found []finding
	for _, s := range m.sources {
		if !s.test {
			continue
		}
		eachFunc(s.File, func(name string, fn ast.Node) {
			bounds := map[ast.Node]bool{} // receives that are one case among others
			ast.Inspect(fn, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CommClause:
					if wait, ok := n.Comm.(*ast.ExprStmt); ok {
						bounds[wait.X] = true
					}
				case *ast.UnaryExpr:
					if n.Op == token.ARROW && !bounds[n] && s.isTimer(n.X) {
						found = append(found, m.at(n.Pos(), name, "a wait for a timer in %s: wait on a channel, or run it in testing/synctest", name))
					}
				case *ast.CallExpr:
					switch {
					case s.selects(n.Fun, "testing/synctest", "Test"):
						return false
					case s.selects(n.Fun, "time", "Sleep"):
						found = append(found, m.at(n.Pos(), name, "time.Sleep in %s: wait on a channel, or run it in testing/synctest", name))
					case s.isPoll(n):
						found = append(found, m.at(n.Pos(), name, "polling in %s: wait on a channel for what is polled, with a bound", name))
					}
				}
				return true
			})
		})
	}
	return found
}

// isTimer reports a timer that is made where it is waited for.
func (s *source) isTimer(e ast.Expr) bool {
	if field, ok := e.(*ast.SelectorExpr); ok && field.Sel.Name == "C" {
		e = field.X
	}
	call, ok := e.(*ast.CallExpr)
	return ok && slices.ContainsFunc([]string{"After", "NewTimer", "NewTicker", "Tick"}, func(name string) bool {
		return s.selects(call.Fun, "time", name)
	})
}

// isPoll reports a ticker, or what serves as one in a loop, of less than a second.
func (s *source) isPoll(call *ast.CallExpr) bool {
	if !slices.ContainsFunc([]string{"After", "NewTicker", "Tick"}, func(name string) bool { return s.selects(call.Fun, "time", name) }) {
		return false
	}
	short := false
	for _, arg := range call.Args {
		ast.Inspect(arg, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			short = short || ok && (s.selects(e, "time", "Millisecond") || s.selects(e, "time", "Microsecond") || s.selects(e, "time", "Nanosecond"))
			return true
		})
	}
	return short
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

// eachFunc calls f for each function, and for each function literal outside of one.
func eachFunc(file *ast.File, f func(name string, fn ast.Node)) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch fn := n.(type) {
		case *ast.FuncDecl:
			f(funcName(fn), fn)
			return false
		case *ast.FuncLit:
			f("func literal", fn)
			return false
		}
		return true
	})
}
