package openai

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	recallPattern = regexp.MustCompile(`(?i)^(?:and\s+)?(?:what|what's|who|who's|whose|where|when|which|how (?:old|tall|many)|do you (?:remember|know))\b.*\b(?:my|i|me|mine)\b.*\?*$`)
	recallAll     = regexp.MustCompile(`(?i)\bwhat (?:do|did) you (?:remember|know about me)\b|\bwhat do you know about me\b`)
	noteLine      = regexp.MustCompile(`(?m)^- (.+)$`)
	savedDay      = regexp.MustCompile(` \(saved \d{1,2} [A-Z][a-z]{2} \d{4}\)$`)
	forgetPattern = regexp.MustCompile(`(?i)^(?:please )?forget(?: about| that)? (.{2,500}?)[.!]*$`)
	forgotten     = regexp.MustCompile(`^Forgotten: '(.+?)'\. `)
	ofUser        = regexp.MustCompile(`(?i)\b(my|mine|i am|i'm|i|me)\b`)
)

// savedNotes returns the notes that the user saved, in this conversation and in the prompt's memory.
func savedNotes(messages []Message) []string {
	var notes []string
	for _, m := range messages {
		switch m.Role {
		case "system", "developer":
			if _, memory, ok := strings.Cut(m.Content, "## Memory\n"); ok {
				for _, line := range noteLine.FindAllStringSubmatch(memory, -1) {
					notes = append(notes, strings.TrimSpace(line[1]))
				}
			}
		case "user":
			if _, found, ok := strings.Cut(m.Content, "\n[From memory]\n"); ok {
				for line := range strings.SplitSeq(found, "\n") {
					notes = append(notes, savedDay.ReplaceAllString(strings.TrimPrefix(strings.TrimSpace(line), "- "), ""))
				}
			}
			if text := plainText(m.Content); asksToRemember(text) {
				notes = append(notes, strings.TrimSpace(remember.FindStringSubmatch(text)[1]))
			}
		case "tool":
			if gone := forgotten.FindStringSubmatch(m.Content); gone != nil {
				notes = slices.DeleteFunc(notes, func(note string) bool { return note == gone[1] })
			}
		}
	}
	return notes
}

func asksToRemember(said string) bool {
	return remember.MatchString(said) && !strings.HasSuffix(strings.TrimSpace(said), "?")
}

// isRecall reports whether the message asks for a fact that users told about themselves.
func (t *turn) isRecall() bool {
	return recallAll.MatchString(t.said) || recallPattern.MatchString(strings.TrimSpace(t.said)) && len(contentWords(t.said)) > 0
}

// recall answers from the saved notes.
func (t *turn) recall() Reply {
	if recallAll.MatchString(t.said) {
		notes := slices.Compact(slices.Sorted(slices.Values(t.notes)))
		if len(notes) == 0 {
			return Reply{Text: "Nothing yet. Tell me, for example: remember that my cat is called Minka."}
		}
		return Reply{Text: "You told me:\n" + strings.Join(bullets(notes), "\n")}
	}
	if note := closestNote(t.said, t.notes); note != "" {
		return Reply{Text: toSecondPerson(note)}
	}
	return t.useTool("search_history", map[string]any{"query": strings.Join(contentWords(t.said), " "), "scope": "memory"}, func(text string) string {
		var found []string
		for _, line := range noteLine.FindAllStringSubmatch(text, -1) {
			found = append(found, line[1])
		}
		if note := closestNote(t.said, found); note != "" {
			return toSecondPerson(note)
		}
		return "I do not know that yet. Tell me, for example: remember that my cat is called Minka."
	})
}

// closestNote returns the note that shares the most words with a question; the newest of several.
func closestNote(question string, notes []string) string {
	best, most := "", 0
	for _, note := range notes {
		shared := 0
		for _, word := range contentWords(note) {
			if slices.Contains(contentWords(question), word) {
				shared++
			}
		}
		if shared >= max(1, most) {
			best, most = note, shared
		}
	}
	return best
}

// fillers are words without meaning for a search.
const fillers = " a an the is are was were be am do does did you your my mine me i it its of to in on at for and or what who where when which how that this remember know called name old many tall have has whats whos "

// contentWords returns the meaningful words of a text.
func contentWords(text string) []string {
	var words []string
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r <= 127 }) {
		if !strings.Contains(fillers, " "+w+" ") && len(w) > 1 {
			words = append(words, strings.TrimSuffix(w, "s"))
		}
	}
	return words
}

// toSecondPerson turns a note in the user's words into a sentence that addresses the user.
func toSecondPerson(note string) string {
	note = ofUser.ReplaceAllStringFunc(strings.TrimRight(note, ". "), func(word string) string {
		return map[string]string{"my": "your", "mine": "yours", "i am": "you are", "i'm": "you are", "i": "you", "me": "you"}[strings.ToLower(word)]
	})
	return strings.ToUpper(note[:1]) + note[1:] + "."
}

func (t *turn) remember() Reply {
	return t.note(strings.TrimSpace(remember.FindStringSubmatch(t.said)[1]))
}

// note saves a fact, with the time zone if it says where the user lives.
func (t *turn) note(fact string) Reply {
	args := map[string]any{"content": fact}
	zone := cityZone(fact, livesIn)
	if zone != "" {
		args["time_zone"] = zone
	}
	return t.useTool("save_memory", args, func(text string) string {
		switch {
		case strings.HasPrefix(text, "Saved") && zone != "":
			return fmt.Sprintf("Noted: %s From now on I take your times as those of %s. Reminders that exist keep theirs.", toSecondPerson(fact), zone)
		case strings.HasPrefix(text, "Saved"):
			return fmt.Sprintf("Noted: %s I still know it after /clear.", toSecondPerson(fact))
		case strings.HasPrefix(text, "Memory already holds this"):
			return "I know that already."
		}
		return "I could not note that: " + rewordForUser(text)
	})
}

// forget forgets the saved note that is closest to what the user names.
func (t *turn) forget() Reply {
	what := forgetPattern.FindStringSubmatch(strings.TrimSpace(t.said))[1]
	note := closestNote(what, t.notes)
	if note == "" && len(t.results) == 0 {
		return Reply{Text: "I remember nothing about that. /memory shows what I remember."}
	}
	return t.useGroupTool("memory", "forget_memory", map[string]any{"memory": note}, func(text string) string {
		if gone := forgotten.FindStringSubmatch(text); gone != nil {
			return fmt.Sprintf("Forgotten: %s /memory brings it back within a day.", toSecondPerson(gone[1]))
		}
		return "I could not forget that: " + rewordForUser(firstLine(text))
	})
}
