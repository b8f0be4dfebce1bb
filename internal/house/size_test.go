package house

import (
	"fmt"
	"go/ast"
	"go/token"
)

// The bounds. A function's lines are those between its first and its last; its
// complexity counts as the linter does: one, and one more for every if, for, case
// (default too), && and ||. An embedded interface is one method.
const (
	maxFileLines     = 400
	maxFuncLines     = 60
	maxTestFuncLines = 120
	maxComplexity    = 15
	maxMethods       = 5
)

func checkFileLength(m *module) []finding {
	var found []finding
	for s := range m.program {
		if s.lines > maxFileLines {
			found = append(found, finding{s.name, maxFileLines + 1, "", fmt.Sprintf("file has %d lines, at most %d: split it by subject", s.lines, maxFileLines)})
		}
	}
	return found
}

func checkFuncLength(m *module) []finding {
	var found []finding
	for _, s := range m.sources {
		limit := maxFuncLines
		if s.test {
			limit = maxTestFuncLines
		}
		eachFunc(s.File, func(name string, fn ast.Node) {
			n := m.fset.Position(fn.End()).Line - m.fset.Position(fn.Pos()).Line - 1
			if n > limit {
				found = append(found, m.at(fn.Pos(), name, "%s has %d lines, at most %d: give its parts names", name, n, limit))
			}
		})
	}
	return found
}

func checkComplexity(m *module) []finding {
	var found []finding
	for s := range m.program {
		eachFunc(s.File, func(name string, fn ast.Node) {
			if n := complexity(fn); n > maxComplexity {
				found = append(found, m.at(fn.Pos(), name, "%s has a cyclomatic complexity of %d, at most %d: split it, or make its cases a table", name, n, maxComplexity))
			}
		})
	}
	return found
}

func checkInterfaces(m *module) []finding {
	var found []finding
	for s := range m.program {
		name := ""
		ast.Inspect(s.File, func(n ast.Node) bool {
			switch t := n.(type) {
			case *ast.TypeSpec:
				name = t.Name.Name
			case *ast.InterfaceType:
				if count := countMethods(t); count > maxMethods {
					found = append(found, m.at(t.Pos(), name, "interface %s has %d methods, at most %d: make the rest an optional interface", name, count, maxMethods))
				}
			}
			return true
		})
	}
	return found
}

func countMethods(t *ast.InterfaceType) int {
	n := 0
	for _, f := range t.Methods.List {
		n += max(1, len(f.Names))
	}
	return n
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

func complexity(fn ast.Node) int {
	total := 1
	ast.Inspect(fn, func(n ast.Node) bool {
		switch t := n.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.CaseClause, *ast.CommClause:
			total++
		case *ast.BinaryExpr:
			if t.Op == token.LAND || t.Op == token.LOR {
				total++
			}
		}
		return true
	})
	return total
}
