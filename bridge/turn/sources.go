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
	// maxSources bounds the sources under an answer, maxSourceTitle the title of one.
	maxSources     = 5
	maxSourceTitle = 60
	// sourcesMark begins the line of sources.
	sourcesMark = "Sources: "
)

// cited is an answer with a line of the pages it draws on, as far as the results of the
// turn tell of pages: those that the answer names by their address, else the first of
// each result. They are read off the log, so that a turn which went on after a crash has
// those of before the crash too.
func (t *Runner) cited(ctx context.Context, j *queue.Run, h *conversation.History, answer string) string {
	if TaskOf(j).Ends(answer) {
		return answer // it says that there is nothing to say
	}
	turn, err := h.Turn(ctx, j.Key())
	if err != nil {
		t.cfg.Log.Error("sources of an answer cannot be found and are not shown", "job", j.Key(), "err", err)
		return answer
	}
	sources := drawnOn(turn, answer)
	// A model that sees such lines in the conversation may write one itself.
	if len(sources) == 0 || !wording.Visible(answer) || strings.Contains(answer, "\n"+sourcesMark) {
		return answer
	}
	links := make([]string, len(sources))
	for i, s := range sources {
		links[i] = "[" + wording.Escape(wording.OneLine(s.Title, maxSourceTitle)) + "](<" + s.URL + ">)"
	}
	return answer + "\n\n" + sourcesMark + strings.Join(links, " · ")
}

// drawnOn picks the sources of an answer.
func drawnOn(turn []agent.Message, answer string) []toolgroups.Source {
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
