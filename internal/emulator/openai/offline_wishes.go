package openai

import (
	"regexp"
	"slices"
	"strings"
)

var (
	quotation     = regexp.MustCompile(`"[^"\n]*"|“[^”\n]*”`)
	sentenceBreak = regexp.MustCompile(`[.!?]+["”)]*\s+|\s*\n+\s*`)
	// conjunction joins two wishes. In front of it, a reminder or a note may be a list of things to do, which
	// only words that address the bot end.
	conjunction = regexp.MustCompile(`(?i)[,;]?\s+(?:oh )?(?:and then|and also|and|then|also|plus)\s+(` + requestVerbs + `|` + questionWords + `)\b`)
	addressed   = regexp.MustCompile(`(?i)^(?:(?:remind|tell|show|give|draw|send|make) (?:me|us|it to me)|draw|what|when|how|where|who)\b`)
	asksLike    = regexp.MustCompile(`(?i)^(?:(?:oh|ok|hey|please|also|and|then|so|now|can you|could you|would you|will you)[,\s]+)*(?:` + requestVerbs + `|` + questionWords + `)\b|\?\s*$`)
)

// Words with which a wish begins.
const (
	requestVerbs  = `remind|tell|make|create|write|draw|paint|e-?mail|mail|send|put|add|show|list|delete|remove|cancel|take off|give|find|search|check|read|summari[sz]e|remember|forget|save|note|calculate|translate|book|cross off`
	questionWords = `what|when|where|who|which|how|is there|are there|do i|did i|does`
)

// doAll does the wishes of a message one after another, and joins what it answers.
func (t *turn) doAll() Reply {
	wishes := t.wishes()
	var texts []string
	for _, wish := range wishes {
		reply := t.about(wish).attempt()
		if len(reply.Calls) > 0 {
			return reply
		}
		if strings.HasPrefix(reply.Text, cannot) && len(wishes) > 1 {
			reply.Text = "“" + strings.Trim(wish, " .,") + "”: " + reply.Text
		}
		texts = append(texts, reply.Text)
	}
	return Reply{Text: strings.Join(slices.Compact(texts), "\n\n")}
}

// about returns the turn as if its message were another.
func (t *turn) about(said string) *turn {
	one := *t
	one.said = said
	return &one
}

// answer applies the first rule that matches.
func (t *turn) answer() string {
	for _, rule := range t.rules() {
		if rule.found != nil {
			return rule.answer(rule.found)
		}
	}
	return t.decline()
}

func (t *turn) isUnderstood(said string) bool {
	return slices.ContainsFunc(t.about(said).rules(), func(r rule) bool { return r.found != nil })
}

// wishes splits a message into wishes. A part that is not understood and asks for nothing belongs to the wish
// before it.
func (t *turn) wishes() []string {
	whole := []string{t.said}
	if t.isWhole() {
		return whole
	}
	type span struct{ from, to int }
	var spans []span
	understood, chatter := false, ""
	for _, p := range t.parts() {
		said := t.said[p[0]:p[1]]
		switch yes := t.isUnderstood(said); {
		case yes && isChatter(said):
			chatter = said
		case yes || len(spans) == 0 || asksLike.MatchString(said):
			spans, understood = append(spans, span{p[0], p[1]}), understood || yes
		default:
			spans[len(spans)-1].to = p[1]
		}
	}
	switch {
	case len(spans) == 0 && chatter != "":
		return []string{chatter} // said more than once
	case !understood:
		return whole
	}
	var list []string
	for _, s := range spans {
		said := t.said[s.from:s.to]
		// What is told before the wish, and asks for nothing, is no wish.
		if len(list) > 0 || t.isUnderstood(said) || asksLike.MatchString(said) {
			list = append(list, said)
		}
	}
	return list
}

func isChatter(said string) bool { return greeting.MatchString(said) || thanks.MatchString(said) }

// isWhole reports whether a message is one wish, whatever it contains: a task, a command, or data.
func (t *turn) isWhole() bool {
	return reminderRun.MatchString(t.said) || backgroundResult.MatchString(t.said) || inBackground.MatchString(t.said) || askMe.MatchString(t.said) || askLikes.MatchString(t.said) ||
		runCommand.MatchString(t.said) || rowsPattern.MatchString(t.said) || len(parseTable(t.said)) > 0
}

// parts returns where the parts of the message begin and end.
func (t *turn) parts() [][2]int {
	masked := quotation.ReplaceAllStringFunc(t.said, func(s string) string { return strings.Repeat("_", len(s)) })
	var list [][2]int
	from := 0
	add := func(to, next int) {
		if strings.Trim(t.said[from:to], " ,.!?\n") != "" {
			list = append(list, [2]int{from, to})
		}
		from = next
	}
	sentence := func(to, next int) {
		for start := from; ; {
			m := conjunction.FindStringSubmatchIndex(masked[start:to])
			if m == nil {
				break
			}
			at, verb := start+m[0], start+m[2]
			start = verb
			if before := t.said[from:at]; !asksForReminder(before) && !asksToRemember(before) || addressed.MatchString(masked[verb:to]) {
				add(at, verb)
			}
		}
		add(to, next)
	}
	for _, m := range sentenceBreak.FindAllStringIndex(masked, -1) {
		if strings.Contains(masked[m[0]:m[1]], "\n") || !isAbbreviation(masked[from:m[0]]) {
			sentence(m[0]+len(strings.TrimRight(masked[m[0]:m[1]], " \n")), m[1])
		}
	}
	sentence(len(masked), len(masked))
	return list
}
