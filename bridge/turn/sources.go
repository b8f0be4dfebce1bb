package turn

import (
	"context"
	"strings"

	"oneclaw/agent"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

const (
	// maxSources bounds the sources below an answer, maxSourceTitle the title of a source.
	maxSources     = 5
	maxSourceTitle = 60
	// sourcesMark begins the line of sources.
	sourcesMark = "Sources: "
)

// withSources adds a line with sources to an answer, if results of the turn have any: those whose URL
// the answer contains, or else the first ones of each result. It reads the results from the log, so that
// those from before a crash are included.
func (t *Runner) withSources(ctx context.Context, j *queue.Run, h *conversation.History, answer string) string {
	if TaskOf(j).IsSilence(answer) {
		return answer // there is nothing to report
	}
	turn, err := h.Turn(ctx, j.Key())
	if err != nil {
		t.cfg.Log.Error("sources of an answer cannot be found and are not shown", "job", j.Key(), "err", err)
		return answer
	}
	sources := pickSources(turn, answer)
	// A model that sees such lines in the conversation may write its own.
	if len(sources) == 0 || !wording.HasVisible(answer) || strings.Contains(answer, "\n"+sourcesMark) {
		return answer
	}
	links := make([]string, len(sources))
	for i, s := range sources {
		links[i] = "[" + wording.EscapeMarkdown(wording.OneLine(s.Title, maxSourceTitle)) + "](<" + s.URL + ">)"
	}
	return answer + "\n\n" + sourcesMark + strings.Join(links, " · ")
}

// pickSources returns the sources to show below an answer, from the results of its turn.
func pickSources(turn []agent.Message, answer string) []toolgroups.Source {
	var named, first []toolgroups.Source
	known := map[string]bool{}
	for _, m := range turn {
		if m.Role != agent.RoleTool || m.Status != agent.StatusOK {
			continue
		}
		for i, s := range m.Sources {
			if known[s.URL] {
				continue
			}
			known[s.URL] = true
			if strings.Contains(answer, s.URL) {
				named = append(named, s)
			}
			if i < maxSources-2 {
				first = append(first, s)
			}
		}
	}
	if len(named) == 0 {
		named = first
	}
	return named[:min(len(named), maxSources)]
}
