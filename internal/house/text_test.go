package house

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	textm "github.com/yuin/goldmark/text"
)

// foreign are words that name a machine or papers outside of this repository, cut
// in two so that this file does not contain them.
var foreign = [][2]string{
	{"/wor", "k/"},
	{"../sha", "red"},
	{"des", "ign.md"},
	{"accep", "tance.md"},
	{"tool", "search.md"},
	{"proxy.gol", "ang.org"},
	{"sum.gol", "ang.org"},
	{"registry.np", "mjs.org"},
	{"py", "pi.org"},
	{"files.python", "hosted.org"},
	{"static.crat", "es.io"},
	{"deb.deb", "ian.org"},
}

var (
	headingSigns = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	htmlTarget   = regexp.MustCompile(`(?:src|href)="([^"]+)"`)
)

func checkForeignWords(m *module) []finding {
	var words []string
	for _, w := range foreign {
		words = append(words, regexp.QuoteMeta(w[0]+w[1]))
	}
	pattern := regexp.MustCompile(`(?:^|[^\w.-])(` + strings.Join(words, "|") + `)`)
	var found []finding
	for _, t := range m.texts {
		for i, line := range bytes.Split(t.data, []byte("\n")) {
			if hit := pattern.FindSubmatch(line); hit != nil {
				found = append(found, finding{t.name, i + 1, "", fmt.Sprintf("%q is known only where this was written: say it without", hit[1])})
			}
		}
	}
	return found
}

// checkLinks follows every link of a Markdown file that leads into the repository.
func checkLinks(m *module) []finding {
	files := map[string][]byte{}
	for _, t := range m.texts {
		files[t.name] = t.data
	}
	var found []finding
	for _, t := range m.texts {
		if path.Ext(t.name) != ".md" || slices.Contains(strings.Split(t.name, "/"), "testdata") {
			continue
		}
		eachLink(t.data, func(target string, offset int) {
			if fault := linkFault(m, files, t.name, target); fault != "" {
				line := 1 + bytes.Count(t.data[:offset], []byte("\n"))
				found = append(found, finding{t.name, line, "", fmt.Sprintf("link to %s: %s", target, fault)})
			}
		})
	}
	return found
}

func linkFault(m *module, files map[string][]byte, from, target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return "is not an address"
	}
	if u.IsAbs() || u.Host != "" {
		return ""
	}
	name := from
	if u.Path != "" {
		name = path.Join(path.Dir(from), u.Path)
	}
	if strings.HasPrefix(u.Path, "/") || !m.has(name) {
		return "there is no such file here"
	}
	if u.Fragment != "" && path.Ext(name) == ".md" && !slices.Contains(anchors(files[name]), u.Fragment) {
		return "there is no such heading"
	}
	return ""
}

// has reports whether there is such a file or folder.
func (m *module) has(name string) bool {
	return fs.ValidPath(name) && (slices.Contains(m.names, name) || slices.ContainsFunc(m.names, func(n string) bool {
		return strings.HasPrefix(n, name+"/")
	}))
}

func parseMarkdown(data []byte) ast.Node {
	return goldmark.DefaultParser().Parse(textm.NewReader(data))
}

// eachLink calls f with each target and where in data it is about.
func eachLink(data []byte, f func(target string, offset int)) {
	offset := 0
	_ = ast.Walk(parseMarkdown(data), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			offset = n.Segment.Start
		case *ast.Link:
			f(string(n.Destination), start(n, offset))
		case *ast.Image:
			f(string(n.Destination), start(n, offset))
		case *ast.RawHTML:
			htmlLinks(data, n.Segments, f)
		case *ast.HTMLBlock:
			htmlLinks(data, n.Lines(), f)
		}
		return ast.WalkContinue, nil
	})
}

// start is where the text of a link begins, or the text before it.
func start(n ast.Node, before int) int {
	if t, ok := n.FirstChild().(*ast.Text); ok {
		return t.Segment.Start
	}
	return before
}

func htmlLinks(data []byte, segments *textm.Segments, f func(target string, offset int)) {
	for i := range segments.Len() {
		s := segments.At(i)
		for _, hit := range htmlTarget.FindAllSubmatch(s.Value(data), -1) {
			f(string(hit[1]), s.Start)
		}
	}
}

// anchors are the names that forges give to headings: lower case, no punctuation,
// a hyphen for a space, and a number behind the second of the same name.
func anchors(data []byte) []string {
	var names []string
	seen := map[string]int{}
	_ = ast.Walk(parseMarkdown(data), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if h, ok := n.(*ast.Heading); ok && entering {
			name := headingSigns.ReplaceAllString(strings.ToLower(plain(h, data)), "")
			name = strings.ReplaceAll(name, " ", "-")
			if seen[name]++; seen[name] > 1 {
				name = fmt.Sprintf("%s-%d", name, seen[name]-1)
			}
			names = append(names, name)
		}
		return ast.WalkContinue, nil
	})
	return names
}

// plain is the text below a node without its marks.
func plain(n ast.Node, data []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(data))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}
