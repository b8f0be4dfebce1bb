// Package readable converts web pages and mails to Markdown.
//
// It leaves out what surrounds the content of a page (menus, scripts, forms), and makes links
// absolute. Pages are untrusted, and the tree of a small one can take gigabytes: a [Reader]
// reads two at a time, each in a separate process (package sandbox) with bounded memory, which
// runs [Serve].
package readable

import (
	"bytes"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"

	"codeberg.org/readeck/go-readability/v2"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/marker"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/strikethrough"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	// maxNodes bounds the nodes of a page: the steps after parsing take time in proportion to them
	// and cannot be interrupted.
	maxNodes = 200_000
	// minArticleChars and minArticleShare decide when an article is too small a part of its page.
	minArticleChars = 200
	minArticleShare = 10
	// maxLists bounds the nesting of lists and quotes, and maxCells the columns that a table cell
	// spans. Each line of a list costs its depth, and a cell becomes as many as it spans: a small
	// page could become a huge text.
	maxLists = 12
	maxCells = 100
	// maxEffort bounds the bytes of text times their depth: the search for the article reads the
	// text of each part of a page.
	maxEffort = 200_000_000
)

// convertPage returns the main content of a page in UTF-8 as Markdown, with links relative to
// its address; "" if the page has no text. The error says why the page cannot be converted.
func convertPage(page io.Reader, at *url.URL) (string, error) {
	doc, err := parse(page, isClutter)
	if err != nil {
		return "", err
	}
	title := strings.Join(strings.Fields(textOf(find(doc, func(n *html.Node) bool { return n.DataAtom == atom.Title }))), " ")
	out, err := convert(findArticle(doc, at))
	if out != "" && title != "" && !strings.HasPrefix(out, "# ") {
		out = "# " + title + "\n\n" + out
	}
	return out, err
}

// Convert returns the visible text of a document in UTF-8, such as a mail, as Markdown. It is
// for confined processes such as that of [Serve].
func Convert(document io.Reader) (string, error) {
	doc, err := parse(document, func(n *html.Node) bool { return n.DataAtom == atom.Head || isHidden(n) })
	if err != nil {
		return "", err
	}
	return convert(doc)
}

// parse parses a document and removes unwanted nodes.
func parse(document io.Reader, unwanted func(*html.Node) bool) (*html.Node, error) {
	doc, err := html.Parse(document)
	if err != nil {
		return nil, err
	}
	parts := 0
	for range doc.Descendants() {
		parts++
	}
	if parts > maxNodes {
		return nil, fmt.Errorf("it has %d parts, more than the limit of %d", parts, maxNodes)
	}
	spellOut(doc)
	remove(doc, unwanted)
	boundCosts(doc, 0)
	return doc, nil
}

// convert converts what is left of a document to Markdown.
func convert(content *html.Node) (string, error) {
	convertTables(content)
	md, err := newConverter().ConvertNode(content)
	return strings.TrimSpace(string(md)), err
}

// newConverter makes a converter that does not escape Markdown characters: a model reads it
// better without, and escaping takes quadratic time.
func newConverter() *converter.Converter {
	c := converter.NewConverter(
		converter.WithEscapeMode(converter.EscapeModeDisabled),
		converter.WithPlugins(
			base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false)), strikethrough.NewStrikethroughPlugin(),
			// Padding cells costs as much as the longest of a column in each row.
			table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal)),
		),
	)
	// The library escapes < and > even in this mode, but leaves alone what already looks like an escape.
	c.Register.TextTransformer(func(_ converter.Context, s string) string { return strings.ReplaceAll(s, "&", "&amp;") }, converter.PriorityEarly)
	c.Register.TextTransformer(func(_ converter.Context, s string) string { return html.UnescapeString(s) }, converter.PriorityLate)
	c.Register.TagType(atom.Summary.String(), converter.TagTypeBlock, converter.PriorityEarly)
	c.Register.RendererFor(atom.Td.String(), converter.TagTypeBlock, renderCell, converter.PriorityEarly)
	c.Register.RendererFor(atom.Th.String(), converter.TagTypeBlock, renderCell, converter.PriorityEarly)
	c.Register.RendererFor(atom.Blockquote.String(), converter.TagTypeBlock, renderQuote, converter.PriorityEarly)
	for i, tag := range headings {
		c.Register.RendererFor(tag.String(), converter.TagTypeBlock, headingRenderer(i+1), converter.PriorityEarly)
	}
	return c
}

var headings = [...]atom.Atom{atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6}

// headingRenderer returns a renderer of headings. The library's own takes the character before a
// final # for an escape, which does not exist without escaping: "C#" loses its C, "#" alone panics.
func headingRenderer(level int) converter.HandleRenderFunc {
	return func(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
		var content bytes.Buffer
		ctx.RenderChildNodes(ctx, &content, n)
		if words := bytes.Fields(content.Bytes()); len(words) > 0 {
			_, _ = fmt.Fprintf(w, "\n\n%s %s\n\n", strings.Repeat("#", level), bytes.Join(words, []byte(" ")))
		}
		return converter.RenderSuccess
	}
}

// blankLines matches more than one empty line.
var blankLines = regexp.MustCompile(`\n{3,}`)

// renderQuote writes a quote. The library's own leaves lines of code in it unmarked.
func renderQuote(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	var content bytes.Buffer
	ctx.RenderChildNodes(ctx, &content, n)
	if lines := bytes.TrimSpace(blankLines.ReplaceAll(content.Bytes(), []byte("\n\n"))); len(lines) > 0 {
		within := marker.BytesMarkerCodeBlockNewline
		lines = bytes.ReplaceAll(lines, within, append(bytes.Clone(within), "> "...))
		_, _ = fmt.Fprintf(w, "\n\n> %s\n\n", bytes.ReplaceAll(lines, []byte("\n"), []byte("\n> ")))
	}
	return converter.RenderSuccess
}

// renderCell writes the content of a cell on one line.
func renderCell(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	var content bytes.Buffer
	ctx.RenderChildNodes(ctx, &content, n)
	var lines []string
	for line := range strings.Lines(content.String()) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	_, _ = fmt.Fprint(w, strings.Join(lines, "<br>"))
	return converter.RenderSuccess
}

// boundCosts dissolves lists and quotes that are nested
// too deeply. depth counts the lists and quotes around n.
func boundCosts(n *html.Node, depth int) {
	switch n.DataAtom {
	case atom.Ul, atom.Ol, atom.Blockquote:
		if depth++; depth > maxLists {
			n.DataAtom, n.Data = atom.Div, "div"
		}
	}
	for c := range n.ChildNodes() {
		boundCosts(c, depth)
	}
}

// escapeCells escapes characters that look like the border of a cell.
func escapeCells(n *html.Node, inCell bool) {
	inCell = inCell || n.DataAtom == atom.Td || n.DataAtom == atom.Th
	if inCell && n.Type == html.TextNode {
		n.Data = strings.ReplaceAll(n.Data, "|", `\|`)
	}
	for c := range n.ChildNodes() {
		escapeCells(c, inCell)
	}
}

// findArticle finds the main content of a page or, if that is unclear or very small, the page
// without its surroundings.
func findArticle(doc *html.Node, at *url.URL) *html.Node {
	if searchCost(doc, 0) > maxEffort {
		return mainPart(doc, at)
	}
	parser := readability.NewParser()
	parser.KeepClasses = true // for the languages of code blocks
	parser.DisableJSONLD = true
	found, err := parser.ParseDocument(doc, at)
	rest := mainPart(doc, at)
	if err != nil || found.Node == nil {
		return rest
	}
	if n := len(textOf(found.Node)); n < minArticleChars && n*minArticleShare < len(textOf(rest)) {
		return rest
	}
	return found.Node
}

// mainPart returns the article, the main part or the body of a page, with absolute links.
func mainPart(doc *html.Node, at *url.URL) *html.Node {
	remove(doc, func(n *html.Node) bool { return n.DataAtom == atom.Header })
	node := doc
	for _, is := range []func(*html.Node) bool{
		func(n *html.Node) bool { return n.DataAtom == atom.Article },
		func(n *html.Node) bool { return n.DataAtom == atom.Main },
		func(n *html.Node) bool { return attribute(n, "role") == "main" },
		func(n *html.Node) bool { return n.DataAtom == atom.Body },
	} {
		if found := find(doc, is); found != nil && strings.TrimSpace(textOf(found)) != "" {
			node = found
			break
		}
	}
	resolveLinks(node, at)
	return node
}

// isClutter reports whether a node has no content for a reader of text, or surrounds it.
func isClutter(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Nav, atom.Footer, atom.Aside, atom.Button:
		return true
	}
	return isHidden(n)
}

// isHidden reports whether a node is invisible.
func isHidden(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Noscript, atom.Svg, atom.Iframe, atom.Template, atom.Object, atom.Embed,
		atom.Input, atom.Select, atom.Textarea:
		return true
	case atom.Img, atom.Source:
		return isDataURI(n)
	}
	return n.Type == html.CommentNode
}

func remove(n *html.Node, is func(*html.Node) bool) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if is(c) {
			n.RemoveChild(c)
		} else {
			remove(c, is)
		}
		c = next
	}
}

func find(n *html.Node, is func(*html.Node) bool) *html.Node {
	for d := range n.Descendants() {
		if is(d) {
			return d
		}
	}
	return nil
}

// textOf returns the text below a node, which may be nil.
func textOf(n *html.Node) string {
	if n == nil {
		return ""
	}
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

func searchCost(n *html.Node, depth int) int {
	if n.Type == html.TextNode {
		return depth * len(n.Data)
	}
	total := 0
	for c := range n.ChildNodes() {
		total += searchCost(c, depth+1)
	}
	return total
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// resolveLinks makes links and picture addresses absolute.
func resolveLinks(n *html.Node, at *url.URL) {
	for d := range n.Descendants() {
		for i, a := range d.Attr {
			if a.Key != "href" && a.Key != "src" {
				continue
			}
			if ref, err := at.Parse(strings.TrimSpace(a.Val)); err == nil {
				d.Attr[i].Val = ref.String()
			}
		}
	}
}
