package house

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// module is the source tree as the checks see it.
type module struct {
	path    string // the module path of go.mod
	fset    *token.FileSet
	sources []*source
	texts   []text
	names   []string // all files, binary ones too
}

// source is a Go file.
type source struct {
	*ast.File
	name string // slash-separated, from the root
	dir  string
	test bool
}

// text is any file that is not binary.
type text struct {
	name string
	data []byte
}

// finding is one place that breaks a rule. Subject is the name that an exception
// would be made for: a function, a type or a variable; empty for a whole file.
type finding struct {
	file    string
	line    int
	subject string
	message string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %s", f.file, f.line, f.message)
}

// load reads everything below root that .gitignore does not leave out.
func load(root fs.FS) (*module, error) {
	ignored, err := ignorePatterns(root)
	if err != nil {
		return nil, err
	}
	m := &module{fset: token.NewFileSet()}
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && isIgnored(ignored, name):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		return m.add(root, name)
	})
	if err != nil {
		return nil, err
	}
	if m.path == "" {
		return nil, errors.New("go.mod with a module line is missing")
	}
	return m, nil
}

func (m *module) add(root fs.FS, name string) error {
	m.names = append(m.names, name)
	data, err := fs.ReadFile(root, name)
	if err != nil || bytes.IndexByte(data, 0) >= 0 {
		return err
	}
	m.texts = append(m.texts, text{name, data})
	if name == "go.mod" {
		for line := range strings.Lines(string(data)) {
			if rest, ok := strings.CutPrefix(line, "module "); ok {
				m.path = strings.TrimSpace(rest)
			}
		}
	}
	if path.Ext(name) != ".go" || slices.Contains(strings.Split(name, "/"), "testdata") {
		return nil
	}
	file, err := parser.ParseFile(m.fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	m.sources = append(m.sources, &source{
		File: file,
		name: name,
		dir:  path.Dir(name),
		test: strings.HasSuffix(name, "_test.go"),
	})
	return nil
}

func (m *module) at(pos token.Pos, subject, format string, args ...any) finding {
	p := m.fset.Position(pos)
	return finding{p.Filename, p.Line, subject, fmt.Sprintf(format, args...)}
}

// program yields the files that are part of the program, not of its tests.
func (m *module) program(yield func(*source) bool) {
	for _, s := range m.sources {
		if !s.test && !yield(s) {
			return
		}
	}
}

// ignorePatterns reads the simple forms of .gitignore: a name or pattern per line,
// with a slash in front for the root alone.
func ignorePatterns(root fs.FS) ([]string, error) {
	patterns := []string{"/.git"}
	data, err := fs.ReadFile(root, ".gitignore")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(strings.TrimSpace(line), "/")
		if line == "" || line[0] == '#' {
			continue
		}
		if _, err := path.Match(line, ""); err != nil || line[0] == '!' {
			return nil, fmt.Errorf(".gitignore: %q is more than the house tests understand", line)
		}
		patterns = append(patterns, line)
	}
	return patterns, nil
}

func isIgnored(patterns []string, name string) bool {
	for _, p := range patterns {
		subject := path.Base(name)
		if strings.Contains(p, "/") {
			p, subject = strings.TrimPrefix(p, "/"), name
		}
		if ok, _ := path.Match(p, subject); ok {
			return true
		}
	}
	return false
}

// localName is the name by which a file refers to a package, empty where it does
// not import it.
func (s *source) localName(importPath string) string {
	for _, spec := range s.Imports {
		if strings.Trim(spec.Path.Value, `"`) != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// selects reports whether e is name of the package importPath.
func (s *source) selects(e ast.Expr, importPath, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name != "" && id.Name == s.localName(importPath)
}

// funcName names a function as an exception would: F, or T.F for a method.
func funcName(fn *ast.FuncDecl) string {
	if t := receiver(fn); t != "" {
		return t + "." + fn.Name.Name
	}
	return fn.Name.Name
}

// receiver is the name of the type a method belongs to, empty for a function.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return ""
	}
	switch t := ast.Unparen(baseType(fn.Recv.List[0].Type)).(type) {
	case *ast.Ident:
		return t.Name
	default:
		return ""
	}
}

// baseType strips the pointer and the type parameters of a receiver.
func baseType(e ast.Expr) ast.Expr {
	switch t := e.(type) {
	case *ast.StarExpr:
		return baseType(t.X)
	case *ast.IndexExpr:
		return baseType(t.X)
	case *ast.IndexListExpr:
		return baseType(t.X)
	}
	return e
}
