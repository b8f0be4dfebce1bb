package house

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
)

// The bounds of what stands together.
const (
	maxTypeMethods  = 40
	maxConfigFields = 15
	maxPackageLines = 4000
)

// checkWidth bounds the methods of a type, the fields of a Config and the lines of a
// package.
func checkWidth(m *module) []finding {
	methods, lines, at := map[string]int{}, map[string]int{}, map[string]finding{}
	var found []finding
	for s := range m.program {
		lines[s.dir] += s.lines
		for _, d := range s.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if receiver := receiverOf(d); receiver != "" {
					methods[s.dir+"."+receiver]++
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					t, ok := spec.(*ast.TypeSpec)
					if !ok {
						continue
					}
					at[s.dir+"."+t.Name.Name] = m.at(t.Pos(), t.Name.Name, "")
					if fields, ok := t.Type.(*ast.StructType); ok && t.Name.Name == "Config" && fields.Fields.NumFields() > maxConfigFields {
						found = append(found, m.at(t.Pos(), "Config", "Config has %d fields, at most %d: what belongs together is a struct of its own", fields.Fields.NumFields(), maxConfigFields))
					}
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		if n := methods[name]; n > maxTypeMethods {
			f := at[name]
			f.message = fmt.Sprintf("%s has %d methods, at most %d: it is two things", f.subject, n, maxTypeMethods)
			found = append(found, f)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(lines)) {
		if n := lines[dir]; n > maxPackageLines {
			found = append(found, finding{dir, 0, path.Base(dir), fmt.Sprintf("the package has %d lines without tests, at most %d: it is two things", n, maxPackageLines)})
		}
	}
	return found
}

// receiverOf is the name of the type that a method belongs to.
func receiverOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return ""
	}
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	name, _ := t.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}
