package office

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"oneclaw/internal/wording"
)

// formatNumber formats the value of a cell; since is how many days later its calendar begins than
// Excel's first.
func formatNumber(raw string, is numberFormat, since int) string {
	value, err := strconv.ParseFloat(raw, 64)
	if err != nil || math.IsInf(value, 0) || math.IsNaN(value) || is.kind == plainNumber && wholeNumber.MatchString(raw) {
		return raw
	}
	unit := time.Second
	if is.fractions {
		unit = time.Millisecond
	}
	// Excel's days end with the year 9999.
	if is.kind >= date && (value < 0 || value+float64(since) > 2_958_466) {
		is.kind = plainNumber
	}
	switch is.kind {
	case percentage:
		return formatDigits(value*100) + "%"
	case duration:
		days, rest := splitDays(value, unit)
		return fmt.Sprintf("%d:%s", days*24+int(rest/time.Hour), time.Time{}.Add(rest%time.Hour).Format("04:05.999"))
	case date, timeOfDay, dateAndTime:
		return formatTime(value, is.kind, since, unit)
	}
	return formatDigits(value)
}

// parseUnits returns the currency or the unit that a format code writes before and after a number: a price
// in francs is none in dollars. It returns nothing for a code that also scales the number, or depends on it.
func parseUnits(code string) (before, after string) {
	var literals [2]strings.Builder
	digits, scales := 0, false // of literals: before or after them
	runes := []rune(wording.Clip(code, maxMark))
	until := func(i int, end rune) int {
		for i < len(runes) && runes[i] != end {
			i++
		}
		return i
	}
	for i := 0; i < len(runes) && runes[i] != ';'; i++ {
		switch r := runes[i]; {
		case r == '"':
			end := until(i+1, '"')
			literals[digits].WriteString(string(runes[i+1 : end]))
			i = end
		case r == '[':
			end := until(i+1, ']')
			symbol, isCurrency := strings.CutPrefix(string(runes[i+1:end]), "$")
			switch {
			case isCurrency:
				symbol, _, _ = strings.Cut(symbol, "-") // what follows is a language
				literals[digits].WriteString(symbol)
			case strings.ContainsAny(symbol, "<>="):
				return "", ""
			}
			i = end
		case r == '\\' && i+1 < len(runes):
			i++
			literals[digits].WriteRune(runes[i])
		case r == '_', r == '*': // room, or what fills it
			i++
			literals[digits].WriteByte(' ')
		case strings.ContainsRune("0#?gG", r):
			digits, scales = 1, false
			if strings.ContainsRune("gG", r) { // General
				i += len("eneral")
			}
		case r == ',':
			scales = digits == 1
		case unicode.Is(unicode.Sc, r), r == '°', r == ' ':
			literals[digits].WriteRune(r)
		}
	}
	if scales {
		return "", ""
	}
	return unitOf(literals[0].String()), unitOf(literals[1].String())
}

// unitOf returns the literal text of a format code, or "" if it is no currency and no unit.
func unitOf(literal string) string {
	literal = oneLine(literal)
	if !strings.ContainsFunc(literal, func(r rune) bool {
		return isWordRune(r) || unicode.Is(unicode.Sc, r) || strings.ContainsRune("°‰%", r)
	}) {
		return ""
	}
	return literal
}

// formatShown formats a number with the currency, the unit or the percent sign with which a program shows it, in any
// language, unless that shows another number, such as one of millions.
func formatShown(raw, shown string) string {
	value, err := strconv.ParseFloat(raw, 64)
	first, last := strings.IndexFunc(shown, unicode.IsDigit), strings.LastIndexFunc(shown, unicode.IsDigit)
	number := formatNumber(raw, numberFormat{}, 0)
	if err != nil || first < 0 {
		return number
	}
	_, size := utf8.DecodeRuneInString(shown[last:])
	before, digits, after := strings.Trim(shown[:first], " -−("), shown[first:last+size], strings.Trim(shown[last+size:], " -−)")
	if len(digits) > maxMark {
		return number
	}
	isShown := func(value float64) bool {
		places := []int{0}
		if at := strings.LastIndexAny(digits, ".,"); at >= 0 { // the sign before decimals, or thousands
			places = append(places, len(digits)-1-at)
		}
		for _, places := range places {
			// A half is rounded up.
			if significant(strconv.FormatFloat(value*(1+1e-15), 'f', places, 64)) == significant(digits) {
				return true
			}
		}
		return false
	}
	switch {
	case isShown(value):
		return withUnits(number, unitOf(before), unitOf(after))
	case after == "%" && isShown(value*100):
		return formatNumber(raw, numberFormat{kind: percentage}, 0)
	}
	return number
}

// significant returns the digits of a number without those that only fill its beginning.
func significant(number string) string {
	return strings.TrimLeft(strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, number), "0")
}

// withUnits puts the currency or the unit around a number.
func withUnits(number, before, after string) string {
	if number == "" || before == "" && after == "" {
		return number
	}
	sign := ""
	if before != "" {
		if rest, negative := strings.CutPrefix(number, "-"); negative {
			sign, number = "-", rest
		}
		if last, _ := utf8.DecodeLastRuneInString(before); isWordRune(last) {
			before += " "
		}
	}
	return strings.TrimSpace(sign + before + number + " " + after)
}

// wholeNumber matches a number that is as long as it was written: an account's has more than 15 digits.
var wholeNumber = regexp.MustCompile(`^-?[1-9][0-9]*$`)

// formatDigits formats a number with a spreadsheet's 15 digits.
func formatDigits(value float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'e', 14, 64), 64)
	if err != nil {
		rounded = value
	}
	format := byte('f')
	if size := math.Abs(rounded); size != 0 && (size >= 1e21 || size < 1e-9) {
		format = 'g'
	}
	return strconv.FormatFloat(rounded, format, -1, 64)
}

// splitDays returns the full days of a number of them, which may be more than a [time.Duration] holds, and the rest, rounded
// to a unit.
func splitDays(value float64, unit time.Duration) (days int, rest time.Duration) {
	days = int(math.Floor(value))
	return days, time.Duration(math.Round((value-float64(days))*float64(24*time.Hour/unit))) * unit
}

// formatISO formats a date and time of ISO 8601, which it returns unchanged if it is none.
func formatISO(raw string) string {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateOnly} {
		at, err := time.Parse(layout, raw)
		if err != nil {
			continue
		}
		at = at.Round(time.Millisecond)
		if clock := formatClock(at); clock != "00:00" {
			return at.Format(time.DateOnly) + " " + clock
		}
		return at.Format(time.DateOnly)
	}
	return raw
}

// formatTime formats a day, a time of day or both, to the unit. It shows a part that the format hides unless
// that part is zero.
func formatTime(value float64, is numberKind, since int, unit time.Duration) string {
	days, rest := splitDays(value, unit)
	// 29 February 1900 did not exist, but Excel counts it.
	if since == 0 && days < 60 {
		since = 1
	}
	at := time.Date(1899, time.December, 30+since+days, 0, 0, 0, 0, time.UTC).Add(rest)
	switch {
	case days == 0 && is != date:
		return formatClock(at)
	case rest == 0 && is == date:
		return at.Format(time.DateOnly)
	}
	return at.Format(time.DateOnly) + " " + formatClock(at)
}

// formatClock formats a time of day, with the seconds if it has any.
func formatClock(at time.Time) string {
	if at.Second() != 0 || at.Nanosecond() != 0 {
		return at.Format("15:04:05.999")
	}
	return at.Format("15:04")
}
