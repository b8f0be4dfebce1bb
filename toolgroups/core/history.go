package core

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

// codeSearch is the code of a failed search.
const codeSearch = "search_error"

// History holds the passages that search_history searches. It only filters them; the tool ranks them.
type History interface {
	// Passages yields the passages of an owner that have the kinds and days of the query, newest
	// first. It stops with the error of ctx when ctx ends. It may be called concurrently.
	Passages(ctx context.Context, owner string, query HistoryQuery) iter.Seq2[Passage, error]
}

// HistoryQuery selects passages.
type HistoryQuery struct {
	// Kinds are the wanted kinds; never empty.
	Kinds []PassageKind
	// From is the inclusive start and Until the exclusive end. Zero means no bound. If From is set,
	// passages without a time are left out.
	From, Until time.Time
	// Words are lower-case words of letters and digits. A message that has fewer than half of the
	// words may be left out.
	Words []string
	// CanStop, if not nil, reports whether messages of this time and older are no longer needed.
	CanStop func(time.Time) bool
}

// PassageKind is the source of a passage.
type PassageKind string

// The kinds of passages.
const (
	// KindMemory is a long-term note.
	KindMemory PassageKind = "memory"
	// KindDailyLog is an entry of a daily log.
	KindDailyLog PassageKind = "daily_log"
	// KindMessage is a message of a user or of the bot.
	KindMessage PassageKind = "message"
	// KindSession is the title and summary of a conversation.
	KindSession PassageKind = "session"
)

// Passage is a recorded text.
type Passage struct {
	Kind PassageKind
	// Time is when the text was recorded; zero if unknown (memory).
	Time time.Time
	// Message identifies the message that a user began a turn with, as [toolgroups.Scope].Message. It is
	// empty for other texts.
	Message string
	// Title is the title of its conversation, or the section of a note of the memory, if any.
	Title string
	Text  string
}

// Limits of a search.
const (
	defaultHits  = 10
	maxHits      = 50
	excerptChars = 500
	maxQuery     = 1_000
	// minMessageAge is the age from which messages are found without date_to. It excludes those that have
	// just joined the question being answered, which itself is never found without date_to.
	minMessageAge = 5 * time.Second
	// duplicateSimilarity is the share of common words from which two hits count as one.
	duplicateSimilarity = 0.8
)

type historyArgs struct {
	Query      string `json:"query"`
	Scope      string `json:"scope"`
	DateFrom   string `json:"date_from"`
	DateTo     string `json:"date_to"`
	MaxResults int    `json:"max_results"`
}

func (t *tools) searchHistory(ctx context.Context, call toolgroups.Call, in historyArgs) (toolgroups.Result, error) {
	now, zone := t.cfg.Now(), t.cfg.Location(ctx, call.Scope)
	query, err := newHistoryQuery(in, zone)
	if err != nil {
		return toolgroups.Result{}, err
	}
	if call.Owner == "" {
		return toolgroups.Result{}, toolgroups.Errorf(codeSearch, "There is no history here.")
	}
	s := newSearch(in.Query, now, call.Masked)
	query.Words, query.CanStop = s.words, s.canStop
	if t.cfg.History != nil {
		for p, err := range t.cfg.History.Passages(ctx, call.Owner, query) {
			if err != nil {
				if ctx.Err() != nil {
					return toolgroups.Result{}, ctx.Err()
				}
				t.cfg.Logger.Error("cannot read the history", "err", err)
				return toolgroups.Result{}, toolgroups.Errorf(codeSearch, "The history could not be searched. Try again later.")
			}
			isQuestion := p.Message != "" && p.Message == call.Message
			if in.DateTo == "" && p.Kind == KindMessage && (isQuestion || now.Sub(p.Time) < minMessageAge) {
				continue
			}
			s.consider(p)
		}
	}
	limit := defaultHits
	if in.MaxResults != 0 {
		limit = min(max(in.MaxResults, 1), maxHits)
	}
	return toolgroups.Result{Text: s.formatHits(in, s.bestHits(limit), zone, files.InlineLimit(call.Scope))}, nil
}

// newHistoryQuery checks the arguments and makes a query from them.
func newHistoryQuery(in historyArgs, zone *time.Location) (HistoryQuery, error) {
	var q HistoryQuery
	if strings.TrimSpace(in.Query) == "" {
		return q, toolgroups.Errorf(toolgroups.CodeInvalid, "'query' is blank. Give words to look for.")
	}
	if len(in.Query) > maxQuery {
		return q, toolgroups.Errorf(toolgroups.CodeInvalid, "'query' is longer than %d bytes. Give a few words.", maxQuery)
	}
	from, err := parseDate("date_from", in.DateFrom, zone)
	if err != nil {
		return q, err
	}
	to, err := parseDate("date_to", in.DateTo, zone)
	if err != nil {
		return q, err
	}
	q.From = from
	if !to.IsZero() {
		q.Until = to.AddDate(0, 0, 1)
		if q.Until.Before(from) || q.Until.Equal(from) {
			return q, toolgroups.Errorf(toolgroups.CodeInvalid, "'date_to' is before 'date_from'.")
		}
	}
	switch in.Scope {
	case "", "all":
		q.Kinds = []PassageKind{KindMemory, KindDailyLog, KindMessage, KindSession}
	case "memory":
		q.Kinds = []PassageKind{KindMemory, KindDailyLog}
	case "daily_log":
		q.Kinds = []PassageKind{KindDailyLog}
	case "sessions":
		q.Kinds = []PassageKind{KindMessage, KindSession}
	default:
		return q, toolgroups.Errorf(toolgroups.CodeInvalid, "'scope' must be all, memory, daily_log or sessions.")
	}
	if !from.IsZero() {
		q.Kinds = slices.DeleteFunc(q.Kinds, func(k PassageKind) bool { return k == KindMemory })
	}
	return q, nil
}

// parseDate parses a date in a time zone.
func parseDate(name, text string, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	day, err := time.ParseInLocation(time.DateOnly, text, zone)
	if err != nil {
		return time.Time{}, toolgroups.Errorf(toolgroups.CodeInvalid, "'%s' must be a day written YYYY-MM-DD, not '%s'.", name, files.SingleLine(text))
	}
	return day, nil
}

// search ranks passages. A passage is a hit if it contains the whole query, ignoring case, or at
// least half of its words. Its score is
//
//	weight of its kind × match × recency
//
// where the weight is 1 for memory and daily logs, 0.6 for messages and 0.5 for sessions; the match
// is 1 for the whole query and up to 0.8 for words; and the recency is 1 for memory and daily logs,
// and falls from 1 to 0.1 over a year for messages and sessions.
type search struct {
	phrase string
	words  []string
	now    time.Time
	mask   func(text string) string
	found  map[PassageKind][]hit
}

// hit is a passage with its score.
type hit struct {
	Passage
	score  float64
	offset int // offset of the match in the text
}

func newSearch(query string, now time.Time, mask func(text string) string) *search {
	phrase := strings.ToLower(strings.Join(strings.Fields(query), " "))
	words := wordsOf(phrase)
	return &search{phrase: phrase, words: words, now: now, mask: mask, found: map[PassageKind][]hit{}}
}

// wordsOf returns the distinct words of a lower-case text.
func wordsOf(text string) []string {
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	slices.Sort(words)
	return slices.Compact(words)
}

// maxCandidates bounds the hits of a kind that are kept while searching.
func maxCandidates(kind PassageKind) int {
	if kind == KindSession {
		return 20
	}
	return 50
}

// consider keeps a passage if it is among the best of its kind. What is found in it depends on no part of a secret, which
// could be searched for letter by letter.
func (s *search) consider(p Passage) {
	if match, _ := s.matchPassage(p); match == 0 {
		return
	}
	p.Text, p.Title = s.mask(p.Text), s.mask(p.Title)
	match, at := s.matchPassage(p)
	if match == 0 {
		return
	}
	h := hit{Passage: p, score: weight(p.Kind) * match * s.recency(p), offset: at}
	kept := append(s.found[p.Kind], h)
	if len(kept) > maxCandidates(p.Kind) {
		worst := 0
		for i := range kept {
			if kept[i].score <= kept[worst].score {
				worst = i
			}
		}
		kept = slices.Delete(kept, worst, worst+1)
	}
	s.found[p.Kind] = kept
}

// matchPassage is match for a passage.
func (s *search) matchPassage(p Passage) (match float64, at int) {
	match, at = s.match(strings.ToLower(p.Text))
	if inTitle, _ := s.match(strings.ToLower(p.Title)); p.Kind == KindSession && inTitle > match {
		return inTitle, 0
	}
	return match, at
}

// canStop reports whether no message of this time or older would be kept.
func (s *search) canStop(t time.Time) bool {
	kept := s.found[KindMessage]
	best := weight(KindMessage) * s.recency(Passage{Kind: KindMessage, Time: t})
	return len(kept) >= maxCandidates(KindMessage) && !slices.ContainsFunc(kept, func(h hit) bool { return h.score < best })
}

// match returns how well a lower-case text matches, 0 if not at all, and the offset of the match.
func (s *search) match(text string) (float64, int) {
	if at := strings.Index(text, s.phrase); at >= 0 {
		return 1, at
	}
	count, first := 0, len(text)
	for _, w := range s.words {
		if at := strings.Index(text, w); at >= 0 {
			count++
			first = min(first, at)
		}
	}
	if count == 0 || 2*count < len(s.words) {
		return 0, 0
	}
	return 0.8 * float64(count) / float64(len(s.words)), first
}

func weight(kind PassageKind) float64 {
	switch kind {
	case KindMessage:
		return 0.6
	case KindSession:
		return 0.5
	}
	return 1
}

func (s *search) recency(p Passage) float64 {
	if p.Kind != KindMessage && p.Kind != KindSession {
		return 1
	}
	const year = 365 * 24 * time.Hour
	age := float64(s.now.Sub(p.Time)) / float64(year)
	return 1 - 0.9*min(max(age, 0), 1)
}

// bestHits returns the best hits, newer ones first if equal, without those similar to a better hit.
func (s *search) bestHits(limit int) []hit {
	var all []hit
	for _, kind := range []PassageKind{KindMemory, KindDailyLog, KindMessage, KindSession} {
		all = append(all, s.found[kind]...)
	}
	slices.SortStableFunc(all, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), b.Time.Compare(a.Time))
	})
	var out []hit
	var seen [][]string
	for _, h := range all {
		words := wordsOf(strings.ToLower(h.Text))
		if slices.ContainsFunc(seen, func(other []string) bool { return similarity(words, other) >= duplicateSimilarity }) {
			continue
		}
		seen = append(seen, words)
		if out = append(out, h); len(out) == limit {
			break
		}
	}
	return out
}

// similarity returns the Jaccard index of two sorted lists of distinct words.
func similarity(a, b []string) float64 {
	common := 0
	for _, w := range a {
		if _, ok := slices.BinarySearch(b, w); ok {
			common++
		}
	}
	union := len(a) + len(b) - common
	if union == 0 {
		return 1
	}
	return float64(common) / float64(union)
}

// formatHits formats the hits for the model, in about inline characters.
func (s *search) formatHits(in historyArgs, hits []hit, location *time.Location, inline int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Search for '%s' in %s: %d found", files.SingleLine(in.Query), cmp.Or(in.Scope, "all"), len(hits))
	if len(hits) == 0 {
		b.WriteString("\nNothing matches. Try other or fewer words, another scope, or other days.")
	}
	for i, h := range hits {
		if b.Len() > inline-2*excerptChars {
			fmt.Fprintf(&b, "\n\n[%d more are not shown; search for something narrower.]", len(hits)-i)
			break
		}
		date := "no date"
		if !h.Time.IsZero() {
			date = h.Time.In(location).Format(time.DateOnly)
		}
		fmt.Fprintf(&b, "\n\n--- %d | %.2f | %s | %s", i+1, h.score, h.Kind, date)
		if h.Title != "" {
			fmt.Fprintf(&b, " | %s", files.SingleLine(h.Title))
		}
		b.WriteString(" ---\n" + excerpt(h.Text, h.offset))
	}
	return b.String()
}

// excerpt returns the part of a text around a match. at counts bytes of the
// lower-case text, whose length may differ a little, so it is only a hint.
func excerpt(text string, at int) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	runes := []rune(text)
	if len(runes) <= excerptChars {
		return text
	}
	const before, marks = excerptChars / 4, 2
	start := len([]rune(text[:min(at, len(text))])) - before
	start = min(max(start, 0), len(runes)-(excerptChars-marks))
	part := string(runes[start:min(start+excerptChars-marks, len(runes))])
	if start > 0 {
		part = "…" + part
	}
	if start+excerptChars-marks < len(runes) {
		part += "…"
	}
	return part
}
