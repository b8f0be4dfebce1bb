package markdown

import "strings"

// Speech returns the text of a document as it is read aloud, one line for each block. It leaves out code
// blocks, tables and the addresses of links.
func (d *Document) Speech() string {
	var lines []string
	var walk func(n *node)
	walk = func(n *node) {
		switch n.kind {
		case kindCodeBlock, kindTable, kindRule:
		case kindParagraph, kindHeading:
			line := strings.Join(strings.Fields(n.spokenText()), " ")
			if isBlank(line) {
				return
			}
			if !strings.ContainsAny(line[len(line)-1:], ".!?:;,") {
				line += "." // so that the voice pauses
			}
			lines = append(lines, line)
		default:
			for _, c := range n.children {
				walk(c)
			}
		}
	}
	walk(d.root)
	return strings.Join(lines, "\n")
}

// spokenText returns the text in n without bare addresses.
func (n *node) spokenText() string {
	switch {
	case n.kind == kindLink && n.isAutolink:
		return ""
	case n.kind == kindText:
		return lineBreak.ReplaceAllString(n.text, " ")
	case len(n.children) == 0:
		return n.flatText(false)
	}
	var b strings.Builder
	for _, c := range n.children {
		b.WriteString(c.spokenText())
	}
	return b.String()
}
