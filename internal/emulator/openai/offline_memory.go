package openai

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	recallPattern = regexp.MustCompile(`(?i)^(?:and\s+)?(?:what|what's|who|who's|whose|where|when|which|how (?:old|tall|many)|do you (?:remember|know))\b.*\b(?:my|i|me|mine)\b.*\?*$`)
	advice        = regexp.MustCompile(`(?i)\b(?:should|shall|could|would|can|might|to do|need|have to|must)\b`)
	recallAll     = regexp.MustCompile(`(?i)\bwhat (?:do|did) you (?:remember|know about me)\b|\bwhat (?:did|have) i (?:tell|told) you\W*$`)
	noteLine      = regexp.MustCompile(`(?m)^- (.+?)\s*$`)
	pointsBack    = regexp.MustCompile(`(?i)^(?:that|this|it|these|those|them)(?: please| for (?:me|later|next time)| too)*$`)
	besidesFact   = regexp.MustCompile(`(?i)(?:[\s,.;:–-]*\b(?:please|and|so|can you|could you|will you|would you|you should|i want you to|don't forget to|try to|always))*[\s,.;:–-]*$`)
	savedDay      = regexp.MustCompile(`(?m) \(saved \d{1,2} [A-Z][a-z]{2} \d{4}\)$`)
	forgetPattern = regexp.MustCompile(`(?i)^(?:please )?forget(?: what i (?:told|said)(?: to)?(?: you)?)?(?: about| that)? (.{2,500}?)[.!]*$`)
	nowInstead    = regexp.MustCompile(`(?i)^(.+?)[,;:.]\s+(?:because |as )?(?:s?he|it|they|that)(?:'s| is|'re| are)\s+(.+)$`)
	saveContact   = regexp.MustCompile(`(?i)\b(?:save|keep|store|note|remember)\b.*\b(?:number|contact|phone|address)\b(?:.*?\b(?:it's|it is|this is|that's|that is|of|he's|she's)\s+(.+?))?[.!]*$`)
	forgotten     = regexp.MustCompile(`^Forgotten: '(.+?)'\. `)
	replaced      = regexp.MustCompile(`^Updated\. It took the place of '(.+?)'\.`)
	ofUser        = regexp.MustCompile(`(?i)\b(my|mine|i am|i'm|i|me)\b`)
)

// savedNotes returns the notes that the user saved, in this conversation and in the prompt's memory.
func savedNotes(messages []Message) (notes []string) {
	for _, m := range messages {
		switch m.Role {
		case "system", "developer":
			_, memory, _ := strings.Cut(m.Content, "## Memory\n")
			notes = append(notes, allIn(noteLine, memory)...)
		case "user":
			_, recalled, _ := strings.Cut(m.Content, "\n[From memory]\n")
			notes = append(notes, allIn(noteLine, savedDay.ReplaceAllString(recalled, ""))...)
			if text := plainText(m.Content); asksToRemember(text) {
				notes = append(notes, factIn(text))
			}
		case "assistant":
			for _, c := range m.ToolCalls {
				var args struct{ Content string }
				if (c.Name == "save_memory" || c.Name == "update_memory") && json.Unmarshal([]byte(c.Arguments), &args) == nil {
					notes = append(notes, args.Content)
				}
			}
		case "tool":
			gone := append(allIn(forgotten, m.Content), allIn(replaced, m.Content)...)
			notes = slices.DeleteFunc(notes, func(note string) bool { return slices.Contains(gone, note) })
		}
	}
	return notes
}

// allIn returns what all matches of a pattern have in their first group.
func allIn(pattern *regexp.Regexp, text string) (found []string) {
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

func asksToRemember(said string) bool {
	return remember.MatchString(said) && !strings.HasSuffix(strings.TrimSpace(said), "?")
}

// isRecall reports whether the message asks for a fact that users told about themselves.
func (t *turn) isRecall() bool {
	return recallAll.MatchString(t.said) || recallPattern.MatchString(strings.TrimSpace(t.said)) && !advice.MatchString(t.said) && (len(contentWords(t.said)) > 0 || closestNote(t.said, t.notes) != "")
}

// recall answers from the saved notes.
func (t *turn) recall() string {
	if recallAll.MatchString(t.said) {
		notes := slices.Compact(slices.Sorted(slices.Values(t.notes)))
		if len(notes) == 0 {
			return "Nothing yet. Tell me, for example: remember that my cat is called Minka."
		}
		return "You told me:\n" + strings.Join(bullets(notes), "\n")
	}
	note := closestNote(t.said, t.notes)
	if note == "" {
		query := map[string]any{"query": strings.Join(contentWords(t.said), " "), "scope": "memory"}
		note = closestNote(t.said, allIn(noteLine, t.use("search_history", query)))
	}
	if note == "" {
		return "I do not know that yet. Tell me, for example: remember that my cat is called Minka."
	}
	return toSecondPerson(note)
}

// closestNote returns the note that shares the most words with a question, and more than half of them; the newest
// of several.
func closestNote(question string, notes []string) string {
	wordsOf := contentWords
	if len(wordsOf(question)) == 0 {
		wordsOf = rareWords // what is my name?
	}
	words := wordsOf(question)
	best, most := "", len(words)/2+1
	for _, note := range notes {
		if shared := countShared(words, wordsOf(note)); shared >= most {
			best, most = note, shared
		}
	}
	return best
}

// countShared returns how many of the words are among others.
func countShared(words, others []string) (n int) {
	for _, word := range words {
		if slices.ContainsFunc(others, func(other string) bool { return alike(word, other) }) {
			n++
		}
	}
	return n
}

// alike reports whether two words differ in their endings at most.
func alike(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return a == b || strings.HasPrefix(b, a) && (len(a) >= 5 || wordEnding.MatchString(b[len(a):])) || len(a) >= 6 && strings.HasPrefix(b, a[:len(a)-1])
}

// wordEnding matches the endings of a verb and its noun: pay, payment.
var wordEnding = regexp.MustCompile(`^(?:s|es|ed|ing|ment|ments|able|er)$`)

// fillers are words without meaning for a search, in addition to common words.
const fillers = " am did you your my mine me us remember know called name old tall whats whos much again please tell give say says said mean document paper pdf file page pages text table something anything copy sentence word words here there need "

// contentWords returns the meaningful words of a text.
func contentWords(text string) []string {
	var words []string
	for _, w := range strings.FieldsFunc(strings.ToLower(text), isNoWord) {
		if !strings.Contains(fillers, " "+w+" ") && !strings.Contains(commonWords, " "+w+" ") && len(w) > 1 {
			words = append(words, strings.TrimSuffix(w, "s"))
		}
	}
	return words
}

func isNoWord(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// toSecondPerson turns a note in the user's words into a sentence that addresses the user.
func toSecondPerson(note string) string {
	note = ofUser.ReplaceAllStringFunc(strings.TrimRight(note, ". "), func(word string) string {
		return map[string]string{"my": "your", "mine": "yours", "i am": "you are", "i'm": "you are", "i": "you", "me": "you"}[strings.ToLower(word)]
	})
	return strings.ToUpper(note[:1]) + note[1:] + "."
}

// factIn returns the fact that a message wants remembered: after the word, or before a "remember that".
func factIn(said string) string {
	m := remember.FindStringSubmatchIndex(said)
	if fact := strings.TrimSpace(said[m[2]:m[3]]); !pointsBack.MatchString(fact) {
		return fact
	}
	return strings.Trim(besidesFact.ReplaceAllString(said[:m[0]], ""), " ,.;:-–!\n")
}

func (t *turn) remember() string {
	for _, said := range []string{t.said, t.whole} {
		if fact := factIn(said); fact != "" {
			return t.note(fact)
		}
	}
	return "What shall I remember? Tell me, for example: remember that my cat is called Minka."
}

// note saves a fact, with the time zone if it says where the user lives.
func (t *turn) note(fact string) string {
	args, effect := map[string]any{"content": fact}, " I still know it after /clear."
	if zone := cityZone(fact, livesIn); zone != "" {
		args["time_zone"] = zone
		effect = fmt.Sprintf(" From now on I take your times as those of %s. Reminders that exist keep theirs.", zone)
	}
	switch text := t.use("save_memory", args); {
	case strings.HasPrefix(text, "Memory already holds this"):
		return "I know that already."
	case !strings.HasPrefix(text, "Saved"):
		return "I could not note that: " + rewordForUser(text)
	}
	return "Noted: " + toSecondPerson(fact) + effect
}

// forget forgets the saved note that is closest to what the user names, or puts into its place what is true now.
func (t *turn) forget(m []string) string {
	what, instead := m[1], ""
	if now := nowInstead.FindStringSubmatch(what); now != nil {
		what, instead = now[1], now[1]+" is "+strings.TrimSuffix(strings.TrimRight(now[2], " ."), " now")
	}
	note := closestNote(what, t.notes)
	switch {
	case note == "":
		return "I remember nothing about that. /memory shows what I remember."
	case instead != "":
		return t.do("memory", "update_memory", map[string]any{"memory": note, "content": instead}, "Updated", "change that", "Changed: "+toSecondPerson(instead))
	}
	text := t.useOf("memory", "forget_memory", map[string]any{"memory": note})
	if gone := forgotten.FindStringSubmatch(text); gone != nil {
		return fmt.Sprintf("Forgotten: %s /memory brings it back within a day.", toSecondPerson(gone[1]))
	}
	return "I could not forget that: " + rewordForUser(firstLine(text))
}

// lastContact returns the contact that was sent last.
func lastContact(given []given, said string) string {
	for _, text := range append([]string{said}, textsOf(given)...) {
		if m := contactLine.FindStringSubmatch(text); m != nil {
			return m[1]
		}
	}
	return ""
}

// textsOf returns the texts of what was given, the newest first.
func textsOf(list []given) []string {
	var texts []string
	for _, g := range slices.Backward(list) {
		texts = append(texts, g.text)
	}
	return texts
}

// contactName returns the name of the contact that was sent last.
func contactName(given []given, said string) string {
	name, _, _ := strings.Cut(lastContact(given, said), ",")
	return name
}

// keepContact remembers the contact that was sent last.
func (t *turn) keepContact(m []string) string {
	who := lastContact(t.given, t.whole)
	if m[1] != "" {
		who = m[1] + " is " + who
	}
	return t.note(who)
}
