package openai

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const clockWord = `\d{1,2}(?:[:.]\d{2})?\s*(?:am|pm)?|noon|midnight`

var (
	sumPattern    = regexp.MustCompile(`(?i)^(?:(?:and|please|can you|tell me|what(?:'s| is)?|how much is|calculate|compute|work out)\b\s*)*([-+(]*\d[\d\s.,+*/()x×÷^-]*?)\s*(?:=|is|makes?)?\s*[?.!]*$`)
	operation     = regexp.MustCompile(`(?i)\b(?:times|multiplied by|plus|minus|divided by)\b`)
	division      = regexp.MustCompile(`(?i)\b(?:split|divide)[sd]?\s+[€$£]?(\d+(?:\.\d+)?)\D{0,12}?\s(?:between|among|by|into)\s+(?:the )?(` + numberWord + `)\b`)
	anyAmount     = regexp.MustCompile(`\d+(?:[.,]\d+)*`)
	percentage    = regexp.MustCompile(`(?i)(\d+(?:\.\d+)?)\s*(?:%|percent)\s+(?:(tip|tax|vat|service|discount)\s+)?(of|on|off)\s+[€$£]?(\d+(?:\.\d+)?)`)
	splitBetween  = regexp.MustCompile(`(?i)\b(?:split|divided|shared)\s+(?:between|among|by|into|with)?\s*(?:the )?(` + numberWord + `)\b`)
	unitAsked     = regexp.MustCompile(`(?i)\bhow many ([a-z]+) (?:is|are|in|make|makes|equal)(?: in)? (?:(` + numberWord + `|\d+\.\d+)\s*)?([a-z]+)\W*$`)
	unitConverted = regexp.MustCompile(`(?i)(?:^|\bis |\bare |\bconvert )(\d+(?:\.\d+)?)\s*([a-z]+) (?:in|to|into|as) ([a-z]+)\W*$`)
	daysUntil     = regexp.MustCompile(`(?i)\bhow (?:many (days|weeks)|long)(?: is it| are there| left)? (?:until|till|til|to|before|is it to)\s+(.+?)\W*$`)
	weekdayAsked  = regexp.MustCompile(`(?i)^(?:(?:and|please|tell me|do you know)\s+)*(?:what|which|on what|on which) (?:day(?: of the week)?|week ?day)\s+(?:is|was|were|will|does|did)(?: it)?(?: be)?(?: on)?\s*(?:be|fall|falls)?(?: on)?\W*$`)
	clockThere    = regexp.MustCompile(`(?i)\b(?:if|when) it(?:'s| is)\s+(` + clockWord + `) in ([\p{L} ]+?),?\s+what(?:'s| is)?(?: the)? time(?: is it| is that)? in ([\p{L} ]+?)\W*$`)
	cityClock     = regexp.MustCompile(`(?i)\b(?:time|date|day|clock)\b.*\bin ([\p{L}, ]{3,60}?)(?: (?:now|right now|at the moment))?\W*$`)
	livesIn       = regexp.MustCompile(`(?i)\b(?:I|we) (?:live|moved|am|are)(?: now)? (?:in|to) ([\p{L} ]{3,40}?)(?: now)?\W*$`)
	listOfCities  = regexp.MustCompile(`(?i)\s*,\s*|\s+and\s+(?:in\s+)?`)
)

// feasts are days that have a name.
var feasts = map[string]string{"christmas": "25 December", "christmas day": "25 December", "christmas eve": "24 December", "new year": "1 January", "new year's": "1 January", "new year's eve": "31 December", "new years eve": "31 December", "halloween": "31 October"}

// unit is a unit of measure: its dimension, and its size in the smallest one of that.
type unit struct {
	of   string
	size float64
}

// units are those of American and metric kitchens and roads, in the singular.
var units = map[string]unit{
	"ml": {"volume", 1}, "milliliter": {"volume", 1}, "millilitre": {"volume", 1}, "l": {"volume", 1000}, "liter": {"volume", 1000}, "litre": {"volume", 1000},
	"cup": {"volume", 236.588}, "tablespoon": {"volume", 14.7868}, "tbsp": {"volume", 14.7868}, "teaspoon": {"volume", 4.92892}, "tsp": {"volume", 4.92892}, "pint": {"volume", 473.176}, "gallon": {"volume", 3785.41},
	"g": {"weight", 1}, "gram": {"weight", 1}, "kg": {"weight", 1000}, "kilo": {"weight", 1000}, "kilogram": {"weight", 1000}, "oz": {"weight", 28.3495}, "ounce": {"weight", 28.3495}, "lb": {"weight", 453.592}, "pound": {"weight", 453.592},
	"cm": {"length", 1}, "centimeter": {"length", 1}, "centimetre": {"length", 1}, "m": {"length", 100}, "meter": {"length", 100}, "metre": {"length", 100}, "km": {"length", 100000}, "kilometer": {"length", 100000}, "kilometre": {"length", 100000},
	"inch": {"length", 2.54}, "inche": {"length", 2.54}, "foot": {"length", 30.48}, "feet": {"length", 30.48}, "yard": {"length", 91.44}, "mile": {"length", 160934.4},
	"second": {"time", 1}, "minute": {"time", 60}, "hour": {"time", 3600}, "day": {"time", 86400}, "week": {"time", 604800},
}

// calculate computes with js_eval what the message asks for.
func (t *turn) calculate() Reply {
	said := strings.TrimSpace(t.said)
	if m := percentage.FindStringSubmatch(said); m != nil {
		return t.percent(m)
	}
	if amount, from, to, ok := parseUnits(said); ok {
		return t.evaluate(amount+" "+from, amount+"*"+shortNumber(units[singular(from)].size)+"/"+shortNumber(units[singular(to)].size), 4, " "+to)
	}
	shown, _ := sumIn(said)
	code := strings.NewReplacer("x", "*", "×", "*", "÷", "/", "^", "**", ",", "", " ", "").Replace(strings.ToLower(shown))
	// Twelve digits hide the error of binary fractions.
	return t.evaluate(shown, code, 12, "")
}

// sumIn returns the calculation that a message is: of numbers, signs and words for them, or a division among people.
func sumIn(said string) (sum string, ok bool) {
	if m := division.FindStringSubmatch(said); m != nil && len(anyAmount.FindAllString(said, -1)) <= 2 {
		return fmt.Sprintf("%s / %d", m[1], readNumber(m[2])), readNumber(m[2]) > 0
	}
	said = operation.ReplaceAllStringFunc(said, func(word string) string {
		return map[string]string{"times": "*", "multiplied by": "*", "plus": "+", "minus": "-", "divided by": "/"}[strings.ToLower(word)]
	})
	m := sumPattern.FindStringSubmatch(strings.TrimSpace(said))
	if m == nil {
		return "", false
	}
	return m[1], len(m[1]) <= 60 && strings.ContainsAny(strings.TrimLeft(m[1], "-+ "), "+-*/x×÷^")
}

// evaluate shows the value of an expression, to a number of digits.
func (t *turn) evaluate(shown, code string, digits int, unit string) Reply {
	code = fmt.Sprintf("Number((%s).toPrecision(%d))", code, digits)
	return t.useTool("js_eval", map[string]any{"code": code}, func(text string) string {
		value := firstLine(text)
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			return "I could not work that out. Write it like 17*23 or 15% of 80."
		}
		return shown + " = **" + value + unit + "**"
	})
}

// percent computes a part, and what a tip, a tax or a discount makes of the whole, also divided.
func (t *turn) percent(m []string) Reply {
	part := m[1] + "/100*" + m[4]
	shown := m[1] + " % of " + m[4]
	people := splitBetween.FindStringSubmatch(t.said)
	if m[2] == "" && !strings.EqualFold(m[3], "off") && people == nil {
		return t.evaluate(shown, part, 12, "")
	}
	whole, word := m[4]+"+"+part, "Together"
	if strings.EqualFold(m[3], "off") || strings.EqualFold(m[2], "discount") {
		whole, word = m[4]+"-"+part, "What is left"
	}
	n := "1"
	if people != nil {
		n = strconv.Itoa(max(1, readNumber(people[1])))
	}
	code := fmt.Sprintf("[%s, %s, (%s)/%s].map((n) => Number(n.toFixed(2))).join(' ')", part, whole, whole, n)
	return t.useTool("js_eval", map[string]any{"code": code}, func(text string) string {
		values := strings.Fields(strings.Trim(firstLine(text), `"'`))
		if len(values) != 3 {
			return "I could not work that out. Write it like 17*23 or 15% of 80."
		}
		answer := fmt.Sprintf("%s = **%s**. %s: **%s**.", shown, values[0], word, values[1])
		if people != nil {
			answer += fmt.Sprintf(" For each of %s: **%s**.", n, values[2])
		}
		return answer
	})
}

func singular(unit string) string {
	unit = strings.ToLower(unit)
	if _, known := units[unit]; known {
		return unit
	}
	return strings.TrimSuffix(unit, "s")
}

// parseUnits reads what a message asks to express in another unit of the same dimension.
func parseUnits(said string) (amount, from, to string, ok bool) {
	if m := unitAsked.FindStringSubmatch(said); m != nil {
		amount, from, to = m[2], m[3], m[1]
	} else if m := unitConverted.FindStringSubmatch(said); m != nil {
		amount, from, to = m[1], m[2], m[3]
	}
	if n, isWord := numberWords[strings.ToLower(amount)]; isWord || amount == "" {
		amount = strconv.Itoa(max(1, n))
	}
	a, b := units[singular(from)], units[singular(to)]
	return amount, from, to, a.of != "" && a.of == b.of
}

// calculates reports whether the message is a calculation: a percentage, a measure, or numbers with an operator.
func (t *turn) calculates() bool {
	_, _, _, measures := parseUnits(t.said)
	_, sums := sumIn(t.said)
	return measures || sums || percentage.MatchString(t.said)
}

func (t *turn) countsDays() bool {
	_, _, ok := dayNamed(t.said, time.Now())
	return ok
}

// dayNamed returns the day that a message counts the days to.
func dayNamed(said string, now time.Time) (day time.Time, unit string, ok bool) {
	m := daysUntil.FindStringSubmatch(said)
	if m == nil {
		return day, "", false
	}
	name := strings.ToLower(m[2])
	if known := feasts[strings.TrimPrefix(name, "the ")]; known != "" {
		name = known
	}
	day, ok = dayIn(name, now)
	return day, strings.ToLower(m[1]), ok
}

// namedDay returns the words that name a day in a text: the only one.
func namedDay(said string) (named string) {
	for _, kind := range []*regexp.Regexp{onDate, onDay, tomorrow, today} {
		if found := kind.FindString(said); found != "" && named == "" && !isAmbiguous(said) {
			named = found
		}
	}
	return named
}

// dayIn returns the beginning of the day that a text names.
func dayIn(said string, now time.Time) (day time.Time, ok bool) {
	args, _, ok := parseSchedule(namedDay(said)+" at 23:59", now)
	if !ok || args["date"] == nil || namedDay(said) == "" {
		return day, false
	}
	day, err := time.ParseInLocation(time.DateOnly, fmt.Sprint(args["date"]), now.Location())
	return day, err == nil
}

// tellWeekday tells the day of the week of a date.
func (t *turn) tellWeekday() Reply {
	return t.withClock(func(now time.Time) Reply {
		day, ok := dateIn(t.said, now)
		if !ok {
			return Reply{Text: "There is no such day."}
		}
		if t.hasWord("was", "were", "did") && day.After(now) {
			day = day.AddDate(-1, 0, 0)
		}
		verb := "is"
		if day.Before(now) {
			verb = "was"
		}
		return Reply{Text: fmt.Sprintf("%s %s a **%s**.", day.Format("2 January 2006"), verb, day.Weekday())}
	})
}

// countDays counts the days to a day.
func (t *turn) countDays() Reply {
	return t.withClock(func(now time.Time) Reply {
		day, unit, ok := dayNamed(t.said, now)
		if !ok {
			return t.decline()
		}
		days := int(day.Sub(time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())).Hours()/24 + 0.5)
		weeks := ""
		if unit == "weeks" {
			weeks = fmt.Sprintf(", that is %d weeks and %d days", days/7, days%7)
		}
		return Reply{Text: fmt.Sprintf("**%d** %s until %s%s.", days, plural(strconv.Itoa(days), "day"), day.Format("Monday 2 January 2006"), weeks)}
	})
}

// compareClocks tells the time in one city when it is a time in another.
func (t *turn) compareClocks() Reply {
	m := clockThere.FindStringSubmatch(t.said)
	from, to := zoneOf(m[2]), zoneOf(m[3])
	hour, minute, ok := parseClockTime("at " + m[1])
	here, err := time.LoadLocation(from)
	there, err2 := time.LoadLocation(to)
	switch {
	case from == "" || err != nil:
		return unknownCity(m[2])
	case to == "" || err2 != nil:
		return unknownCity(m[3])
	case !ok:
		return t.decline()
	}
	return t.withClock(func(now time.Time) Reply {
		at := time.Date(now.In(here).Year(), now.In(here).Month(), now.In(here).Day(), hour, minute, 0, 0, here)
		return Reply{Text: fmt.Sprintf("When it is %s in %s, it is **%s** in %s.", at.Format("15:04 on Monday"), cityName(m[2]), at.In(there).Format("15:04 on Monday"), cityName(m[3]))}
	})
}

func unknownCity(name string) Reply {
	return Reply{Text: "I do not know the time zone of " + cityName(name) + ". A large city nearby, such as Berlin or New York, helps."}
}

func cityName(name string) string { return strings.ReplaceAll(titleCase(name), "_", " ") }

func titleCase(name string) string {
	words := strings.Fields(strings.ToLower(name))
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "_")
}

// tellTime tells the time, here or in the cities that the message names.
func (t *turn) tellTime() Reply {
	named := []string{""}
	if m := zone.FindStringSubmatch(t.said); m != nil {
		named = m[1:]
	} else if m := cityClock.FindStringSubmatch(t.said); m != nil {
		named = listOfCities.Split(m[1], -1)
	}
	var clocks, lines []string
	for _, r := range t.results {
		if r.call.Name == "get_current_time" {
			clocks = append(clocks, rewordForUser(r.text))
		}
	}
	var asks Reply
	for i, name := range named {
		args, where := map[string]any{"format": "human_readable"}, ""
		if name != "" {
			at := zoneOf(name)
			if at == "" {
				return unknownCity(name)
			}
			args["timezone"], where = at, " in "+at
		}
		if i < len(clocks) {
			lines = append(lines, "The clock"+where+" says: "+clocks[i])
		}
		one := t.call("get_current_time", args)
		asks.Text, asks.Calls = one.Text, append(asks.Calls, one.Calls...)
	}
	if len(lines) < len(named) {
		return asks
	}
	return Reply{Text: strings.Join(lines, "\n")}
}

// cityZone returns the time zone of the city that a message names where pattern looks for it, or "".
func cityZone(said string, pattern *regexp.Regexp) string {
	if m := pattern.FindStringSubmatch(said); m != nil {
		return zoneOf(m[1])
	}
	return ""
}

// zoneOf returns the time zone with the name of a city, or "".
func zoneOf(city string) string {
	names := []string{city} // a zone by its own name
	if !strings.Contains(city, "/") {
		names = nil
	}
	for _, region := range []string{"Europe/", "America/", "Asia/", "Africa/", "Australia/", "Pacific/", "Atlantic/"} {
		names = append(names, region+titleCase(city))
	}
	for _, name := range names {
		if _, err := time.LoadLocation(name); err == nil && city != "" {
			return name
		}
	}
	return ""
}
