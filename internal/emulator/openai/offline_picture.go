package openai

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

var (
	asPicture = regexp.MustCompile(`(?i)\b(pictures?|images?|png|screenshot|photo|render)\b`)
	showing   = regexp.MustCompile(`(?i)\b(show|see|display|look at)\b`)
	saying    = regexp.MustCompile(`(?i)\b(says?|text|read|contents?|mentions?|about)\b`)
)

// requestedPage returns the page of a document that the user wants to see.
func (t *turn) requestedPage() (page int, ok bool) {
	m := pageWanted.FindStringSubmatch(t.said)
	if m == nil || !asPicture.MatchString(t.said) && (!showing.MatchString(t.said) || saying.MatchString(t.said)) {
		return 0, false
	}
	page, err := strconv.Atoi(m[1])
	return page, err == nil
}

// renderPage renders a page of a document, which is sent to the chat.
func (t *turn) renderPage(doc string, page int) Reply {
	const tool = "pdf_render_page"
	text, done := t.toolResult(tool)
	name := fmt.Sprintf("page %d of **%s**", page, path.Base(doc))
	switch {
	case done && strings.HasPrefix(text, "Saved: "):
		return Reply{Text: "Here is " + name + "."}
	case done:
		return Reply{Text: fmt.Sprintf("I could not make a picture of %s: %s", name, firstLine(text))}
	case !t.tools[tool]:
		return Reply{Text: fmt.Sprintf("I would need the tool `%s` for that, and I have not been given it here.", tool)}
	case t.rounds >= maxRounds:
		return Reply{Text: "I have tried several times without getting further, so I stop here."}
	}
	args, err := json.Marshal(map[string]any{"path": doc, "page": page})
	if err != nil {
		return Reply{Text: "I could not ask for a picture of " + name + "."}
	}
	return Reply{Calls: []ToolCall{{Name: tool, Arguments: string(args)}}}
}
