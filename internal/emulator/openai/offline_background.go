package openai

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	inBackground     = regexp.MustCompile(`(?is)^(?:please\s+)?in the background[\s,:]+(.+)$`)
	backgroundResult = regexp.MustCompile(`(?s)^\[The background task "([^"\n]*)" is done\.[^\n]*\n(.*)\n\[End of the result\.\]`)
)

// startInBackground starts a background task.
func (t *turn) startInBackground() Reply {
	task := strings.TrimSpace(inBackground.FindStringSubmatch(t.said)[1])
	title := shorten(task, 60)
	return t.useGroupTool("background", "start_background_task", map[string]any{"task": task, "title": title}, resulting("Started ", "start that",
		"I work on it in the background: "+strings.TrimRight(title, ".")+". We can go on meanwhile; the result comes here."))
}

// tellResult tells the result of a background task.
func (t *turn) tellResult() Reply {
	m := backgroundResult.FindStringSubmatch(t.said)
	var lines []string
	for line := range strings.SplitSeq(m[2], "\n") {
		lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(line, ">"), " "))
	}
	return Reply{Text: fmt.Sprintf("From the background, %s:\n\n%s", m[1], strings.Join(lines, "\n"))}
}
