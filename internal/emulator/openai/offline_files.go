package openai

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// aList matches a list with its name, if it has one.
const aList = `(?:my|the|our)\s+((?:[\p{L}-]+\s+){0,2})list\b`

var (
	readFile   = regexp.MustCompile(`(?i)\b(?:read|show|open|print|what(?:'s| is)(?: written)? in)\b.*?\b(?:file\s+)?["'` + "`" + `]?([\w./-]+\.[a-z]\w{0,7})["'` + "`" + `]?`)
	writeFile  = regexp.MustCompile(`(?is)\b(?:write|save|put)\s+["'“` + "`" + `](.+)["'”` + "`" + `]\s+(?:in|to|into|as)\s+(?:the\s+|a\s+)?(?:file\s+)?["'` + "`" + `]?([\w./-]+\.\w{1,8})`)
	makeFile   = regexp.MustCompile(`(?is)\b(?:make|create|write|start|save)\s+(?:me\s+)?(?:a\s+|the\s+)?(?:new\s+)?(?:text\s+)?(?:file|note)\s+(?:called\s+|named\s+)?["'` + "`" + `]?([\w./-]+\.\w{1,8})["'` + "`" + `]?\s+(?:with|containing|that says|saying)(?:\s+the (?:text|words|content)s?)?\s*:?\s*(?:["“](.+)["”]|([^"“]+)$)`)
	sendFile   = regexp.MustCompile(`(?i)^(?:please )?(?:send|give|show) (?:(?:it|that|the file|this) to me|me (?:it|that|the file|this)|it|that)\W*(?:please)?\W*$`)
	filesKnown = regexp.MustCompile(`(?i)\b(?:which|what|list|show)\b.*\bfiles\b`)
	listAdd    = regexp.MustCompile(`(?is)\b(?:add|put|write)\s+(.+?)\s+(?:to|on|onto|in)\s+` + aList)
	listShow   = regexp.MustCompile(`(?i)\b(?:what(?:'s| is)?|show|read|tell)\b.*\b(?:on\s+` + aList + `|(?:my|the|our)\s+(?:[\p{L}-]+\s+){1,2}list\b)`)
	listDrop   = regexp.MustCompile(`(?i)\b(?:take off|remove|cross off|tick off|delete)\s+(.+?)(?:\s+from\b.*)?(?:[,.;!?].*)?$|\btake\s+(.+?)\s+off\b`)
	listNamed  = regexp.MustCompile(`(?i)\b` + aList)
	listItems  = regexp.MustCompile(`(?i)\s*,\s*(?:and\s+)?|\s+and\s+`)
	article    = regexp.MustCompile(`(?i)^(?:the|some|a|an|my)\s+`)
)

func (t *turn) writeFile(name, content string) string {
	return t.do("", "write_file", map[string]any{"path": name, "content": content}, "Wrote", "write `"+name+"`", "I wrote `"+name+"`.")
}

// sendText sends the text file that the message or the conversation wrote last, in the form that can be sent.
func (t *turn) sendText() string {
	last := t.written[len(t.written)-1]
	file := strings.TrimSuffix(path.Base(last.file), path.Ext(last.file)) + ".docx"
	return t.do("documents", "write_document", map[string]any{"path": file, "content": last.text}, "Saved", "send it",
		fmt.Sprintf("Here is the text of `%s` as **%s**: I have no tool that sends a plain text file.", last.file, file))
}

// listFiles lists the files of the conversation.
func (t *turn) listFiles() string {
	var names []string
	for _, f := range t.written {
		names = append(names, "- `"+f.file+"`, which I wrote")
	}
	for _, f := range t.files {
		names = append(names, "- `"+f+"`, which you sent")
	}
	if len(names) == 0 {
		return "There are no files in this conversation yet. Those of other conversations I cannot list."
	}
	slices.Sort(names)
	return "The files of this conversation:\n" + strings.Join(slices.Compact(names), "\n")
}

const listEnding = "-list.txt"

func listFile(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), " ", "-") + listEnding
}

// listName returns the name of the list that a message is about: the one that it names, or else the one that the
// conversation wrote last; "" without one.
func (t *turn) listName() string {
	for _, said := range []string{t.said, t.whole} {
		if m := listNamed.FindStringSubmatch(said); m != nil && m[1] != "" {
			return strings.TrimSpace(m[1])
		}
	}
	for _, f := range slices.Backward(t.written) {
		if name, ok := strings.CutSuffix(f.file, listEnding); ok {
			return strings.ReplaceAll(name, "-", " ")
		}
	}
	return ""
}

func itemsOf(text string) []string {
	var items []string
	for _, item := range listItems.Split(text, -1) {
		if item = article.ReplaceAllString(strings.TrimSpace(item), ""); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// addToList adds what the message names to a list, which is a file.
func (t *turn) addToList(m []string) string {
	items, name := itemsOf(m[1]), t.listName()
	return t.do("", "write_file", map[string]any{"path": listFile(name), "content": "- " + strings.Join(items, "\n- ") + "\n", "mode": "append"}, "Wrote", "write that down",
		fmt.Sprintf("On your %s list now: %s.", name, strings.Join(items, ", ")))
}

// readList returns the items of a list.
func (t *turn) readList(name string) (items []string) {
	for _, item := range allIn(noteLine, t.use("read_file", map[string]any{"path": listFile(name)})) {
		if !slices.Contains(items, item) {
			items = append(items, item)
		}
	}
	return items
}

func (t *turn) showList() string {
	name := t.listName()
	items := t.readList(name)
	if len(items) == 0 {
		return fmt.Sprintf("Nothing is on your %s list.", name)
	}
	return fmt.Sprintf("On your %s list:\n%s", name, strings.Join(bullets(items), "\n"))
}

// dropFromList writes a list without what the message names.
func (t *turn) dropFromList(m []string) string {
	name := t.listName()
	items, gone := t.readList(name), itemsOf(m[1]+m[2])
	kept := slices.DeleteFunc(slices.Clone(items), func(item string) bool {
		return slices.ContainsFunc(gone, func(g string) bool { return strings.EqualFold(singular(g), singular(item)) })
	})
	if len(kept) == len(items) {
		return fmt.Sprintf("I do not find %s on your %s list.", strings.Join(gone, ", "), name)
	}
	content := "\n"
	if len(kept) > 0 {
		content = "- " + strings.Join(kept, "\n- ") + "\n"
	}
	return t.do("", "write_file", map[string]any{"path": listFile(name), "content": content, "mode": "overwrite"}, "Wrote", "change the list",
		fmt.Sprintf("Taken off: %s. Left on your %s list: %s.", strings.Join(gone, ", "), name, cmp.Or(strings.Join(kept, ", "), "nothing")))
}
