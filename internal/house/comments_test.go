package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkPackageComments wants exactly one comment that says what the package is.
func checkPackageComments(m *module) []finding {
	var found []finding
	first := map[string]*source{}
	commented := map[string]bool{}
	for s := range m.program {
		if first[s.dir] == nil {
			first[s.dir] = s
		}
		if s.Doc == nil {
			continue
		}
		if commented[s.dir] {
			found = append(found, m.at(s.Package, "", "package %s has a second package comment: keep one, in doc.go or the main file", s.Name.Name))
		}
		commented[s.dir] = true
		start := "Package " + s.Name.Name
		if s.Name.Name == "main" {
			start = "Command " + path.Base(s.dir)
		}
		if fault := docFault(s.Doc.Text(), start); fault != "" {
			found = append(found, m.at(s.Package, "", "package comment %s", fault))
		}
	}
	for dir, s := range first {
		if !commented[dir] {
			found = append(found, m.at(s.Package, "", "package %s has no package comment: say in one sentence what it is", s.Name.Name))
		}
	}
	return found
}

// checkDocs wants a comment for each exported name: functions, types, methods of
// exported types and of exported interfaces, constants and variables (one for a
// whole group is enough).
func checkDocs(m *module) []finding {
	var found []finding
	for s := range m.program {
		report := func(id *ast.Ident, subject, doc string) {
			if fault := docFault(doc, id.Name); fault != "" {
				found = append(found, m.at(id.Pos(), subject, "comment of %s %s", subject, fault))
			}
		}
		for _, d := range s.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if r := receiver(d); d.Name.IsExported() && (r == "" || ast.IsExported(r)) {
					report(d.Name, funcName(d), d.Doc.Text())
				}
			case *ast.GenDecl:
				docsOfDecl(d, report)
			}
		}
	}
	return found
}

func docsOfDecl(d *ast.GenDecl, report func(id *ast.Ident, subject, doc string)) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() {
				report(spec.Name, spec.Name.Name, either(spec.Doc, d.Doc, d.Lparen).Text())
				docsOfMethods(spec, report)
			}
		case *ast.ValueSpec:
			docsOfValue(d, spec, report)
		}
	}
}

func docsOfMethods(spec *ast.TypeSpec, report func(id *ast.Ident, subject, doc string)) {
	t, ok := spec.Type.(*ast.InterfaceType)
	if !ok {
		return
	}
	for _, f := range t.Methods.List {
		for _, id := range f.Names {
			if id.IsExported() {
				report(id, spec.Name.Name+"."+id.Name, f.Doc.Text())
			}
		}
	}
}

// docsOfValue: a comment of its own has to be a sentence that begins with the first
// name; without one, the comment of the group or one behind the value will do.
func docsOfValue(d *ast.GenDecl, spec *ast.ValueSpec, report func(id *ast.Ident, subject, doc string)) {
	if !slices.ContainsFunc(spec.Names, (*ast.Ident).IsExported) {
		return
	}
	own := either(spec.Doc, d.Doc, d.Lparen)
	inGroup := d.Lparen.IsValid() && (d.Doc != nil || spec.Comment != nil)
	if own == nil && inGroup {
		return
	}
	report(spec.Names[0], spec.Names[0].Name, own.Text())
}

// either is the comment of a declaration's only spec, which the parser attaches to
// the declaration where there are no parentheses.
func either(spec, decl *ast.CommentGroup, paren token.Pos) *ast.CommentGroup {
	if spec == nil && !paren.IsValid() {
		return decl
	}
	return spec
}

// docFault says what is wrong with a doc comment, empty if nothing is.
func docFault(doc, start string) string {
	doc = strings.TrimRight(doc, "\n")
	last := doc[strings.LastIndexByte(doc, '\n')+1:]
	indented := strings.HasPrefix(last, " ") || strings.HasPrefix(last, "\t") // a list or an example
	sentence := strings.HasSuffix(strings.TrimRight(last, ")"), ".") || strings.HasSuffix(last, "?") || strings.HasSuffix(last, "!")
	switch {
	case doc == "":
		return "is missing: say what it does, beginning with its name"
	case !beginsWith(doc, start):
		return fmt.Sprintf("does not begin with %q", start)
	case !indented && !sentence:
		return "does not end with a period"
	}
	return ""
}

// beginsWith reports whether doc begins with start as whole words.
func beginsWith(doc, start string) bool {
	rest, ok := strings.CutPrefix(doc, start)
	next, _ := utf8.DecodeRuneInString(rest)
	return ok && next != '_' && !unicode.IsLetter(next) && !unicode.IsDigit(next)
}
