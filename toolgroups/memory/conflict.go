package memory

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"oneclaw/internal/lazyregexp"
	"oneclaw/toolgroups/search/meaning"
)

// claim is the content of a simple sentence: a subject has a value, and can have only one such value at a
// time. "The cat is called Minka" has the subject cat and the value Minka.
type claim struct {
	subject, value []string // stems; those of the subject are sorted
	of, written    string   // the subject and the value as they are written
}

// Bounds of a note that is taken for a claim, in words and bytes. Longer notes say more than one thing.
const (
	maxClaimWords = 16
	maxClaimBytes = 200
)

// Least cosines of two words that are values of one kind, such as long and short.
const (
	minNear      = 0.45 // in values that have their other words in common
	minNearAlone = 0.6  // in values of one word
)

// relation is a form of claims.
type relation struct {
	// pattern has the subject as its first group and the value as its last.
	pattern *lazyregexp.Regexp
	// excludes reports whether two different values exclude each other. If it is nil, any two do.
	excludes func(old, new claim) bool
}

var relations = []relation{
	{lazyregexp.MustCompile(`(?i)^(.*?)\b(?:(?:is|are) )?(?:called|named|goes by|heißt) (.+)$`), areOfOne},
	{lazyregexp.MustCompile(`(?i)^(.*?\bname(?: of .*?)?) (?:is|ist) (.+)$`), nil},
	{lazyregexp.MustCompile(`(?i)^(.*?)\b(?:lives?|living|resides?|moved|relocated|wohnt|lebt)(?: from .+)? (?:in|to|nach) (.+)$`), areNames},
	{lazyregexp.MustCompile(`(?i)^(.*?)\b(?:lives?|living|resides?) at (.+)$`), areNames},
	{lazyregexp.MustCompile(`(?i)^(.*?)\b(?:works?|working|is employed|arbeitet) (?:at|for|by|bei) (.+)$`), areNames},
	{lazyregexp.MustCompile(`(?i)^(.*?)\b(?:works?|working|arbeitet) (?:as|als) (.+)$`), nil},
	{lazyregexp.MustCompile(`(?i)^(.*?)\b(?:drives?|fährt) (.+)$`), areNames},
	{lazyregexp.MustCompile(`(?i)^(.+?) (?:is|are|begins?|starts?|takes place|meets?) (.+)$`), areTimes},
	{lazyregexp.MustCompile(`(?i)^(.+?) (?:opens?|leaves?|departs?|arrives?) (.+)$`), areTimes},
	{lazyregexp.MustCompile(`(?i)^(.+?)(?:'s deadline is| (?:ends?|closes?|expires?|is due)) (.+)$`), areTimes},
	{lazyregexp.MustCompile(`(?i)^((?:the|my|our|.*'s) .+?) (?:is|are|stands?|lies|hangs?|is kept|is parked|is hidden) ((?:in|on|at|under|behind|near|next to|with) .+)$`), arePlaces},
	{lazyregexp.MustCompile(`(?i)^(.+?)(?: is| are| ist| =|:) (.+)$`), areOfAttribute},
	{lazyregexp.MustCompile(`(?i)^(.*?)\b(?:is|are) (an? .+)$`), areKinds},
	{lazyregexp.MustCompile(`(?i)^(.*?)\b(vegan|vegetarian|pescatarian)(?: (?:since|from|again|seit)\b.*)?$`), nil},
	{lazyregexp.MustCompile(`(?i)^(.*?)\bprefers? (.+)$`), areAlternatives},
	{lazyregexp.MustCompile(`(?i)^(.*?)\b(?:has|have|is|are|weighs?|costs?|earns?|takes?|pays?|owns?|needs?|drinks?|sleeps?) (.+)$`), areNumbers},
}

var (
	numberPattern = lazyregexp.MustCompile(`(?i)\d[\d.,:]*|\b(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b`)
	// attributePattern matches attributes of which a subject has only one. namedPattern matches those whose
	// values are names.
	attributePattern = lazyregexp.MustCompile(`(?i)\b(favou?rite|preferred|password|passcode|code|pin|address|e-?mail|birthday|birth|age|size|weight|height|colou?r|nickname|username|deadline|budget|price|rent|salary|number|time ?zone|diet|version|theme|group|passwort|adresse|geburtstag|\w*nummer)\b`)
	namedPattern     = lazyregexp.MustCompile(`(?i)\b(employer|boss|manager|doctor|dentist|lawyer|landlord|bank|insurer|insurance|car|bike|laptop|best friend|arzt|chef)\b`)
	// severalPattern matches words about a subject of which there may be several.
	severalPattern = lazyregexp.MustCompile(`(?i)\b(has|have|owns?|hat|another|other|second|one)\b`)
	dayPattern     = lazyregexp.MustCompile(`(?i)\b(january|february|march|april|may|june|july|august|september|october|november|december|(mon|tues|wednes|thurs|fri|satur|sun)days?|weekdays?|daily|\d{4})\b`)
	clockPattern   = lazyregexp.MustCompile(`(?i)\bat \w|\d:\d\d|\d ?([ap]m|o'clock)\b`)
	articlePattern = lazyregexp.MustCompile(`(?i)^(the|an?) `)
	// changePattern matches words that say that a value has changed.
	changePattern   = lazyregexp.MustCompile(`(?i)^(.+?) (?:has been |was |has |is )?(?:changed|postponed|rescheduled|extended|switched|set|moved) to (.+)$`)
	sentenceEnd     = lazyregexp.MustCompile(`[!?;]\s|[^.\s]{4}\.\s|\n`) // not the full stop of Dr. or St.
	negationPattern = lazyregexp.MustCompile(`(?i)\b(not|no longer|never|any ?more|cannot|kein\w*|nicht)\b|\w+n't\b`)
)

// unspecific are words that tell neither subjects nor values apart.
const unspecific = " the a an my his her their our its i he she they of user users is are now currently actually instead does do did der die das mein meine jetzt for new after all really "

// contradicts reports whether a new note cannot be true together with an old one, as far as simple
// sentences show. A note that says only a part of the old one does not contradict it.
func contradicts(oldNote, newNote string) bool {
	before, after := oneSentence(oldNote), oneSentence(newNote)
	if before == "" || after == "" {
		return false
	}
	if negationPattern.MatchString(before) != negationPattern.MatchString(after) {
		return slices.Equal(affirmed(before), affirmed(after))
	}
	return slices.ContainsFunc(relations, func(r relation) bool {
		a, b := r.pattern.FindStringSubmatch(before), r.pattern.FindStringSubmatch(after)
		if a == nil || b == nil {
			return false
		}
		was, is := newClaim(a), newClaim(b)
		return slices.Equal(was.subject, is.subject) && !isWithin(is.value, was.value) && (r.excludes == nil || r.excludes(was, is))
	})
}

// oneSentence returns a note that is one short sentence, without words such as now, and "" for any other
// note. It turns "has changed to" into "is".
func oneSentence(note string) string {
	if len(note) > maxClaimBytes {
		return ""
	}
	note = strings.TrimRight(strings.ReplaceAll(note, "’", "'"), ".! ")
	words := strings.Fields(note)
	if len(words) > maxClaimWords || sentenceEnd.MatchString(note) {
		return ""
	}
	words = slices.DeleteFunc(words, func(w string) bool {
		return slices.Contains([]string{"now", "currently", "actually", "jetzt"}, strings.ToLower(strings.Trim(w, ",")))
	})
	note = strings.Join(words, " ")
	if m := changePattern.FindStringSubmatch(note); m != nil && (namesTime(m[2]) || attributePattern.MatchString(m[1])) {
		return m[1] + " is " + m[2]
	}
	return note
}

func newClaim(match []string) claim {
	c := claim{of: match[1], written: match[len(match)-1]}
	c.subject, c.value = specific(c.of), specific(c.written)
	slices.Sort(c.subject)
	return c
}

// specific returns the stems of the words that tell subjects and values apart.
func specific(text string) []string {
	var out []string
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		word = strings.TrimSuffix(strings.TrimFunc(word, unicode.IsPunct), "'s")
		if word != "" && !strings.Contains(unspecific, " "+word+" ") {
			out = append(out, meaning.Stem(word))
		}
	}
	return out
}

// affirmed returns the sorted stems of a sentence without its negation.
func affirmed(sentence string) []string {
	out := specific(negationPattern.ReplaceAllString(sentence, ""))
	slices.Sort(out)
	return out
}

func isWithin(words, all []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(all, w) })
}

// areOfOne accepts values of a subject of which there is only one: not those of "has a cat called".
func areOfOne(old, _ claim) bool { return !severalPattern.MatchString(old.of) }

// areNames accepts values that begin with a name.
func areNames(old, new claim) bool { return beginsWithName(old.written) && beginsWithName(new.written) }

func beginsWithName(text string) bool {
	first, _ := utf8.DecodeRuneInString(articlePattern.ReplaceAllString(text, ""))
	return unicode.IsUpper(first)
}

// areTimes accepts two days, or two times of day.
func areTimes(old, new claim) bool {
	return areBoth(dayPattern, old, new) || areBoth(clockPattern, old, new)
}

func areBoth(pattern *lazyregexp.Regexp, old, new claim) bool {
	return pattern.MatchString(old.written) && pattern.MatchString(new.written)
}

func arePlaces(old, new claim) bool { return !namesTime(old.written) && !namesTime(new.written) }

func namesTime(text string) bool {
	return dayPattern.MatchString(text) || clockPattern.MatchString(text)
}

// areOfAttribute accepts values of an attribute, and names of a person or thing of which a subject has only
// one.
func areOfAttribute(old, new claim) bool {
	return attributePattern.MatchString(old.of) || namedPattern.MatchString(old.of) && areNames(old, new)
}

// areKinds accepts things of one kind that differ in a name: a Synology NAS and an fnos NAS, but not a
// freelance photographer and a passionate photographer, who may be the same.
func areKinds(old, new claim) bool {
	was, is, ok := onlyDifference(old.value, new.value)
	isName := func(c claim, word string) bool {
		_, known := meaning.Lookup(word)
		return !known || beginsWithName(c.written)
	}
	return ok && old.value[len(old.value)-1] == new.value[len(new.value)-1] && isName(old, was) && isName(new, is)
}

// areAlternatives accepts short answers and long answers, or tea in the morning and coffee in the morning.
func areAlternatives(old, new claim) bool {
	a, b, ok := onlyDifference(old.value, new.value)
	x, known := meaning.Lookup(a)
	y, alsoKnown := meaning.Lookup(b)
	least := minNear
	if len(old.value) == 1 {
		least = minNearAlone
	}
	return ok && known && alsoKnown && cosine(&x, &y) >= least
}

// onlyDifference returns the words in which two texts of equal length differ, if there is one pair.
func onlyDifference(old, new []string) (a, b string, ok bool) {
	if len(old) != len(new) {
		return "", "", false
	}
	count := 0
	for i := range old {
		if old[i] != new[i] {
			a, b = old[i], new[i]
			count++
		}
	}
	return a, b, count == 1
}

// areNumbers accepts values that differ in their numbers alone.
func areNumbers(old, new claim) bool {
	without := func(c claim) string { return numberPattern.ReplaceAllString(strings.ToLower(c.written), "#") }
	return without(old) == without(new) && numberPattern.MatchString(old.written)
}
