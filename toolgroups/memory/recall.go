package memory

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups/search/meaning"
)

// Bounds of recalling notes for a message.
const (
	// MaxRecalled and MaxRecalledTokens bound the notes recalled for a message.
	MaxRecalled       = 5
	MaxRecalledTokens = 600
	// minRoom is the least number of tokens in which the beginning of a long note is shown.
	minRoom = 60
	// maxAsked bounds the words of a message that count.
	maxAsked = 60
)

// Weights of the ranking. They were searched on the open sets in testdata, cross-validated over persons.
const (
	meanWeight   = 0.5  // of the similarity of the whole texts
	intentWeight = 0.25 // of a date for "when", a name for "who" …, as a share of what is covered
	dietWeight   = 0.25 // of what a person does not eat or drink, for a meal
	vagueWeight  = 0.3  // of words that say little
	// countedWords is the number of words, the heaviest, of which a note has to match a share.
	countedWords = 6
	// nearWord is the similarity from which a word of a note is one that is asked for.
	nearWord = 0.7
	// minCommon is the least number of notes of which a word does not count if most have it.
	minCommon = 4
)

// Factors of the score of a note that says something else than is asked for.
const (
	opposedFactor = 0.5  // another member of a class: a cat for a dog
	otherFactor   = 0.68 // about a person whom the message does not mention
	missingFactor = 0.6  // not about the person whom the message mentions
	pastFactor    = 0.7  // about the past although the message is not, or the reverse
	foreignFactor = 0.7  // without a name that the message has
	lacksFactor   = 0.2  // without words that other notes match, times their share
)

// Least scores of a recalled note, by the kind of message.
const (
	minPersonal = 0.3  // the message speaks of its sender
	minNamed    = 0.55 // it has a name that the note has, or is in an unknown language
	minDefinite = 0.7  // it asks for something certain
	minBare     = 0.75 // it asks for nothing certain
)

const (
	// minEvidence is the least weight of the words that a recalled note matches.
	minEvidence = 0.25
	// minShare is the least score of a recalled note, as a share of the best score.
	minShare = 0.9
)

// Recall returns the notes of an owner that match a message by their words or meaning and are not in
// the snapshot of the conversation, which began at the given time: older notes that did not fit, and
// newer ones. The best come first. Long notes are cut, so that all fit into [MaxRecalledTokens].
func (m *Memory) Recall(ctx context.Context, owner, message string, began time.Time) ([]Note, error) {
	notes, err := m.Notes(ctx, owner)
	if err != nil {
		return nil, err
	}
	shown := newestThatFit(slices.DeleteFunc(slices.Clone(notes), func(n Note) bool { return n.SavedAt.After(began) }))
	isShown := map[string]bool{}
	for _, n := range shown {
		isShown[n.ID()] = true
	}
	isHidden := func(n Note) bool { return !isShown[n.ID()] }
	if !slices.ContainsFunc(notes, isHidden) {
		return nil, nil
	}
	var found []Note
	for _, hit := range m.rank(notes, message) {
		if isHidden(hit.Note) && len(found) < MaxRecalled {
			found = append(found, hit.Note)
		}
	}
	return m.fitTokens(found), nil
}

// fitTokens returns the notes that fit into MaxRecalledTokens with their dates. It cuts a note that does
// not fit, or leaves it and the later ones out if less than minRoom tokens are left.
func (m *Memory) fitTokens(notes []Note) []Note {
	room := 4 * MaxRecalledTokens
	for i := range notes {
		for room < quarterTokens(m.Line(notes[i])) {
			if room < 4*minRoom {
				return notes[:i]
			}
			notes[i].Text = wording.Clip(notes[i].Text, len([]rune(notes[i].Text))*3/4)
		}
		room -= quarterTokens(m.Line(notes[i]))
	}
	return notes
}

// Line returns a note as a list item with the day on which it was saved.
func (m *Memory) Line(n Note) string { return listItem(n.Text) + " (saved " + m.Day(n) + ")" }

// Day returns the day on which a note was saved, in the configured zone.
func (m *Memory) Day(n Note) string { return n.SavedAt.In(m.cfg.Zone()).Format("2 Jan 2006") }

// scoredNote is a note with its score for a message.
type scoredNote struct {
	Note
	score float64
}

// rank returns the notes that match a message, the best first. Notes with equal scores keep their order.
func (m *Memory) rank(notes []Note, message string) []scoredNote {
	q := newQuestion(m.lexicon(), notes, message)
	var hits []scoredNote
	best := 0.0
	for i := range notes {
		f := q.featuresOf(i)
		if s := f.score(); s >= q.leastScore(f) && f.evidence >= minEvidence {
			hits = append(hits, scoredNote{notes[i], s})
			best = max(best, s)
		}
	}
	hits = slices.DeleteFunc(hits, func(h scoredNote) bool { return h.score < minShare*best })
	slices.SortStableFunc(hits, func(a, b scoredNote) int { return cmp.Compare(b.score, a.score) })
	return hits
}

// question is a message for which notes are ranked.
type question struct {
	similarity
	messageKind
	isUntranslated bool
	text           string          // in English
	has            map[string]bool // words in lower case
	names          []string        // capitalized words that are not of everyday language
	asked          []string        // stems
	weights        map[string]float64
	heaviest       float64         // weight of the heaviest words
	answered       map[string]bool // words that a note matches
	sum            *meaning.Vector
	known          float64    // share of the sum in that of all words
	texts          []string   // of the notes, in English
	stems          [][]string // of the notes
}

func newQuestion(l *lexicon, notes []Note, message string) *question {
	q := &question{
		similarity: similarity{l, map[string]*meaning.Vector{}, map[[2]string]float64{}}, text: expand(l.translate(message)),
		has: map[string]bool{}, weights: map[string]float64{}, answered: map[string]bool{},
	}
	q.messageKind, q.isUntranslated = kindOf(q.text), l.isForeign(q.text)
	for _, word := range wordPattern.FindAllString(strings.ToLower(q.text), -1) {
		q.has[word] = true
	}
	if l.translate(message) == message { // in German all nouns begin with a capital
		q.names = slices.DeleteFunc(namesIn(q.text), func(name string) bool { return !l.isName(name) })
	}
	count := map[string]int{}
	for _, n := range notes {
		text := l.translate(n.Text)
		stems := l.Stems(text)
		q.texts, q.stems = append(q.texts, text), append(q.stems, stems)
		for _, s := range stems {
			count[s]++
		}
	}
	// Words that most notes have, such as the name of their owner, do not count.
	isCommon := func(stem string) bool { return len(notes) >= minCommon && 2*count[stem] > len(notes) }
	for i := range q.stems {
		q.stems[i] = slices.DeleteFunc(q.stems[i], isCommon)
	}
	q.asked = slices.DeleteFunc(l.Stems(greeting.ReplaceAllString(q.text, "")), isCommon)
	q.asked = q.asked[:min(len(q.asked), maxAsked)]
	q.weigh()
	return q
}

// weigh sums up the weights and vectors of the words.
func (q *question) weigh() {
	var weights []float64
	unknown := 0.0 // as if each word without a vector had a direction of its own
	for _, word := range q.asked {
		w := q.weight(word)
		weights = append(weights, w)
		if q.vector(word) == nil {
			unknown += w * w
		}
	}
	slices.Sort(weights)
	for _, w := range weights[max(0, len(weights)-countedWords):] {
		q.heaviest += w
	}
	q.sum = q.similarity.sum(q.asked, q.weight)
	if l := squared(q.sum); l > 0 {
		q.known = math.Sqrt(l / (l + unknown))
	}
}

// weight returns how much a word says, at most 1: the fewer notes match it, the more.
func (q *question) weight(stem string) float64 {
	if w, ok := q.weights[stem]; ok {
		return w
	}
	matching := 0.0
	for _, stems := range q.stems {
		if near := q.nearest(stem, stems); near >= nearWord {
			matching += near
			q.answered[stem] = true
		}
	}
	all := float64(len(q.stems)) + 0.5
	w := math.Log(1+all/(max(1, matching)+0.5)) / math.Log(1+all/1.5)
	if q.isVague[stem] {
		w *= vagueWeight
	}
	q.weights[stem] = w
	return w
}

// nearest returns the similarity of a word to the nearest of others.
func (q *question) nearest(word string, others []string) (near float64) {
	for _, other := range others {
		near = max(near, q.of(word, other))
	}
	return near
}

// features tell how well a note matches a message.
type features struct {
	// covered is the share of the message's words that the note matches, evidence their weight, and
	// lacking the share of those that only other notes match.
	covered, evidence, lacking float64
	// cosine is the similarity of the whole texts.
	cosine float64
	// intent is 1 if the note has what the message asks for, such as a date, and -1 if it lacks that.
	intent float64
	// limitsDiet reports that the message is about a meal, and the note about what the person does not eat.
	limitsDiet bool
	// The other features are described at their factors. isNamed reports that note and message have a name in common.
	isOpposed, isOther, isMissing, isPast, isForeign, isNamed bool
}

func (f features) score() float64 {
	s := f.covered*(1+intentWeight*f.intent) + meanWeight*f.cosine
	if f.limitsDiet {
		s += dietWeight
	}
	for _, one := range []struct {
		is     bool
		factor float64
	}{{f.isOpposed, opposedFactor}, {f.isOther && !f.isNamed, otherFactor}, {f.isMissing, missingFactor}, {f.isPast, pastFactor}, {f.isForeign, foreignFactor}} {
		if one.is {
			s *= one.factor
		}
	}
	return s * (1 - lacksFactor*f.lacking)
}

// leastScore returns the score from which a note with features is recalled.
func (q *question) leastScore(f features) float64 {
	isNamed := f.isNamed && !f.isForeign
	switch {
	case q.isPersonal:
		return minPersonal
	case q.isTask, q.isGeneral && !isNamed:
		return math.Inf(1)
	case isNamed, q.isUntranslated:
		return minNamed
	case q.isBare:
		return minBare
	}
	return minDefinite
}

func (q *question) featuresOf(i int) (f features) {
	stems, text := q.stems[i], q.texts[i]
	for _, asked := range q.asked {
		near := q.nearest(asked, stems)
		f.evidence += q.weight(asked) * near
		if q.answered[asked] && !q.isVague[asked] && near < nearWord {
			f.lacking += q.weight(asked) / q.heaviest
		}
	}
	if f.evidence == 0 {
		return f
	}
	f.covered = f.evidence / q.heaviest
	f.cosine = cosine(q.sum, q.similarity.sum(stems, q.weight)) * q.known
	f.intent, f.limitsDiet = matchIntents(q.text, q.withoutAsked(text), text)
	f.isOpposed = slices.ContainsFunc(q.asked, func(asked string) bool {
		return q.nearest(asked, stems) < nearWord && slices.ContainsFunc(stems, func(stem string) bool {
			return !q.isTime[asked] && q.areOpposed(asked, stem) && q.nearest(stem, q.asked) < nearWord
		})
	})
	f.isOther, f.isMissing = q.unmatchedHumans(stems, q.asked), q.unmatchedHumans(q.asked, stems)
	f.isPast = differsInPast(q.text, text)
	f.isNamed = slices.ContainsFunc(namesIn(text), func(name string) bool { return q.has[name] && q.isName(name) })
	written := strings.ToLower(text)
	f.isForeign = slices.ContainsFunc(q.names, func(name string) bool { return !strings.Contains(written, name) })
	return f
}

// withoutAsked returns a text without the words of the message.
func (q *question) withoutAsked(text string) string {
	return wordPattern.ReplaceAllStringFunc(text, func(word string) string {
		if q.has[strings.ToLower(word)] {
			return ""
		}
		return word
	})
}

// unmatchedHumans reports whether words speak of persons or pets, and none of these is among others.
func (q *question) unmatchedHumans(words, others []string) bool {
	found := false
	for _, w := range words {
		if !q.isHuman[w] {
			continue
		}
		if q.nearest(w, others) >= nearWord {
			return false
		}
		found = true
	}
	return found
}
