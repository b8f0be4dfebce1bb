package markdown

import "strings"

// Visible returns the text that all parts for Telegram have together, before
// it is split, and the headers of tables, which parts may repeat.
func (d *Document) Visible(limit int) (string, []string) {
	return visible(d.layOut(telegram{limit: max(limit, MinLimit)}))
}

// VisibleSlack is Visible for Slack.
func (d *Document) VisibleSlack(limit int) (string, []string) {
	return visible(d.layOut(slack{limit: max(limit, MinLimit)}))
}

// Meant is a text with its formats.
type Meant struct {
	Text    string   `json:"text"`
	Formats []string `json:"formats"`
}

// MeantForSlack returns the texts of the document, in order, as they are meant to be shown on Slack.
func (d *Document) MeantForSlack(limit int) (all []Meant) {
	names := map[style]string{styleBold: "bold", styleItalic: "italic", styleStrike: "strike", styleCode: "code", stylePre: "code"}
	for _, a := range d.layOut(slack{limit: limit}) {
		m := Meant{Text: a.text}
		for s := a.span; s != nil; s = s.parent {
			switch {
			case s.style == styleLink:
				m.Formats = append(m.Formats, "link "+s.href)
			case names[s.style] != "":
				m.Formats = append(m.Formats, names[s.style])
			}
		}
		all = append(all, m)
	}
	return all
}

func visible(atoms []atom) (string, []string) {
	var text strings.Builder
	var heads []string
	var last *span
	for _, a := range atoms {
		text.WriteString(a.text)
		if pre := a.span.enclosing(stylePre); pre != nil && pre != last && len(pre.tableHead) > 0 {
			last = pre
			var head strings.Builder
			for _, h := range pre.tableHead {
				head.WriteString(h.text)
			}
			heads = append(heads, head.String())
		}
	}
	return text.String(), heads
}

// ParseWith is Parse with another reader of Markdown that fails.
func ParseWith(text string, fail func()) *Document {
	return &Document{root: parse(normalize(text), func(string) *node { fail(); return nil })}
}

// Broken returns a document of text whose tree cannot be rendered.
func Broken(text string) *Document {
	return &Document{source: text, root: &node{kind: kindDocument, children: []*node{nil}}}
}

// Work splits the document for both platforms and returns how many characters were
// written for that, those included that were written only to see whether they fit.
func (d *Document) Work(limit int) int {
	n := 0
	for _, r := range []rules{telegram{limit: limit}, slack{limit: limit}} {
		split(d, counting{rules: r, written: &n}, limit)
	}
	return n
}

// counting is asked about each character that is written.
type counting struct {
	rules
	written *int
}

func (c counting) needsMentionGuard(p position) bool {
	*c.written++
	return c.rules.needsMentionGuard(p)
}
