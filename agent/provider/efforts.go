package provider

import (
	"regexp"
	"slices"
	"strings"

	"oneclaw/agent"
)

// Efforts is the set of reasoning efforts that a model has refused.
type Efforts uint8

// allEfforts is the set of a model that has no efforts.
const allEfforts = ^Efforts(0)

var effortNames = regexp.MustCompile(`\b(` + strings.Join(agent.Efforts(), "|") + `)\b`)

// Add adds an effort.
func (e Efforts) Add(effort string) Efforts {
	if at := slices.Index(agent.Efforts(), effort); at >= 0 {
		e |= 1 << at
	}
	return e
}

// Refuse adds the effort of a refused request, if it had one. If the text of the refusal names no effort,
// the model has none at all. Otherwise only this one is added, because other chats may use others.
func (e Efforts) Refuse(effort, text string) Efforts {
	if effort != "" && !effortNames.MatchString(strings.ToLower(text)) {
		return allEfforts
	}
	return e.Add(effort)
}

// Nearest returns the given effort if it was not refused, and otherwise the nearest that was not, the
// lower of two; "none" only if all others were refused. It returns "" if all were.
func (e Efforts) Nearest(effort string) string {
	levels := agent.Efforts()
	at := slices.Index(levels, effort)
	if at < 0 || e&(1<<at) == 0 {
		return effort
	}
	for distance := range levels {
		for _, i := range []int{at - distance, at + distance} {
			if i > 0 && i < len(levels) && e&(1<<i) == 0 {
				return levels[i]
			}
		}
	}
	if e&1 == 0 {
		return levels[0]
	}
	return ""
}
