package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// textsPage shows all sentences that people read in chats, so that they are read side by side.
// ONECLAW_UPDATE=1 writes it.
const textsPage = "testdata/texts.md"

const textsHead = `# What the bot says

All sentences that people read in chats, by package; %s stands for a value. A test compares this page with the program, and ` + "`ONECLAW_UPDATE=1 go test ./internal/house -run Texts`" + ` writes it. If you change a sentence, read its neighbours here: keep it short and active, give administrators the cause, and blame no one.
`

// speaking are the packages whose sentences go to people in chats.
var speaking = []string{
	"bridge", "bridge/access", "bridge/interact", "bridge/outbox", "bridge/privacy", "bridge/turn", "bridge/why",
	"internal/admin/signin", "internal/budget", "internal/connections", "internal/hooks", "internal/models", "internal/personal",
	"slack", "telegram",
}

func TestTextsPageShowsWhatPeopleRead(t *testing.T) {
	t.Parallel()
	m, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	page.WriteString(textsHead)
	for _, dir := range speaking {
		found := map[string]bool{}
		for _, s := range m.sources {
			if s.dir == dir && !s.test {
				for _, text := range sentences(s.File) {
					found[text] = true
				}
			}
		}
		if len(found) == 0 {
			t.Errorf("%s says nothing: take it out of the list", dir)
			continue
		}
		fmt.Fprintf(&page, "\n## %s\n\n", path.Clean(dir))
		for _, text := range slices.Sorted(maps.Keys(found)) {
			fmt.Fprintf(&page, "- %s\n", strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(text), "\n", " ⏎ "), "|", `\|`))
		}
	}
	if os.Getenv("ONECLAW_UPDATE") != "" {
		if err := os.WriteFile(textsPage, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(textsPage)
	if err != nil || string(got) != page.String() {
		t.Errorf("testdata/texts.md is not what the program says (%v): read the new sentences beside the others, and write the page with ONECLAW_UPDATE=1 go test ./internal/house -run Texts", err)
	}
}

// sentences are the texts of a file that are sentences and go neither to the log nor into errors.
func sentences(f *ast.File) []string {
	var found []string
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && notForPeople(call) {
			return false
		}
		switch n := n.(type) {
		case *ast.ImportSpec, *ast.Field:
			return false // tags of fields
		case *ast.BinaryExpr:
			if text, ok := joined(n); ok {
				found = append(found, text)
				return false
			}
		case *ast.BasicLit:
			if text, ok := literal(n); ok {
				found = append(found, text)
			}
		}
		return true
	})
	return slices.DeleteFunc(found, func(text string) bool { return !isSentence(text) })
}

// notForPeople reports calls that log, make errors of the program or compile patterns.
func notForPeople(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch f.Sel.Name {
	case "Debug", "Info", "Warn", "Error", "Errorf", "MustCompile", "Compile":
		return true
	case "New":
		x, ok := f.X.(*ast.Ident)
		return ok && x.Name == "errors"
	}
	return false
}

func literal(n ast.Expr) (string, bool) {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// joined is a text of literals that + joins; what else stands between them is "…".
func joined(n ast.Expr) (string, bool) {
	if text, ok := literal(n); ok {
		return text, true
	}
	sum, ok := n.(*ast.BinaryExpr)
	if !ok || sum.Op != token.ADD {
		return "", false
	}
	left, known := joined(sum.X)
	right, also := joined(sum.Y)
	if !known && !also {
		return "", false
	}
	if !known {
		left = "…"
	}
	if !also {
		right = "…"
	}
	return left + right, true
}

// isSentence reports whether a text begins like a sentence and has three words.
func isSentence(text string) bool {
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(text, "*_`“ \n"))
	return len(strings.Fields(text)) >= 3 && unicode.IsUpper(first) && !strings.HasPrefix(text, "GET ") && !strings.HasPrefix(text, "POST ")
}
