package markdown

import (
	"bufio"
	"bytes"
	"html"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	ghtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/yuin/goldmark"
)

// converter converts the parser's tree into ours.
type converter struct {
	source     []byte
	usedLabels map[string]bool // labels of link definitions in use
	unused     *node           // last paragraph of unused link definitions
	depth      int
}

// sharedParser parses all texts. It keeps no state, and creating one takes longer than parsing
// an answer.
var sharedParser = sync.OnceValue(func() parser.Parser {
	return goldmark.New(markdownExtensions(), goldmark.WithParserOptions(parser.WithParagraphTransformers(util.Prioritized(costGuard{}, 1)))).Parser()
})

// markdownExtensions are the extensions that all texts have.
func markdownExtensions() goldmark.Option {
	return goldmark.WithExtensions(extension.Strikethrough, extension.Table, extension.Linkify, extension.TaskList, wideEmphasis{})
}

func parseTree(s string) *node { return convertTree(sharedParser(), s) }

// convertTree parses a text and converts the parser's tree.
func convertTree(p parser.Parser, s string) *node {
	source := []byte(s)
	root := p.Parse(text.NewReader(source))
	c := &converter{source: source, usedLabels: map[string]bool{}}
	c.collectReferences(root)
	return &node{kind: kindDocument, children: c.blocks(root)}
}

// collectReferences records which link definitions are used.
func (c *converter) collectReferences(n ast.Node) {
	switch n := n.(type) {
	case *ast.Link:
		c.recordUse(n.Reference)
	case *ast.Image:
		c.recordUse(n.Reference)
	}
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		c.collectReferences(child)
	}
}

func (c *converter) recordUse(r *ast.ReferenceLink) {
	if r != nil {
		c.usedLabels[util.ToLinkReference(r.Value)] = true
	}
}

// blocks converts the block children of n. Containers nested too deeply are dissolved into their
// parent.
func (c *converter) blocks(n ast.Node) []*node {
	c.depth++
	defer func() { c.depth-- }()
	var out []*node
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		switch child := child.(type) {
		case *ast.LinkReferenceDefinition:
			out = c.appendDefinition(out, child)
		case *ast.Blockquote:
			if inner := c.blocks(child); c.depth > maxNesting {
				out = append(out, inner...)
			} else {
				out = append(out, &node{kind: kindQuote, children: inner})
			}
		case *east.FootnoteList:
			out = append(out, c.footnotes(child)...)
		case *east.Footnote:
			out = append(out, behindText("[^"+string(child.Ref)+"]: ", c.blocks(child))...)
		default:
			out = append(out, c.block(child))
		}
	}
	return out
}

func (c *converter) block(n ast.Node) *node {
	switch n := n.(type) {
	case *ast.Heading:
		return &node{kind: kindHeading, level: n.Level, children: c.inlines(n)}
	case *ast.FencedCodeBlock:
		return &node{kind: kindCodeBlock, text: c.lines(n), lang: languageName.FindString(string(n.Language(c.source)))}
	case *ast.CodeBlock:
		return &node{kind: kindCodeBlock, text: c.lines(n)}
	case *ast.HTMLBlock:
		s := c.lines(n)
		if n.HasClosure() {
			s += string(n.ClosureLine.Value(c.source))
		}
		return verbatimParagraph(s)
	case *ast.ThematicBreak:
		return &node{kind: kindRule}
	case *ast.List:
		return c.list(n)
	case *east.Table:
		return c.table(n)
	}
	return &node{kind: kindParagraph, children: c.inlines(n)}
}

func (c *converter) lines(n ast.Node) string { return string(n.Lines().Value(c.source)) }

// verbatimParagraph makes one paragraph of s.
func verbatimParagraph(s string) *node {
	p := &node{kind: kindParagraph}
	for _, paragraph := range plainTree(s).children {
		if len(p.children) > 0 {
			p.children = append(p.children, &node{kind: kindBreak})
		}
		p.children = append(p.children, paragraph.children...)
	}
	return p
}

// appendDefinition keeps a link definition that no link uses. The parser
// drops it from the text, but a model may list its sources in this way.
func (c *converter) appendDefinition(out []*node, n *ast.LinkReferenceDefinition) []*node {
	if c.usedLabels[util.ToLinkReference(n.Label)] {
		return out
	}
	url := linkURL(n.Destination)
	line := []*node{
		{kind: kindText, text: "[" + string(n.Label) + "]: "},
		{kind: kindLink, url: url, isAutolink: true, children: []*node{{kind: kindText, text: url}}},
	}
	if len(n.Title) > 0 {
		line = append(line, &node{kind: kindText, text: ` "` + c.unescape(n.Title) + `"`})
	}
	if len(out) > 0 && out[len(out)-1] == c.unused {
		c.unused.children = append(append(c.unused.children, &node{kind: kindBreak}), line...)
		return out
	}
	c.unused = &node{kind: kindParagraph, children: line}
	return append(out, c.unused)
}

func (c *converter) list(n *ast.List) *node {
	list := &node{kind: kindList, ordered: n.IsOrdered()}
	same := true // all items have the same number, as lists are often written
	for i, child := 0, n.FirstChild(); child != nil; i, child = i+1, child.NextSibling() {
		item := &node{kind: kindItem, checkBox: checkBox(child), number: n.Start + i}
		if own, ok := c.writtenNumber(child); ok {
			item.number, same = own, same && own == n.Start
		}
		item.children = c.blocks(child)
		list.children = append(list.children, item)
	}
	if same {
		for i, item := range list.children {
			item.number = n.Start + i
		}
	}
	return list
}

// writtenNumber returns the number written before an item. The parser counts from the first
// number, which would reverse a list that counts down, and lose the numbers of a partial list.
func (c *converter) writtenNumber(item ast.Node) (int, bool) {
	at := item.Pos()
	if at < 0 || at >= len(c.source) {
		return 0, false
	}
	n, err := strconv.Atoi(string(itemNumber.Find(c.source[at:min(len(c.source), at+maxDigits)])))
	return n, err == nil
}

// maxDigits bounds the digits of an item's number.
const maxDigits = 9

var itemNumber = regexp.MustCompile(`^[0-9]+`)

func checkBox(item ast.Node) string {
	first := item.FirstChild()
	if first == nil {
		return ""
	}
	task, ok := first.FirstChild().(*east.TaskCheckBox)
	switch {
	case !ok:
		return ""
	case task.IsChecked:
		return "☑"
	}
	return "☐"
}

func (c *converter) table(n *east.Table) *node {
	table := &node{kind: kindTable, align: n.Alignments}
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		r := &node{kind: kindRow}
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			r.children = append(r.children, &node{kind: kindCell, children: c.inlines(cell)})
		}
		if last := row.LastChild(); last != nil && len(r.children) == len(n.Alignments) {
			cell := r.children[len(r.children)-1]
			cell.children = append(cell.children, c.extraCells(last)...)
		}
		table.children = append(table.children, r)
	}
	return table
}

// extraCells returns the text after the last cell of a row. The parser drops it, but extra cells
// usually come from a literal bar, in code such as a || b.
func (c *converter) extraCells(last ast.Node) []*node {
	if last.Lines().Len() == 0 {
		return nil
	}
	rest, _, _ := bytes.Cut(c.source[last.Lines().At(0).Stop:], []byte("\n"))
	rest = bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("|"))
	if len(bytes.Trim(rest, "| \t")) == 0 {
		return nil
	}
	return []*node{{kind: kindText, text: " " + string(bytes.TrimSpace(rest))}}
}

// inlines converts the inline children of n and joins adjacent texts.
func (c *converter) inlines(n ast.Node) []*node {
	c.depth++
	defer func() { c.depth-- }()
	var (
		out     []*node
		pending strings.Builder
	)
	flush := func() {
		if pending.Len() > 0 {
			out = append(out, &node{kind: kindText, text: pending.String()})
			pending.Reset()
		}
	}
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		switch child := child.(type) {
		case *ast.Text:
			pending.WriteString(c.unescape(child.Segment.Value(c.source)))
			if child.SoftLineBreak() || child.HardLineBreak() {
				flush()
				out = append(out, &node{kind: kindBreak})
			}
		case *ast.String:
			pending.Write(child.Value)
		case *ast.RawHTML:
			pending.WriteString(strings.ReplaceAll(string(child.Segments.Value(c.source)), "\n", " "))
		case *east.TaskCheckBox:
		default:
			flush()
			out = append(out, c.inline(child)...)
		}
	}
	flush()
	return out
}

// inline converts an inline node that has a structure.
func (c *converter) inline(n ast.Node) []*node {
	out := &node{}
	switch n := n.(type) {
	case *ast.CodeSpan:
		return []*node{{kind: kindCode, text: c.codeText(n)}}
	case *east.FootnoteLink:
		return []*node{{kind: kindNote, number: n.Index}}
	case *ast.AutoLink:
		return []*node{autoLink(n, c.source)}
	case *ast.Emphasis:
		out.kind = kindEmphasis
		if n.Level == 2 {
			out.kind = kindStrong
		}
	case *east.Strikethrough:
		out.kind = kindStrike
	case *ast.Link:
		out.kind, out.url = kindLink, linkURL(n.Destination)
	case *ast.Image:
		out.kind, out.url = kindLink, linkURL(n.Destination)
		if out.children = c.inlines(n); len(out.children) == 0 {
			out.children = []*node{{kind: kindText, text: "image"}}
		}
		return []*node{out}
	default:
		return c.inlines(n)
	}
	out.children = c.inlines(n)
	if out.kind == kindLink && isBlank(out.flatText(false)) {
		out.children, out.isAutolink = []*node{{kind: kindText, text: out.url}}, true
	}
	if c.depth > maxNesting && out.kind != kindLink {
		return out.children
	}
	return []*node{out}
}

// codeText returns the text of a code span on one line.
func (c *converter) codeText(n ast.Node) string {
	var b strings.Builder
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		if t, ok := child.(*ast.Text); ok {
			b.Write(t.Segment.Value(c.source))
		}
	}
	return strings.ReplaceAll(b.String(), "\n", " ")
}

func autoLink(n *ast.AutoLink, source []byte) *node {
	label, url := string(n.Label(source)), string(n.URL(source))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(url), "mailto:") {
		url = "mailto:" + url
	}
	return &node{
		kind: kindLink, url: normalize(string(util.URLEscape([]byte(url), false))), isAutolink: true,
		children: []*node{{kind: kindText, text: label}},
	}
}

// unescape replaces backslash escapes and character references. The HTML renderer's writer does
// both, so its escaping is reverted.
func (c *converter) unescape(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 && bytes.IndexByte(raw, '&') < 0 {
		return string(raw)
	}
	var b strings.Builder
	w := bufio.NewWriter(&b)
	ghtml.DefaultWriter.Write(w, raw)
	_ = w.Flush() // a strings.Builder does not fail
	return normalize(html.UnescapeString(b.String()))
}

// linkURL returns a link's destination, percent-encoded if necessary.
func linkURL(destination []byte) string {
	return normalize(string(util.URLEscape(destination, true)))
}

// languageName matches names of languages that are safe in an attribute.
var languageName = regexp.MustCompile(`^[A-Za-z0-9+#_.-]{1,32}$`)
