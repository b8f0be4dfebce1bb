package memory

import (
	_ "embed"
	"math"
	"slices"
	"strings"

	"oneclaw/toolgroups/search"
	"oneclaw/toolgroups/search/meaning"
)

//go:embed words.txt
var wordLists string

// Similarities of two words, at most 1. A similarity by vectors is at most maxVectorSimilarity.
const (
	sameMember          = 0.95 // of a class
	sameMeaning         = 0.85
	typingError         = 0.8
	memberOfClass       = 0.75
	sameTopic           = 0.4
	samePart            = 0.6 // one word contains the other
	maxVectorSimilarity = 0.9
	minCosine           = 0.3 // cosine up to which words are unrelated
)

// Lengths in bytes from which a word counts as a part of another, at its start or anywhere, and as misspelled.
const (
	minPrefix    = 4
	minSubstring = 5
	minMisspelt  = 5
)

// lexicon knows which words mean the same, belong to one topic, or exclude each other.
type lexicon struct {
	search.StemReader
	*glossary
	// synonyms, topics and exclusions are the numbers of the lines that have a stem, and classes those of
	// the classes that a stem names.
	synonyms, topics, exclusions, classes map[string][]int
	// members are the places of a stem in classes.
	members                  map[string][]member
	isVague, isHuman, isTime map[string]bool // isHuman includes pets
}

// member is a member of a class. Its synonyms have the same number.
type member struct{ class, number int }

// kinClasses is the number of classes at the beginning of the list, which are of relatives and pets.
const kinClasses = 8

// timeClasses are the first names of the classes of times. A note about another time may still be the answer.
var timeClasses = []string{"day", "weekend", "month", "season"}

func newLexicon() *lexicon {
	l := &lexicon{
		StemReader: search.NewStemReader(), synonyms: map[string][]int{}, topics: map[string][]int{}, exclusions: map[string][]int{},
		classes: map[string][]int{}, members: map[string][]member{}, isVague: map[string]bool{}, isHuman: map[string]bool{}, isTime: map[string]bool{},
	}
	number, class := 0, 0
	for line := range strings.Lines(wordLists) {
		number++
		mark := line[0]
		if mark == '>' {
			class++
			l.readClass(class, line[1:])
			continue
		}
		for _, stem := range l.StemReader.Stems(strings.TrimLeft(line, "#~?/@ ")) {
			switch mark {
			case '#':
			case '/':
				l.exclusions[stem] = append(l.exclusions[stem], number)
			case '?':
				l.isVague[stem] = true
			case '@':
				l.isHuman[stem] = true
			case '~':
				l.topics[stem] = append(l.topics[stem], number)
			default:
				l.synonyms[stem] = append(l.synonyms[stem], number)
			}
		}
	}
	l.glossary = newGlossary(l.isEnglish)
	return l
}

func (l *lexicon) readClass(class int, line string) {
	names, members, _ := strings.Cut(line, ":")
	isTime := slices.Contains(timeClasses, strings.Fields(names)[0])
	for _, stem := range l.StemReader.Stems(names) {
		l.classes[stem] = append(l.classes[stem], class)
		l.isHuman[stem] = l.isHuman[stem] || class <= kinClasses
	}
	number := 0
	for words := range strings.FieldsSeq(members) {
		number++
		for _, stem := range l.StemReader.Stems(words) {
			l.members[stem] = append(l.members[stem], member{class, number})
			l.isHuman[stem] = l.isHuman[stem] || class <= kinClasses
			l.isTime[stem] = l.isTime[stem] || isTime
		}
	}
}

// isEnglish reports whether a word is a known English one, and whether it is a function word.
func (l *lexicon) isEnglish(word string) (known, function bool) {
	stems := l.StemReader.Stems(word)
	if len(stems) == 0 {
		return true, true
	}
	s := stems[0]
	return l.synonyms[s] != nil || l.topics[s] != nil || l.members[s] != nil || l.classes[s] != nil || l.isVague[s], false
}

// isForeign reports whether fewer than one in minForeign words are known English, in a text of at least
// minForeign words. Such a text can be compared by its letters alone.
func (l *lexicon) isForeign(text string) bool {
	words, known := wordPattern.FindAllString(fold(text), maxGlossed), 0
	for _, w := range words {
		if is, _ := l.isEnglish(w); is {
			known++
		}
	}
	return len(words) >= minForeign && minForeign*known < len(words)
}

// minForeign bounds texts in another language: see isForeign.
const minForeign = 3

// isName reports whether a word that is written like a name is not one of everyday language.
func (l *lexicon) isName(word string) bool {
	known, function := l.isEnglish(word)
	return !known && !function
}

// Stems returns the stems of an English text's words, each once, without stop words and single letters.
func (l *lexicon) Stems(text string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(l.StemReader.Stems(strings.ToLower(text)), func(stem string) bool {
		drop := seen[stem] || len(stem) == 1 && (stem[0] < '0' || stem[0] > '9')
		seen[stem] = true
		return drop
	})
}

// areOpposed reports whether two stems are different members of a class, or exclude each other.
func (l *lexicon) areOpposed(a, b string) bool {
	opposed := false
	for _, x := range l.members[a] {
		for _, y := range l.members[b] {
			if x == y {
				return false
			}
			opposed = opposed || x.class == y.class
		}
	}
	return opposed || a != b && shareList(l.exclusions, a, b)
}

// isInClass reports whether one stem names a class that the other is in.
func (l *lexicon) isInClass(name, stem string) bool {
	return slices.ContainsFunc(l.members[stem], func(m member) bool { return slices.Contains(l.classes[name], m.class) })
}

// similarity compares words by their vectors and lists. It looks up each vector once.
type similarity struct {
	*lexicon
	vectors map[string]*meaning.Vector
	known   map[[2]string]float64 // by word and stem
}

// of returns how near the meanings of two stems are, from 0 to 1.
func (s similarity) of(asked, stem string) float64 {
	near, ok := s.known[[2]string{asked, stem}]
	if !ok {
		near = s.between(asked, stem)
		s.known[[2]string{asked, stem}] = near
	}
	return near
}

func (s similarity) vector(stem string) *meaning.Vector {
	v, ok := s.vectors[stem]
	if !ok {
		if found, known := meaning.Lookup(stem); known {
			v = &found
		}
		s.vectors[stem] = v
	}
	return v
}

func (s similarity) between(a, b string) float64 {
	if a == b {
		return 1
	}
	areSynonyms := shareList(s.synonyms, a, b)
	if !areSynonyms && s.areOpposed(a, b) {
		return 0
	}
	near := 0.0
	x, y := s.vector(a), s.vector(b)
	if x != nil && y != nil {
		near = max(0, cosine(x, y)-minCosine) / (1 - minCosine) * maxVectorSimilarity
	}
	switch {
	case slices.ContainsFunc(s.members[a], func(m member) bool { return slices.Contains(s.members[b], m) }):
		near = max(near, sameMember)
	case areSynonyms, shareList(s.classes, a, b):
		near = max(near, sameMeaning)
	case s.isInClass(a, b), s.isInClass(b, a):
		near = max(near, memberOfClass)
	case shareList(s.topics, a, b):
		near = max(near, sameTopic)
	}
	if isPart(a, b) || isPart(b, a) {
		near = max(near, samePart)
	}
	if (x == nil || y == nil) && min(len(a), len(b)) >= minMisspelt && search.IsTypo(a, b) {
		near = max(near, typingError)
	}
	return near
}

func shareList(lists map[string][]int, a, b string) bool {
	return slices.ContainsFunc(lists[a], func(n int) bool { return slices.Contains(lists[b], n) })
}

func isPart(part, word string) bool {
	return len(part) >= minPrefix && strings.HasPrefix(word, part) || len(part) >= minSubstring && strings.Contains(word, part)
}

// sum returns the sum of the vectors of stems, each multiplied by its weight.
func (s similarity) sum(stems []string, weight func(string) float64) *meaning.Vector {
	var sum meaning.Vector
	for _, stem := range stems {
		if v := s.vector(stem); v != nil {
			for i := range sum {
				sum[i] += v[i] * float32(weight(stem))
			}
		}
	}
	return &sum
}

// cosine returns the cosine of the angle between two vectors; 0 if one is zero.
func cosine(x, y *meaning.Vector) float64 {
	var dot, a, b float64
	for i := range x {
		dot += float64(x[i]) * float64(y[i])
		a += float64(x[i]) * float64(x[i])
		b += float64(y[i]) * float64(y[i])
	}
	if a == 0 || b == 0 {
		return 0
	}
	return dot / math.Sqrt(a*b)
}

func squared(v *meaning.Vector) (sum float64) {
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return sum
}
