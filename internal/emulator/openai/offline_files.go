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

// fileIn returns the file that a message wants written, and its content.
func fileIn(said string) (name, content string) {
	if m := makeFile.FindStringSubmatch(said); m != nil {
		return m[1], m[2] + m[3]
	}
	if m := writeFile.FindStringSubmatch(said); m != nil {
		return m[2], m[1]
	}
	return "", ""
}

func (t *turn) writeFileReply() Reply {
	name, content := fileIn(t.said)
	return t.useTool("write_file", map[string]any{"path": name, "content": content}, resulting("Wrote", "write `"+name+"`", "I wrote `"+name+"`."))
}

// sendText sends the text file that the message or the conversation wrote last, in the form that can be sent.
func (t *turn) sendText() Reply {
	last := t.written[len(t.written)-1]
	file := strings.TrimSuffix(path.Base(last.file), path.Ext(last.file)) + ".docx"
	return t.useGroupTool("documents", "write_document", map[string]any{"path": file, "content": last.text}, resulting("Saved", "send it",
		fmt.Sprintf("Here is the text of `%s` as **%s**: I have no tool that sends a plain text file.", last.file, file)))
}

// listFiles lists the files of the conversation.
func (t *turn) listFiles() Reply {
	var names []string
	for _, f := range t.written {
		names = append(names, "- `"+f.file+"`, which I wrote")
	}
	for _, f := range t.files {
		names = append(names, "- `"+f+"`, which you sent")
	}
	if len(names) == 0 {
		return Reply{Text: "There are no files in this conversation yet. Those of other conversations I cannot list."}
	}
	slices.Sort(names)
	return Reply{Text: "The files of this conversation:\n" + strings.Join(slices.Compact(names), "\n")}
}

func (t *turn) readFileReply() Reply {
	name := readFile.FindStringSubmatch(t.said)[1]
	return t.useTool("read_file", map[string]any{"path": name}, func(text string) string {
		return fmt.Sprintf("`%s`:\n\n%s", name, shorten(rewordForUser(text), 2000))
	})
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
func (t *turn) addToList() Reply {
	m := listAdd.FindStringSubmatch(t.said)
	items, name := itemsOf(m[1]), t.listName()
	return t.useTool("write_file", map[string]any{"path": listFile(name), "content": "- " + strings.Join(items, "\n- ") + "\n", "mode": "append"}, resulting("Wrote", "write that down",
		fmt.Sprintf("On your %s list now: %s.", name, strings.Join(items, ", "))))
}

// readList returns the items of a list; reply is set while it has to be read.
func (t *turn) readList(name string) (items []string, reply Reply) {
	text, read := t.toolResult("read_file")
	if !read {
		return nil, t.useTool("read_file", map[string]any{"path": listFile(name)}, nil)
	}
	for _, line := range noteLine.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(items, line[1]) {
			items = append(items, line[1])
		}
	}
	return items, Reply{}
}

func (t *turn) showList() Reply {
	name := t.listName()
	items, wait := t.readList(name)
	switch {
	case len(wait.Calls) > 0 || wait.Text != "":
		return wait
	case len(items) == 0:
		return Reply{Text: fmt.Sprintf("Nothing is on your %s list.", name)}
	}
	return Reply{Text: fmt.Sprintf("On your %s list:\n%s", name, strings.Join(bullets(items), "\n"))}
}

// dropsFromList reports whether the message takes something off a list that it names.
func (t *turn) dropsFromList() bool {
	return listDrop.MatchString(t.said) && listNamed.MatchString(t.whole) && t.listName() != ""
}

// dropFromList writes a list without what the message names.
func (t *turn) dropFromList() Reply {
	m, name := listDrop.FindStringSubmatch(t.said), t.listName()
	items, wait := t.readList(name)
	if len(wait.Calls) > 0 || wait.Text != "" {
		return wait
	}
	gone := itemsOf(m[1] + m[2])
	kept := slices.DeleteFunc(slices.Clone(items), func(item string) bool {
		return slices.ContainsFunc(gone, func(g string) bool { return strings.EqualFold(singular(g), singular(item)) })
	})
	if len(kept) == len(items) {
		return Reply{Text: fmt.Sprintf("I do not find %s on your %s list.", strings.Join(gone, ", "), name)}
	}
	content := "\n"
	if len(kept) > 0 {
		content = "- " + strings.Join(kept, "\n- ") + "\n"
	}
	return t.useTool("write_file", map[string]any{"path": listFile(name), "content": content, "mode": "overwrite"}, resulting("Wrote", "change the list",
		fmt.Sprintf("Taken off: %s. Left on your %s list: %s.", strings.Join(gone, ", "), name, cmp.Or(strings.Join(kept, ", "), "nothing"))))
}
