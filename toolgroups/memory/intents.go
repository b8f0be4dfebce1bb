package memory

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"oneclaw/internal/lazyregexp"
)

// intents pair patterns of questions with patterns of their answers, in English.
var intents = []struct {
	asked, answer *lazyregexp.Regexp
	// isDiet is true if the answer limits what a person eats. A note without such limits answers as well.
	isDiet bool
}{
	{asked: lazyregexp.MustCompile(`(?i)\b(when|deadline|date|due|(what|which) (time|days?)|until what|how (long|early|late|often))\b`), answer: timePattern},
	{
		asked:  lazyregexp.MustCompile(`(?i)\b(where|address|which (city|country|town|place|street))\b`),
		answer: lazyregexp.MustCompile(`\b(in|at|on|near|from|to|with) (the )?\p{Lu}|\b(under|behind|next to|inside|in the|on the|at the|at a|in a|with) `),
	},
	{asked: lazyregexp.MustCompile(`(?i)\b(who|whom|whose|names?|called)\b`), answer: namePattern},
	{
		asked:  lazyregexp.MustCompile(`(?i)\b(how (many|much|old|tall|big|far|warm|high|large)|age|number|size|code|pin|password|price|cost|combination)\b`),
		answer: lazyregexp.MustCompile(`\d|\b(two|three|four|five|six|seven|eight|nine|ten|twelve|twins|hundred)\b`),
	},
	{
		asked:  lazyregexp.MustCompile(`(?i)\b(job|profession|occupation|career|what do(es)? .{1,30} do)\b`),
		answer: lazyregexp.MustCompile(`(?i)\b(works?|working|job|employed|freelance|self-employed|(is|as) an? \p{Ll}+(er|or|ist|ian|ant|ife|ect|man|rse|ef)\b)`), //nolint:misspell // the end of architect
	},
	{
		asked:  lazyregexp.MustCompile(`(?i)\b(eat|drink|food|menu|recipe|dish|meal|snack|dinner|lunch|breakfast|restaurant|cook|bake|order|(can|may|should) (i|we) have)\b`),
		answer: lazyregexp.MustCompile(`(?i)\b(allerg\w*|intoleran\w*|vegan|vegetarian|diabetic|c(oeliac|eliac)|halal|kosher|(can't|cannot|doesn't|does not|don't|never|no|avoids?|hates?) (stand|eats?|drinks?|have|tolerate)?)\b`),
		isDiet: true,
	},
}

// timePattern matches dates, times and durations.
var timePattern = lazyregexp.MustCompile(`(?i)\b(` + monthsAndDays + `|spring|summer|autumn|winter|weekdays?|weekends?|every|daily|weekly|monthly|noon|midnight|mornings?|afternoons?|evenings?|nights?|before|after|until|since|at \d+|\d{1,2}:\d\d|\d+ ?(am|pm)|[12]\d{3}|\d+ (days?|weeks?|months?|years?|hours?|minutes?))\b`)

const monthsAndDays = `january|february|march|april|may|june|july|august|september|october|november|december|(mon|tues|wednes|thurs|fri|satur|sun)days?`

// namePattern matches a capitalized word that is not the first one of a sentence.
var namePattern = lazyregexp.MustCompile(`[^.] \p{Lu}\p{Ll}+`)

// notNames matches capitalized words that are no names.
var notNames = lazyregexp.MustCompile(`(?i)\b(` + monthsAndDays + `)\b`)

// phrases replace expressions whose words alone do not say what is meant.
var phrases = []struct {
	pattern *lazyregexp.Regexp
	means   string
}{
	{lazyregexp.MustCompile(`(?i)\bfor a living\b`), "as job"},
	{lazyregexp.MustCompile(`(?i)\bhow old\b`), "how old age"},
	{lazyregexp.MustCompile(`(?i)\bhow tall\b`), "how tall height"},
	{lazyregexp.MustCompile(`(?i)\be-?mail address\b`), "email"},
	{lazyregexp.MustCompile(`(?i)\bphone number\b`), "phone"},
	{lazyregexp.MustCompile(`(?i)\bdo I report to\b`), "is my boss"},
}

var (
	// firstPerson matches messages that speak of their sender.
	firstPerson = lazyregexp.MustCompile(`(?i)\b(i|me|my|mine|myself|we|us|our|ours)\b`)
	// notPersonal matches words of the first person that do not speak of the sender.
	notPersonal = lazyregexp.MustCompile(`(?i)\b(how (do|can|should|would|could) (i|you|we)|(tell|show|give|remind|find|draw|teach|help|wake|send|bring|get|let|explain|explain to) (me|us)|let's)\b`)
	// greeting matches greetings and thanks, which ask for nothing.
	greeting = lazyregexp.MustCompile(`(?i)\bgood (morning|day|afternoon|evening|night)\b|^\W*(morning|evening|night|thanks?|thx|hello|hi|hey)\W*$`)
	// task matches requests that no fact about a person belongs to, unless they speak of the sender.
	task = lazyregexp.MustCompile(`(?i)\b(translat\w+|convert|define|definition of|capital (of|city)|difference between|meaning of|plural of|synonyms?|rhymes?|spell|pronounce|how do you say|what does \S+ mean|what means|joke|inhabitants|population|how many people)\b` +
		`|\d ?(squared|cubed|times|plus|minus|divided|%|[x*/+^-] ?\d)` +
		`|^\W*(what|who) ?('s|’s|is|are|was|were) an? ` +
		`|\b(invented|discovered|painted|composed|directed|founded|who (wrote|sang|built|won))\b` +
		`|\b(the same as|of all time|in the world|on average)\b` +
		`|^\W*((please|can|could|would|you) )*(generate|write|draw|compose|create|make|design|proofread|rewrite|rephrase|shorten|summari[sz]e|explain|describe|list|name|turn|fix|search)\b`)
	// generalKnowledge matches questions about the world, unless they name a person or a thing that is remembered.
	generalKnowledge = lazyregexp.MustCompile(`(?i)^\W*why\b|\S+er than\b|what ?('s|’s|is) new\b|^\W*what (is|are) \S+ good for` +
		`|^\W*how (do|does|did|is|are|was|were|(long|far|many|much|often) (do|does) an?)\b` +
		`|^\W*what (do|does|did|causes?|makes?|eats?|happens) ` +
		`|^\W*(what ?('s|’s|is|are) (?-i:\p{Ll}+)|(are|is|do|does) (?-i:\p{Ll}+)s? (?-i:\p{Ll}+))\W*$`)
	// howTo matches questions that begin like general ones, although they may speak of the sender.
	howTo = lazyregexp.MustCompile(`(?i)^\W*how (do|can|should|did) (i|we)\b`)
	// bareQuestion matches the beginning of a question. definite matches words that point to a certain thing.
	bareQuestion = lazyregexp.MustCompile(`(?i)^\W*(what|who|how|why|when|where|is|are|was|were|do|does|did|can|could|will|would|should)\b`)
	definite     = lazyregexp.MustCompile(`(?i)\b(the|this|that|these|those)\b`)
	// past matches texts about the past, and isOver texts that may be about it.
	past   = lazyregexp.MustCompile(`(?i)\b(ex|former|formerly|previous|used to)\b`)
	isOver = lazyregexp.MustCompile(`(?i)\b(ex|former|formerly|previous|used to|until|was|lived|old)\b`)
)

// messageKind says what a message is about: its sender, a request that no fact belongs to, knowledge of
// the world, or nothing certain.
type messageKind struct{ isPersonal, isTask, isGeneral, isBare bool }

func kindOf(text string) messageKind {
	isOpen := !howTo.MatchString(text) && !definite.MatchString(text)
	return messageKind{
		isPersonal: firstPerson.MatchString(notPersonal.ReplaceAllString(text, " ")),
		isTask:     task.MatchString(text),
		isGeneral:  generalKnowledge.MatchString(text) && isOpen,
		isBare:     bareQuestion.MatchString(text) && isOpen,
	}
}

// expand applies phrases to a message.
func expand(text string) string {
	for _, p := range phrases {
		text = p.pattern.ReplaceAllString(text, p.means)
	}
	return text
}

// matchIntents returns 1 if a note has something that a message asks for, -1 if it lacks that, and 0 if the
// message asks for nothing of the kind. limitsDiet is true if the message is about food and the note says
// what a person does not eat. withoutAsked is the note without the words of the message, because a name in
// the message is no answer.
func matchIntents(message, withoutAsked, note string) (intent float64, limitsDiet bool) {
	for _, one := range intents {
		if !one.asked.MatchString(message) {
			continue
		}
		text := note
		if one.answer == namePattern {
			text = notNames.ReplaceAllString(withoutAsked, "")
		}
		isThere := one.answer.MatchString(text)
		switch {
		case one.isDiet:
			limitsDiet = isThere
		case isThere:
			intent = 1
		case intent == 0:
			intent = -1
		}
	}
	return intent, limitsDiet
}

// differsInPast reports whether either the message or the note is about the past, and the other is not.
func differsInPast(message, note string) bool {
	if past.MatchString(message) {
		return !isOver.MatchString(note)
	}
	return past.MatchString(note)
}

// namesIn returns, in lower case, the capitalized words that do not begin a sentence or are possessive.
func namesIn(text string) (names []string) {
	for _, at := range wordPattern.FindAllStringIndex(text, maxGlossed) {
		word, before := text[at[0]:at[1]], strings.TrimRight(text[:at[0]], " \"'“”‘¿¡(")
		first, _ := utf8.DecodeRuneInString(word)
		begins := before == "" || strings.ContainsAny(before[len(before)-1:], ".!?\n")
		isPossessive := strings.HasPrefix(text[at[1]:], "'s") || strings.HasPrefix(text[at[1]:], "’s")
		if unicode.IsUpper(first) && utf8.RuneCountInString(word) > 1 && (!begins || isPossessive) {
			names = append(names, strings.ToLower(word))
		}
	}
	return names
}
