package documents

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"

	"oneclaw/toolgroups/documents/office"
)

// lastNumber stands for the number of the last part or block.
const lastNumber = math.MaxInt

// place is a block in a part. Both count from 1.
type place struct{ part, block int }

// before reports whether p precedes q.
func (p place) before(q place) bool { return p.part < q.part || p.part == q.part && p.block < q.block }

// selection is the requested part of a document: a range of places, both ends included. If from.part is
// 0, it is a range of the blocks of the part with the name.
type selection struct {
	all      bool
	from, to place
	name     string
}

var (
	// numberPattern matches 3, 2-5, 3:40, 3:40-, 3:40-3:60 and the like.
	numberPattern = regexp.MustCompile(`^(\d{1,7})(?::(\d{1,8}))?(?:(-)(?:(\d{1,7})(?::(\d{1,8}))?)?)?$`)
	// namePattern matches a name, optionally with rows, as in Costs:5-20 or Costs!A5:F20.
	namePattern = regexp.MustCompile(`^(.*?)(?::(\d{1,8})(-)?(\d{1,8})?|!\$?[A-Za-z]{1,3}\$?(\d{1,8})(?:(:)\$?[A-Za-z]{1,3}\$?(\d{1,8}))?)?$`)
)

var errSelection = errors.New("'part' is no valid selection. Write it like 3, 2-5, 3:40- or the name of a sheet")

// parseSelection parses the selection of a call.
func parseSelection(text string) (selection, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return selection{all: true, to: place{lastNumber, lastNumber}}, nil
	}
	if m := numberPattern.FindStringSubmatch(text); m != nil {
		from, to := place{parseNumber(m[1], 1), parseNumber(m[2], 1)}, place{parseNumber(m[4], lastNumber), parseNumber(m[5], lastNumber)}
		if m[3] == "" {
			to = place{from.part, parseNumber(m[2], lastNumber)}
		}
		if to.before(from) {
			return selection{}, errSelection
		}
		return selection{from: from, to: to, name: text}, nil
	}
	m := namePattern.FindStringSubmatch(text)
	if m == nil || strings.Contains(text, "\n") {
		return selection{}, errSelection
	}
	first, to := m[2]+m[5], m[4]+m[7]
	last := parseNumber(to, lastNumber)
	if to == "" && first != "" && m[3]+m[6] == "" {
		last = parseNumber(first, lastNumber)
	}
	s := selection{from: place{0, parseNumber(first, 1)}, to: place{0, last}, name: strings.Trim(m[1], "'\" ")}
	if s.to.before(s.from) {
		return selection{}, errSelection
	}
	return s, nil
}

// parseNumber parses digits. It returns otherwise if there are none.
func parseNumber(digits string, otherwise int) int {
	if n, err := strconv.Atoi(digits); err == nil {
		return n
	}
	return otherwise
}

// includesPart reports whether a part is selected, at least partly.
func (s selection) includesPart(p office.Part) bool {
	if s.all || s.matchesName(p) {
		return true
	}
	return s.from.part > 0 && p.Number >= s.from.part && p.Number <= s.to.part
}

// matchesName reports whether a part is selected by its name. A name may be a number, such as 2026.
func (s selection) matchesName(p office.Part) bool {
	return s.name != "" && strings.EqualFold(strings.TrimSpace(p.Name), s.name)
}

// includesBlock reports whether a block is selected, provided that its part is.
func (s selection) includesBlock(p office.Part, number int) bool {
	switch {
	case s.all, s.matchesName(p) && s.from.part > 0:
		return true
	case s.from.part == 0:
		return number >= s.from.block && number <= s.to.block
	}
	at := place{p.Number, number}
	return !at.before(s.from) && !s.to.before(at)
}
