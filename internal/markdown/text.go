package markdown

import "strings"

// Text returns the text of a document as a chat shows it, a line for each block, and behind it the addresses of its
// links, which a chat keeps beside their texts.
func (d *Document) Text() string {
	var text, links strings.Builder
	var walk func(n *node)
	walk = func(n *node) {
		if len(n.children) == 0 {
			text.WriteString(lineBreak.ReplaceAllString(n.flatText(false), "\n"))
		}
		for _, c := range n.children {
			walk(c)
		}
		if n.kind < kindText {
			text.WriteByte('\n')
		}
		if n.kind == kindLink && !n.isAutolink {
			links.WriteString(n.url + "\n")
		}
	}
	walk(d.root)
	return text.String() + links.String()
}
