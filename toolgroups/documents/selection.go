package documents

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"

	"oneclaw/internal/office"
)

// end stands for the last part or block.
const end = math.MaxInt

// place is a block in a part. Both count from 1.
type place struct{ part, block int }

// before reports whether p precedes q.
func (p place) before(q place) bool { return p.part < q.part || p.part == q.part && p.block < q.block }

// selection is the wanted part of a document: a range of places, both ends included, or a part
// by its name.
type selection struct {
	all      bool
	from, to place
	name     string
}

var (
	// byNumber matches 3, 2-5, 3:40, 3:40-, 3:40-3:60 and the like.
	byNumber = regexp.MustCompile(`^(\d{1,7})(?::(\d{1,8}))?(?:(-)(?:(\d{1,7})(?::(\d{1,8}))?)?)?$`)
	// byName matches a name, optionally with rows, as in Costs:5-20 or Costs!A5:F20.
	byName = regexp.MustCompile(`^(.*?)(?::(\d{1,8})(-)?(\d{1,8})?|!\$?[A-Za-z]{1,3}\$?(\d{1,8})(?:(:)\$?[A-Za-z]{1,3}\$?(\d{1,8}))?)?$`)
)

var errSelection = errors.New("'part' is no valid selection. Write it like 3, 2-5, 3:40- or the name of a sheet")

// parseSelection parses the selection of a call.
func parseSelection(text string) (selection, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return selection{all: true, to: place{end, end}}, nil
	}
	if m := byNumber.FindStringSubmatch(text); m != nil {
		from, to := place{number(m[1], 1), number(m[2], 1)}, place{number(m[4], end), number(m[5], end)}
		if m[3] == "" {
			to = place{from.part, number(m[2], end)}
		}
		if to.before(from) {
			return selection{}, errSelection
		}
		return selection{from: from, to: to, name: text}, nil
	}
	m := byName.FindStringSubmatch(text)
	if m == nil || strings.Contains(text, "\n") {
		return selection{}, errSelection
	}
	first, to := m[2]+m[5], m[4]+m[7]
	last := number(to, end)
	if to == "" && first != "" && m[3]+m[6] == "" {
		last = number(first, end)
	}
	s := selection{from: place{0, number(first, 1)}, to: place{0, last}, name: strings.Trim(m[1], "'\" ")}
	if s.to.before(s.from) {
		return selection{}, errSelection
	}
	return s, nil
}

// number parses digits; otherwise is the value of none.
func number(digits string, otherwise int) int {
	if n, err := strconv.Atoi(digits); err == nil {
		return n
	}
	return otherwise
}

// part reports whether some of a part is selected.
func (s selection) part(p office.Part) bool {
	if s.all || s.named(p) {
		return true
	}
	return s.from.part > 0 && p.Number >= s.from.part && p.Number <= s.to.part
}

// named reports whether a part is selected by its name: a sheet may be called 2026.
func (s selection) named(p office.Part) bool {
	return s.name != "" && strings.EqualFold(strings.TrimSpace(p.Name), s.name)
}

// block reports whether a block is selected, if its part is.
func (s selection) block(p office.Part, number int) bool {
	switch {
	case s.all, s.named(p) && s.from.part > 0:
		return true
	case s.from.part == 0:
		return number >= s.from.block && number <= s.to.block
	}
	at := place{p.Number, number}
	return !at.before(s.from) && !s.to.before(at)
}
