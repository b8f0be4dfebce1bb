package memory

import (
	"cmp"
	"context"
	"math"
	"regexp"
	"slices"
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

// Weights of the ranking. They were chosen on the open half of testdata/recall.json.
const (
	meanWeight   = 0.4  // of the similarity of the whole texts
	intentWeight = 0.15 // of a date for "when", a name for "who" …
	vagueWeight  = 0.3  // of words that say little
	// countedWords is the number of words, the heaviest, of which a note has to match a share.
	countedWords = 6
	// minScore is the least score of a recalled note, minImpersonal that for a message that does not
	// speak of its sender, and minShare its least share of the best score.
	minScore      = 0.3
	minImpersonal = 0.55
	minShare      = 0.6
)

// intents pair what a question asks for with what its answer contains.
var intents = []struct{ asked, answer *regexp.Regexp }{
	{
		regexp.MustCompile(`(?i)\b(when|deadline|date|(what|which) (time|day)|until what|how (long|early|late|often))\b`),
		regexp.MustCompile(`(?i)\b(january|february|march|april|may|june|july|august|september|october|november|december|(mon|tues|wednes|thurs|fri|satur|sun)days?|weekdays?|every|daily|weekly|noon|morning|evening|before|after|until|at \d+|\d{1,2}:\d\d|[12]\d{3})\b`),
	},
	{
		regexp.MustCompile(`(?i)\b(where|address|which (city|country|town|place))\b`),
		regexp.MustCompile(`\b(in|at|on|near|from|to) (the )?\p{Lu}|\b(under|behind|next to|inside|in the|at the) `),
	},
	{
		regexp.MustCompile(`(?i)\b(who|whom|whose|names?)\b`),
		regexp.MustCompile(`[^.] \p{Lu}\p{Ll}+`),
	},
	{
		regexp.MustCompile(`(?i)\b(how (many|much|old|tall|big|far|warm)|number|size|code|pin|password)\b`),
		regexp.MustCompile(`\d|\b(two|three|four|five|six|seven|eight|nine|ten|twelve|hundred)\b`),
	},
}

// firstPerson matches messages that speak of their sender.
var firstPerson = regexp.MustCompile(`(?i)\b(i|me|my|mine|myself|we|us|our|ich|mir|mich|mein(e[mnrs]?)?|wir|uns|unsere?[mnrs]?|yo|mi|mis|nuestr[oa]s?|je|moi|mon|ma|mes|notre|nos)\b`)

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

// fitTokens returns the notes that fit into MaxRecalledTokens with their dates. The first that does not
// fit is cut.
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

// rank returns the notes that match a message, the best first; of equal ones, the order stays.
func (m *Memory) rank(notes []Note, message string) []scoredNote {
	q := newQuestion(m.lexicon(), notes, message)
	var hits []scoredNote
	best, least := 0.0, minImpersonal
	if firstPerson.MatchString(message) {
		least = minScore
	}
	for i, n := range notes {
		if s := q.score(n.Text, q.stems[i]); s >= least {
			hits = append(hits, scoredNote{n, s})
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
	text  string
	asked []string
	total float64 // weight of the heaviest words
	sum   *meaning.Vector
	stems [][]string // of the notes
	known map[string]int
	notes int
}

func newQuestion(l *lexicon, notes []Note, message string) *question {
	q := &question{similarity: similarity{l, map[string]*meaning.Vector{}, map[string][]string{}, map[[2]string]float64{}}, text: message, known: map[string]int{}, notes: len(notes)}
	for _, n := range notes {
		stems := l.Stems(n.Text)
		q.stems = append(q.stems, stems)
		for _, s := range stems {
			q.known[s]++
		}
	}
	q.asked = l.Stems(message)
	q.asked = q.asked[:min(len(q.asked), maxAsked)]
	q.sum = q.similarity.sum(q.asked, q.weight)
	var weights []float64
	for _, word := range q.asked {
		weights = append(weights, q.weight(word))
	}
	slices.Sort(weights)
	for _, w := range weights[max(0, len(weights)-countedWords):] {
		q.total += w
	}
	return q
}

// weight returns how much a word says: the fewer notes have it, the more.
func (q *question) weight(stem string) float64 {
	w := math.Log(1 + (float64(q.notes)+0.5)/(float64(q.known[stem])+0.5))
	if q.isVague[stem] {
		w *= vagueWeight
	}
	return w
}

// score returns how well a note matches: the share of the message's words that it matches, the
// similarity of the whole, and whether it has what the message asks for.
func (q *question) score(text string, stems []string) float64 {
	matched := 0.0
	for _, asked := range q.asked {
		best := 0.0
		for _, stem := range stems {
			best = max(best, q.of(asked, stem))
		}
		matched += q.weight(asked) * best
	}
	if matched == 0 {
		return 0
	}
	score := matched/q.total + meanWeight*cosine(q.sum, q.similarity.sum(stems, q.weight))
	for _, i := range intents {
		if i.asked.MatchString(q.text) && i.answer.MatchString(text) {
			score += intentWeight
		}
	}
	return score
}
