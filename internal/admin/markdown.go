package admin

import (
	"html/template"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/util"
)

// newCardMarkdown returns what renders the Markdown that cards are written in. Links, pictures and HTML, which the
// text of a card never has, are shown as they are: nothing in a question leads away from the page.
func newCardMarkdown() goldmark.Markdown {
	return goldmark.New(goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewListParser(), 1), util.Prioritized(parser.NewListItemParser(), 2),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 3), util.Prioritized(parser.NewParagraphParser(), 4),
		),
		parser.WithInlineParsers(util.Prioritized(parser.NewCodeSpanParser(), 1), util.Prioritized(parser.NewEmphasisParser(), 2)),
	)))
}

// masks reports whether a part of a card's text is masked on the page.
func (p *Pages) masks(text string) bool {
	plain := withoutEscapes(text)
	return p.Redact(text) != text || p.Redact(plain) != plain
}

// withoutEscapes returns Markdown without the backslashes that can stand in the middle of a secret.
func withoutEscapes(markdown string) string { return strings.ReplaceAll(markdown, `\`, "") }

// renderMarkdown returns the text of a card as HTML, with secrets masked.
func (p *Pages) renderMarkdown(text string) template.HTML {
	text = p.Redact(text)
	var out strings.Builder
	err := p.markdown.Convert([]byte(text), &out)
	if err != nil || p.masks(text) {
		text = p.Redact(withoutEscapes(text))
		return template.HTML(template.HTMLEscapeString(text)) //nolint:gosec // It is escaped.
	}
	return template.HTML(out.String()) //nolint:gosec // The parser makes no element with an address, and no HTML of the text.
}
