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
	// maxSources bounds the sources below an answer, maxSourceTitle the title of one.
	maxSources     = 5
	maxSourceTitle = 60
	// sourcesMark begins the line of sources.
	sourcesMark = "Sources: "
)

// withSources returns an answer with a line of its sources, if results of the turn have pages: those whose
// address the answer contains, else the first of each result. They are read from the log, so that a
// turn that continued after a crash has the earlier ones too.
func (t *Runner) withSources(ctx context.Context, j *queue.Run, h *conversation.History, answer string) string {
	if TaskOf(j).Ends(answer) {
		return answer // there is nothing to report
	}
	turn, err := h.Turn(ctx, j.Key())
	if err != nil {
		t.cfg.Log.Error("sources of an answer cannot be found and are not shown", "job", j.Key(), "err", err)
		return answer
	}
	sources := pickSources(turn, answer)
	// A model that sees such lines in the conversation may write its own.
	if len(sources) == 0 || !wording.Visible(answer) || strings.Contains(answer, "\n"+sourcesMark) {
		return answer
	}
	links := make([]string, len(sources))
	for i, s := range sources {
		links[i] = "[" + wording.Escape(wording.OneLine(s.Title, maxSourceTitle)) + "](<" + s.URL + ">)"
	}
	return answer + "\n\n" + sourcesMark + strings.Join(links, " · ")
}

// pickSources returns the sources of an answer.
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
