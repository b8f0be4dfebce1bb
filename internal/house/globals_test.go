package house

import (
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// immutable are calls whose result may be kept in a package variable: nothing that
// is done with it later changes it.
var immutable = [][2]string{
	{"errors", "New"},
	{"fmt", "Errorf"},
	{"regexp", "MustCompile"},
	{"sync", "OnceValue"}, // what it returns never changes either
	{"strings", "NewReplacer"},
	{"html/template", "Must"},
	{"text/template", "Must"},
	{"net/netip", "MustParsePrefix"},
	{"net/netip", "MustParseAddr"},
	{"time", "Date"},
}

// checkInit: nothing happens before main.
func checkInit(m *module) []finding {
	var found []finding
	for _, s := range m.sources {
		for _, d := range s.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				found = append(found, m.at(fn.Pos(), "init", "func init: do it in a constructor that main calls"))
			}
		}
	}
	return found
}

// effects are imported for what they do: embed for the compiler's directive, the
// formats because the standard library's image.Decode has no other way.
var effects = []string{"embed", "image/gif", "image/jpeg", "image/png"}

// checkBlankImports: registration by import is wiring that cannot be read.
func checkBlankImports(m *module) []finding {
	var found []finding
	for _, s := range m.sources {
		for _, spec := range s.Imports {
			if spec.Name != nil && spec.Name.Name == "_" && !slices.Contains(effects, strings.Trim(spec.Path.Value, `"`)) {
				found = append(found, m.at(spec.Pos(), spec.Path.Value, "import of %s for its side effect: wire it by name", spec.Path.Value))
			}
		}
	}
	return found
}

// checkGlobals allows package variables that stay what they are: errors, embedded
// files, compiled patterns, interface assertions, and unexported tables (a
// composite literal) to which nothing in the package is ever assigned.
func checkGlobals(m *module) []finding {
	var found []finding
	byDir := map[string][]*source{}
	for s := range m.program {
		byDir[s.dir] = append(byDir[s.dir], s)
	}
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		changed := m.changedGlobals(byDir[dir])
		for _, s := range byDir[dir] {
			eachGlobal(s, func(id *ast.Ident, value ast.Expr, embedded bool) {
				if fault := globalFault(s, id, value, embedded); fault != "" {
					found = append(found, m.at(id.Pos(), id.Name, "package variable %s %s", id.Name, fault))
				} else if pos, ok := changed[id.Name]; ok {
					found = append(found, m.at(pos, id.Name, "package variable %s is changed here: keep the state in a type", id.Name))
				}
			})
		}
	}
	return found
}

func eachGlobal(s *source, f func(id *ast.Ident, value ast.Expr, embedded bool)) {
	for _, d := range s.Decls {
		gen, ok := d.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, spec := range gen.Specs {
			spec := spec.(*ast.ValueSpec)
			for i, id := range spec.Names {
				var value ast.Expr
				if i < len(spec.Values) {
					value = spec.Values[i]
				}
				f(id, value, isEmbed(spec.Doc) || isEmbed(gen.Doc))
			}
		}
	}
}

func isEmbed(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return strings.HasPrefix(c.Text, "//go:embed ")
	})
}

func globalFault(s *source, id *ast.Ident, value ast.Expr, embedded bool) string {
	if id.Name == "_" || embedded || isVersion(s, id) {
		return ""
	}
	switch v := value.(type) {
	case nil:
		return "has no value: keep the state in a type"
	case *ast.CompositeLit:
		if id.IsExported() {
			return "is a table that others could change: unexport it behind a function"
		}
		return ""
	case *ast.SelectorExpr:
		if strings.HasPrefix(v.Sel.Name, "Err") && strings.HasPrefix(strings.ToLower(id.Name), "err") {
			return ""
		}
	case *ast.CallExpr:
		if isConversion(v) {
			return ""
		}
		for _, c := range immutable {
			if s.selects(v.Fun, c[0], c[1]) {
				return ""
			}
		}
	case *ast.BasicLit:
		return "should be a constant"
	}
	return "could change: make it a constant, a function, or a field of a type"
}

// isVersion allows the one variable that the linker sets.
func isVersion(s *source, id *ast.Ident) bool {
	return s.Name.Name == "main" && id.Name == "version"
}

// isConversion reports a literal as bytes: []byte("…").
func isConversion(call *ast.CallExpr) bool {
	_, array := call.Fun.(*ast.ArrayType)
	return array && len(call.Args) == 1
}

// changedGlobals finds the package variables that something is assigned to, or
// whose address is taken. Types of other packages are not looked at: what is
// declared here is known without them.
func (m *module) changedGlobals(sources []*source) map[string]token.Pos {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{
		Importer: noImports{},
		Error:    func(error) {}, // from the imports left out
	}
	files := make([]*ast.File, len(sources))
	for i, s := range sources {
		files[i] = s.File
	}
	pkg, _ := conf.Check(sources[0].dir, m.fset, files, info)
	changed := map[string]token.Pos{}
	mark := func(e ast.Expr) {
		id := root(e)
		if id == nil {
			return
		}
		v, ok := info.Uses[id].(*types.Var)
		if first := changed[id.Name]; ok && v.Parent() == pkg.Scope() && (!first.IsValid() || id.Pos() < first) {
			changed[id.Name] = id.Pos()
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			eachChange(n, mark)
			return true
		})
	}
	return changed
}

func eachChange(n ast.Node, mark func(ast.Expr)) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, e := range n.Lhs {
			mark(e)
		}
	case *ast.IncDecStmt:
		mark(n.X)
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			mark(n.Key)
			mark(n.Value)
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			mark(n.X)
		}
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && (id.Name == "delete" || id.Name == "clear" || id.Name == "copy") {
			mark(n.Args[0])
		}
	}
}

// root is the variable behind x, x.f, x[i] and *x.
func root(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return root(e.X)
	case *ast.IndexExpr:
		return root(e.X)
	case *ast.StarExpr:
		return root(e.X)
	case *ast.ParenExpr:
		return root(e.X)
	}
	return nil
}

type noImports struct{}

func (noImports) Import(string) (*types.Package, error) {
	return nil, errors.New("not looked at")
}
