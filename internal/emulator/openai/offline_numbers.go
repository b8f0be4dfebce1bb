package openai

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
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

// notComputed is the answer where a calculation has no value.
const notComputed = "I could not work that out. Write it like 17*23 or 15% of 80."

// convert expresses an amount in another unit.
func (t *turn) convert(m []string) string {
	amount, from, to := m[0], m[1], m[2]
	return t.evaluate(amount+" "+from, amount+"*"+shortNumber(units[singular(from)].size)+"/"+shortNumber(units[singular(to)].size), 4, " "+to)
}

// sumIn returns the calculation that a message is: of numbers, signs and words for them, or a division among people.
func sumIn(said string) []string {
	if m := division.FindStringSubmatch(said); m != nil && len(anyAmount.FindAllString(said, -1)) <= 2 && readNumber(m[2]) > 0 {
		return []string{fmt.Sprintf("%s / %d", m[1], readNumber(m[2]))}
	}
	said = operation.ReplaceAllStringFunc(said, func(word string) string {
		return map[string]string{"times": "*", "multiplied by": "*", "plus": "+", "minus": "-", "divided by": "/"}[strings.ToLower(word)]
	})
	m := sumPattern.FindStringSubmatch(strings.TrimSpace(said))
	if m == nil || len(m[1]) > 60 || !strings.ContainsAny(strings.TrimLeft(m[1], "-+ "), "+-*/x×÷^") {
		return nil
	}
	return m[1:]
}

// calculate computes a calculation with js_eval.
func (t *turn) calculate(m []string) string {
	code := strings.NewReplacer("x", "*", "×", "*", "÷", "/", "^", "**", ",", "", " ", "").Replace(strings.ToLower(m[0]))
	// Twelve digits hide the error of binary fractions.
	return t.evaluate(m[0], code, 12, "")
}

// evaluate shows the value of an expression, to a number of digits.
func (t *turn) evaluate(shown, code string, digits int, unit string) string {
	value := firstLine(t.use("js_eval", map[string]any{"code": fmt.Sprintf("Number((%s).toPrecision(%d))", code, digits)}))
	if _, err := strconv.ParseFloat(value, 64); err != nil {
		return notComputed
	}
	return shown + " = **" + value + unit + "**"
}

// percent computes a part, and what a tip, a tax or a discount makes of the whole, also divided.
func (t *turn) percent(m []string) string {
	part, shown := m[1]+"/100*"+m[4], m[1]+" % of "+m[4]
	people := splitBetween.FindStringSubmatch(t.said)
	off := strings.EqualFold(m[3], "off")
	if m[2] == "" && !off && people == nil {
		return t.evaluate(shown, part, 12, "")
	}
	whole, word, n := m[4]+"+"+part, "Together", "1"
	if off || strings.EqualFold(m[2], "discount") {
		whole, word = m[4]+"-"+part, "What is left"
	}
	if people != nil {
		n = strconv.Itoa(max(1, readNumber(people[1])))
	}
	text := t.use("js_eval", map[string]any{"code": fmt.Sprintf("[%s, %s, (%s)/%s].map((n) => Number(n.toFixed(2))).join(' ')", part, whole, whole, n)})
	values := strings.Fields(strings.Trim(firstLine(text), `"'`))
	if len(values) != 3 {
		return notComputed
	}
	answer := fmt.Sprintf("%s = **%s**. %s: **%s**.", shown, values[0], word, values[1])
	if people != nil {
		answer += fmt.Sprintf(" For each of %s: **%s**.", n, values[2])
	}
	return answer
}

func singular(unit string) string {
	unit = strings.ToLower(unit)
	if _, known := units[unit]; known {
		return unit
	}
	return strings.TrimSuffix(unit, "s")
}

// unitsIn returns the amount, its unit and the wanted unit of the same dimension that a message asks for.
func unitsIn(said string) []string {
	amount, from, to := "", "", ""
	if m := unitAsked.FindStringSubmatch(said); m != nil {
		amount, from, to = m[2], m[3], m[1]
	} else if m := unitConverted.FindStringSubmatch(said); m != nil {
		amount, from, to = m[1], m[2], m[3]
	}
	if n, isWord := numberWords[strings.ToLower(amount)]; isWord || amount == "" {
		amount = strconv.Itoa(max(1, n))
	}
	if a, b := units[singular(from)], units[singular(to)]; a.of == "" || a.of != b.of {
		return nil
	}
	return []string{amount, from, to}
}

// dayCounted returns the words for the day that a message counts the days to, and the unit of the count.
func dayCounted(said string) []string {
	m := daysUntil.FindStringSubmatch(said)
	if m == nil {
		return nil
	}
	name := strings.ToLower(m[2])
	name = cmp.Or(feasts[strings.TrimPrefix(name, "the ")], name)
	if _, ok := dayIn(name, time.Now()); !ok {
		return nil
	}
	return []string{name, strings.ToLower(m[1])}
}

// countDays counts the days to a day.
func (t *turn) countDays(m []string) string {
	now := t.now()
	day, ok := dayIn(m[0], now)
	if !ok {
		return t.decline()
	}
	days := int(day.Sub(onClock(now, 0, 0)).Hours()/24 + 0.5)
	weeks := ""
	if m[1] == "weeks" {
		weeks = fmt.Sprintf(", that is %d weeks and %d days", days/7, days%7)
	}
	return fmt.Sprintf("**%d** %s until %s%s.", days, plural(strconv.Itoa(days), "day"), day.Format("Monday 2 January 2006"), weeks)
}

// namedDay returns the words that name a day in a text: the only one.
func namedDay(said string) string {
	for _, kind := range days {
		if found := kind.FindString(said); found != "" && !isAmbiguous(said) {
			return found
		}
	}
	return ""
}

// dayIn returns the beginning of the day that a text names.
func dayIn(said string, now time.Time) (day time.Time, ok bool) {
	named := namedDay(said)
	when, ok := parseSchedule(named+" at 23:59", now)
	return onClock(when.at, 0, 0), ok && named != "" && !when.at.IsZero()
}

// onClock returns a time of the day that another one is on.
func onClock(day time.Time, hour, minute int) time.Time {
	return time.Date(day.Year(), day.Month(), day.Day(), hour, minute, 0, 0, day.Location())
}

// tellWeekday tells the day of the week of a date.
func (t *turn) tellWeekday() string {
	now := t.now()
	day, ok := dateIn(t.said, now)
	if !ok {
		return "There is no such day."
	}
	if t.hasWord("was", "were", "did") && day.After(now) {
		day = day.AddDate(-1, 0, 0)
	}
	verb := "is"
	if day.Before(now) {
		verb = "was"
	}
	return fmt.Sprintf("%s %s a **%s**.", day.Format("2 January 2006"), verb, day.Weekday())
}

// compareClocks tells the time in one city when it is a time in another.
func (t *turn) compareClocks(m []string) string {
	here, there := t.zone(m[2]), t.zone(m[3])
	hour, minute, ok := parseClockTime("at " + m[1])
	if !ok {
		return t.decline()
	}
	at := onClock(t.now().In(here), hour, minute)
	return fmt.Sprintf("When it is %s in %s, it is **%s** in %s.", at.Format("15:04 on Monday"), cityName(m[2]), at.In(there).Format("15:04 on Monday"), cityName(m[3]))
}

// zone returns the time zone of a city, and stops for one that it does not know.
func (t *turn) zone(city string) *time.Location {
	zone, err := time.LoadLocation(zoneOf(city))
	if zoneOf(city) == "" || err != nil {
		panic(stop{Text: "I do not know the time zone of " + cityName(city) + ". A large city nearby, such as Berlin or New York, helps."})
	}
	return zone
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
func (t *turn) tellTime() string {
	named := []string{""}
	if m := zone.FindStringSubmatch(t.said); m != nil {
		named = m[1:]
	} else if m := cityClock.FindStringSubmatch(t.said); m != nil {
		named = listOfCities.Split(m[1], -1)
	}
	var calls []ToolCall
	var lines []string
	for _, name := range named {
		args, where := map[string]any{"format": "human_readable"}, ""
		if name != "" {
			at := t.zone(name).String()
			args["timezone"], where = at, " in "+at
		}
		calls, lines = append(calls, call("get_current_time", args)), append(lines, "The clock"+where+" says: ")
	}
	for i, said := range t.useAll(calls...) {
		lines[i] += rewordForUser(said)
	}
	return strings.Join(lines, "\n")
}

// cityZone returns the time zone of the city that a message names where pattern looks for it, or "".
func cityZone(said string, pattern *regexp.Regexp) string {
	if m := pattern.FindStringSubmatch(said); m != nil {
		return zoneOf(m[1])
	}
	return ""
}

// zoneOf returns the time zone with the name of a city, or with that name, or "".
func zoneOf(city string) string {
	var names []string
	if strings.Contains(city, "/") {
		names = append(names, city)
	}
	for _, region := range [...]string{"Europe", "America", "Asia", "Africa", "Australia", "Pacific", "Atlantic"} {
		names = append(names, region+"/"+titleCase(city))
	}
	i := slices.IndexFunc(names, func(name string) bool { _, err := time.LoadLocation(name); return err == nil })
	if i < 0 || city == "" {
		return ""
	}
	return names[i]
}
