package openai

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	quoteBlock    = regexp.MustCompile(`(?ms)^\[quoted, .*?^\[End of what is quoted\.[^\n]*\]\n?`)
	quoteLine     = regexp.MustCompile(`(?m)^> ?(.*)$`)
	address       = regexp.MustCompile(`https?://[^\s<>"]+`)
	readsAddress  = regexp.MustCompile(`(?i)\b(read|summari[sz]e|summary|sum\b|main points|tl;?dr|what|who|about|says?)\b`)
	waitsFor      = regexp.MustCompile(`(?i)\b(tell|let|notify|alert|warn|ping) (?:me|us)(?: know)? (?:when|if|as soon|once)\b|\bwatch\b|\bkeep an eye\b|\bmonitor\b`)
	question      = regexp.MustCompile(`(?i)^(?:(?:and|so|ok|oh|hey|please|can you (?:tell me|say)|tell me|do you know)[,\s]+)*(?:` + questionWords + `|is|are|was|were|has|have|does|do|did|can|will|why|on which|by when)\b|\?\s*$`)
	wantsSummary  = regexp.MustCompile(`(?i)\b(summari[sz]e|summary|sum (?:it|this|that) up|main points|key points|gist|overview|tl;?dr|first sentences)\b`)
	summaryLength = regexp.MustCompile(`(?i)\b(one|two|three|four|five|six|seven|ten|\d)\s+(?:short )?(?:sentences|points|bullets|lines)\b`)
	partHeading   = regexp.MustCompile(`(?m)^--- (.+?) ---$`)
	amountAsked   = regexp.MustCompile(`(?i)\bhow (?:much|expensive)\b|\b(?:price|cost|costs|amount|total|fee)\b`)
	amount        = regexp.MustCompile(`(?i)[€$£]\s?\d|\d[\d.,]*\s?(?:euros?|eur|dollars?|usd|pounds?|gbp|€|\$|£|%|percent|million|thousand)`)
	numberAsked   = regexp.MustCompile(`(?i)\bhow many\b`)
	anyNumber     = regexp.MustCompile(`(?i)\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve)\b`)
	dateAsked     = regexp.MustCompile(`(?i)\b(?:when|what date|which day|deadline|how long)\b`)
	date          = regexp.MustCompile(`(?i)\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b\d{1,2}[./]\d{1,2}\b|\b(?:19|20)\d\d\b|\b(?:days?|weeks?|months?|years?)\b`)
	anything      = regexp.MustCompile(``)
	contactLine   = regexp.MustCompile(`\[contact: ([^\]\n]+)\]`)
	thingLine     = regexp.MustCompile(`\[(?:place|(?:live )?location|(?:closed )?poll|checklist|dice)\b[^\]\n]*\]`)
	notReceived   = regexp.MustCompile(`\[not received: ([^\]\n]+)\]`)
	spokenLine    = regexp.MustCompile(`(?m)^\[spoken in [^\n]*\]\n?`)
	failure       = regexp.MustCompile(`^The (?:page (?:was not fetched|could not be read|has no text)|server (?:answered HTTP|did not answer))`)
)

// given is a text or a file that the user has given: sent, quoted, pasted, or named by its address.
type given struct{ name, file, text string }

// gather returns what a user's message gives.
func gather(text string) []given {
	var list []given
	for _, block := range quoteBlock.FindAllString(text, -1) {
		if quoted := strings.TrimSpace(fileMark.ReplaceAllString(strings.Join(allIn(quoteLine, block), "\n"), "")); quoted != "" {
			list = append(list, given{name: "The message", text: quoted})
		}
	}
	for _, file := range allIn(fileMark, text) {
		list = append(list, given{name: path.Base(file), file: file})
	}
	own := plainText(text)
	if len(parseTable(own)) > 0 || len(own) > 300 || contactLine.MatchString(own) || thingLine.MatchString(own) {
		list = append(list, given{name: "Your text", text: own})
	}
	return list
}

// writtenFiles returns the text files that were written with write_file, the newest last.
func writtenFiles(messages []Message) (list []given) {
	for _, r := range resultsIn(messages) {
		var args struct{ Path, Content string }
		if r.call.Name == "write_file" && json.Unmarshal([]byte(r.call.Arguments), &args) == nil {
			list = append(list, given{name: args.Path, file: args.Path, text: args.Content})
		}
	}
	return list
}

// passage is a part of a text, and where it stands.
type passage struct{ where, text string }

// passagesOf splits a text with headings such as "--- Page 2 ---" into sentences.
func passagesOf(text string) []passage {
	var list []passage
	for _, part := range partsOf(text) {
		for _, s := range sentences(part.text) {
			list = append(list, passage{part.where, s})
		}
	}
	return list
}

// partsOf returns what stands below each heading, without the notice of a tool at the end. A text without headings
// is one part.
func partsOf(text string) (list []passage) {
	heads := partHeading.FindAllStringSubmatchIndex(text, -1)
	if len(heads) == 0 {
		return []passage{{"", text}}
	}
	heads = append(heads, []int{len(text)})
	for i, h := range heads[:len(heads)-1] {
		body := strings.TrimSpace(text[h[1]:heads[i+1][0]])
		if at := strings.LastIndex("\n"+body, "\n["); at >= 0 && i+2 == len(heads) && strings.HasSuffix(body, "]") {
			body = strings.TrimSpace(body[:max(0, at-1)])
		}
		if body != "" {
			list = append(list, passage{strings.ToLower(text[h[2]:h[3]]), body})
		}
	}
	return list
}

// kinds are what a question can ask for, and how a passage has it.
var kinds = [...]struct{ asked, in *regexp.Regexp }{{amountAsked, amount}, {numberAsked, anyNumber}, {dateAsked, date}}

// bestPassages returns the passages that answer a question best: those that share the most words with it, a
// rare word counting more, for each kind of thing that it asks for. None is returned that shares less than
// half of the question's words.
func bestPassages(asked string, list []passage) (answers []passage) {
	words := contentWords(asked)
	shared, frequency := make([][]int, len(list)), make([]int, len(words))
	for i, p := range list {
		in := contentWords(p.text)
		for k, word := range words {
			if slices.ContainsFunc(in, func(w string) bool { return alike(w, word) }) {
				shared[i], frequency[k] = append(shared[i], k), frequency[k]+1
			}
		}
	}
	var picked []int
	pick := func(kind *regexp.Regexp) {
		at, most := -1, 0.0
		for i, p := range list {
			score := 0.0
			for _, k := range shared[i] {
				score += math.Log(1 + float64(len(list))/float64(frequency[k]))
			}
			if score > most && 2*len(shared[i]) >= len(words) && kind.MatchString(p.text) {
				at, most = i, score
			}
		}
		if at >= 0 {
			picked = append(picked, at)
		}
	}
	sought := false
	for _, kind := range kinds {
		if kind.asked.MatchString(asked) {
			sought = true
			pick(kind.in)
		}
	}
	if !sought {
		pick(anything)
	}
	slices.Sort(picked)
	for _, at := range slices.Compact(picked) {
		answers = append(answers, list[at])
	}
	return answers
}

// answerFrom answers a question about a text; ok is false if the rules cannot.
func (t *turn) answerFrom(name, text string) (answer string, ok bool) {
	if tb := parseTable(text); tb != nil {
		if answer = tb.answer(t.said, t.whole); answer != "" {
			return answer, true
		}
	}
	found := bestPassages(t.said, passagesOf(text))
	if len(found) == 0 {
		return "", false
	}
	var lines []string
	for _, p := range found {
		where := ""
		if p.where != "" {
			where = p.where + ": "
		}
		lines = append(lines, "- "+where+"“"+shorten(p.text, 500)+"”")
	}
	return "**" + name + "** says:\n" + strings.Join(lines, "\n"), true
}

// asksForSummary reports whether the message wants a text in short, or asks nothing of it in particular.
func (t *turn) asksForSummary() bool {
	return wantsSummary.MatchString(t.said) || len(contentWords(t.said)) == 0 || len(t.sentFiles) > 0 && !question.MatchString(t.said)
}

// inShort returns a text in short.
func (t *turn) inShort(text string) string {
	n := 3
	if m := summaryLength.FindStringSubmatch(t.said); m != nil {
		n = readNumber(m[1])
	}
	return "**In short** (sentences picked by counting words, not understood):\n" + strings.Join(bullets(summarize(text, n)), "\n")
}

// answerOrNot answers a question about a text, or says that the rules find no answer in it.
func (t *turn) answerOrNot(name, text string) string {
	if answer, ok := t.answerFrom(name, text); ok {
		return answer
	}
	return "No sentence of **" + name + "** has enough of your words. " + cannot + setKey
}

// asksOfGiven reports whether the message may be about what was given last.
func (t *turn) asksOfGiven() bool {
	if len(t.given) == 0 {
		return false
	}
	tb := parseTable(t.given[len(t.given)-1].text)
	return t.said != "" && tb != nil && tb.answer(t.said, t.whole) != "" || question.MatchString(t.said) || wantsSummary.MatchString(t.said) || barsPattern.MatchString(t.said)
}

// answerGiven answers a question about what was given last.
func (t *turn) answerGiven() string {
	newest := t.given[len(t.given)-1]
	switch answer, ok := t.answerFrom(newest.name, newest.text); {
	case newestPDF([]string{newest.file}) != "":
		return t.readPDF()
	case officeName.MatchString(newest.file):
		return t.readOffice(newest.file)
	case newest.file != "":
		return unsupported(newest.file)
	case ok:
		return answer
	case wantsSummary.MatchString(t.said):
		return t.inShort(newest.text)
	}
	return t.decline()
}

// wantsPage reports whether the message asks about the page at an address.
func (t *turn) wantsPage() bool {
	at := address.FindString(t.said)
	rest := strings.TrimSpace(strings.ReplaceAll(t.said, at, ""))
	return at != "" && !waitsFor.MatchString(t.said) && (rest == "" || question.MatchString(rest) || readsAddress.MatchString(rest))
}

// readAddress reads the page at an address, and sums it up or answers from it.
func (t *turn) readAddress() string {
	at := strings.TrimRight(address.FindString(t.said), ".,;:!?)")
	asked := t.about(strings.TrimSpace(strings.ReplaceAll(t.said, at, "")))
	text := t.use("webfetch", map[string]any{"url": at})
	_, answered := asked.answerFrom(at, text)
	switch {
	case failure.MatchString(text):
		return "I could not read that page. " + rewordForUser(text)
	case wantsSummary.MatchString(asked.said) || !answered && asked.asksForSummary():
		return asked.inShort(text)
	}
	return asked.answerOrNot(at, text)
}

// receipt says what a message gives that asks for nothing; "" if it gives nothing.
func (t *turn) receipt() string {
	switch tb := parseTable(t.said); {
	case contactLine.MatchString(t.said):
		return "I have the contact: " + contactLine.FindStringSubmatch(t.said)[1] + ". \"Save this number\" makes me remember it."
	case thingLine.MatchString(t.said):
		return "I have the " + strings.Trim(thingLine.FindString(t.said), "[]?.") + "."
	case notReceived.MatchString(t.said):
		return "I did not get " + notReceived.FindStringSubmatch(t.said)[1] + "."
	case tb != nil:
		return fmt.Sprintf("I have your table: %d rows of %s. Ask me for a sum, an average, the most or the least, a row, or a chart.", len(tb)-1, strings.Join(tb[0], ", "))
	case t.said == "" && len(t.given) > 0:
		return "I have read it. Ask me about it."
	}
	return ""
}

func readNumber(word string) int {
	if n, err := strconv.Atoi(word); err == nil {
		return n
	}
	return numberWords[strings.ToLower(word)]
}
