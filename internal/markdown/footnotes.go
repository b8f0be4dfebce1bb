package markdown

import (
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// maxFootnotes bounds the footnotes and references of a document: the parser looks for each in a list.
const maxFootnotes = 2_000

// footnoteParser is sharedParser with footnotes, which a chat does not have.
var footnoteParser = sync.OnceValue(func() parser.Parser {
	key := parser.NewContextKey()
	return goldmark.New(markdownExtensions(), goldmark.WithParserOptions(
		parser.WithParagraphTransformers(util.Prioritized(costGuard{}, 1)),
		parser.WithBlockParsers(util.Prioritized(footnoteBlocks{extension.NewFootnoteBlockParser(), key}, 999)),
		parser.WithInlineParsers(util.Prioritized(extension.NewFootnoteParser(), 101)),
		parser.WithASTTransformers(util.Prioritized(extension.NewFootnoteASTTransformer(), 999), util.Prioritized(unusedFootnotes{key}, 1000)),
	)).Parser()
})

// parseFootnotes is parseTree with footnotes: a kindNote in the place of each reference, and one for each
// footnote at the end, with its text.
func parseFootnotes(s string) *node {
	if strings.Count(s, "[^") > maxFootnotes {
		return parseTree(s)
	}
	return convertTree(footnoteParser(), s)
}

// footnoteBlocks is the library's parser of footnotes; it also notes which there are, under key.
type footnoteBlocks struct {
	parser.BlockParser
	key parser.ContextKey
}

// Open begins a footnote.
func (b footnoteBlocks) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	n, state := b.BlockParser.Open(parent, reader, pc)
	if note, ok := n.(*east.Footnote); ok {
		all, _ := pc.Get(b.key).([]*east.Footnote)
		pc.Set(b.key, append(all, note))
	}
	return n, state
}

// unusedFootnotes puts footnotes to which nothing refers at the end of the document. The library drops them.
type unusedFootnotes struct{ key parser.ContextKey }

// Transform adds the footnotes.
func (u unusedFootnotes) Transform(doc *ast.Document, _ text.Reader, pc parser.Context) {
	all, _ := pc.Get(u.key).([]*east.Footnote)
	for _, note := range all {
		if note.Index < 0 {
			doc.AppendChild(doc, note)
		}
	}
}

// footnotes converts the footnotes to which the document refers.
func (c *converter) footnotes(list *east.FootnoteList) (notes []*node) {
	for n := list.FirstChild(); n != nil; n = n.NextSibling() {
		if note, ok := n.(*east.Footnote); ok {
			notes = append(notes, &node{kind: kindNote, number: note.Index, children: c.blocks(note)})
		}
	}
	return notes
}

// behindText puts a text before the content of blocks.
func behindText(text string, blocks []*node) []*node {
	mark := &node{kind: kindText, text: text}
	if len(blocks) == 0 || blocks[0].kind != kindParagraph {
		return append([]*node{{kind: kindParagraph, children: []*node{mark}}}, blocks...)
	}
	first := *blocks[0]
	first.children = append([]*node{mark}, first.children...)
	return append([]*node{&first}, blocks[1:]...)
}
