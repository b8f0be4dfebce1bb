package openai

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	mostPattern  = regexp.MustCompile(`(?i)\b(most|highest|largest|biggest|best|top|maximum|dearest|longest)\b`)
	leastPattern = regexp.MustCompile(`(?i)\b(least|lowest|smallest|worst|fewest|minimum|cheapest|shortest)\b`)
	meanPattern  = regexp.MustCompile(`(?i)\b(average|mean)\b`)
	sumOfPattern = regexp.MustCompile(`(?i)\b(add up|sum|total|altogether|in all)\b`)
	barsPattern  = regexp.MustCompile(`(?i)\b(charts?|graph|diagram|plot)\b`)
	inMonth      = regexp.MustCompile(`(?i)\bin (?:` + monthWord + `)\b`)
	ruleLine     = regexp.MustCompile(`^[\s|:-]+$`)
)

// table is a table that the user has given: the first row has the names of the columns.
type table [][]string

// parseTable returns the table in a text: lines of cells between tabs or bars.
func parseTable(text string) (rows table) {
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.Trim(strings.TrimSpace(senderMark.ReplaceAllString(line, "")), "|")
		cells := strings.FieldsFunc(line, func(r rune) bool { return r == '\t' || r == '|' })
		if len(cells) < 2 || ruleLine.MatchString(line) || len(rows) > 0 && len(cells) != len(rows[0]) {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	// A workbook is read with the letters of its columns and the numbers of its rows.
	if len(rows) > 2 && rows[0][0] == "" && rows[0][1] == "A" {
		rows = rows[1:]
		for i := range rows {
			rows[i] = rows[i][1:]
		}
	}
	if len(rows) < 2 {
		return nil
	}
	return rows
}

// number reads the number of a cell.
func number(cell string) (float64, bool) {
	n, err := strconv.ParseFloat(strings.Trim(strings.ReplaceAll(cell, ",", ""), " €$£%"), 64)
	return n, err == nil
}

func (tb table) isNumeric(column int) bool {
	return !slices.ContainsFunc(tb[1:], func(row []string) bool { _, ok := number(row[column]); return !ok })
}

// column returns the column that a question names among those with numbers, or those with words; without a name the
// only one with numbers, or the first one with words.
func (tb table) column(question string, numeric bool) int {
	var all []int
	for i, name := range tb[0] {
		if tb.isNumeric(i) != numeric {
			continue
		}
		if countShared(contentWords(question), contentWords(name)) > 0 {
			return i
		}
		all = append(all, i)
	}
	if len(all) == 1 || len(all) > 0 && !numeric {
		return all[0]
	}
	return -1
}

// answer computes what a question asks of a table; "" if it asks for nothing that can be computed. The message
// that the question is from may name the column of numbers.
func (tb table) answer(question, message string) string { //nolint:cyclop // One kind of question after another.
	value, by := tb.column(question, true), tb.column(question, false)
	if value < 0 {
		value = tb.column(message, true)
	}
	rows, which := tb.rows(question)
	most, least, chart := mostPattern.MatchString(question), leastPattern.MatchString(question), barsPattern.MatchString(question)
	mean := meanPattern.MatchString(question)
	switch {
	case value < 0 || len(rows) == 0:
	case mean || sumOfPattern.MatchString(question):
		_, sums := tb.group(rows, -1, value)
		word := "sum"
		if mean {
			word, sums[0] = "average", sums[0]/float64(len(rows))
		}
		return fmt.Sprintf("The %s of *%s*%s is **%s** (%d %s).", word, tb[0][value], which, shortNumber(sums[0]), len(rows), plural(strconv.Itoa(len(rows)), "row"))
	case by >= 0 && chart:
		names, sums := tb.group(rows, by, value)
		return barChart(tb[0][value], names, sums)
	case by >= 0 && (most || least):
		names, sums := tb.group(rows, by, value)
		n := slices.Max(sums)
		if least {
			n = slices.Min(sums)
		}
		var who []string
		for i, name := range names {
			if sums[i] == n {
				who = append(who, name)
			}
		}
		return fmt.Sprintf("**%s**: %s is %s%s.", strings.Join(who, "** and **"), tb[0][value], shortNumber(n), which)
	}
	// A row that the question names, as it stands.
	if which == "" || len(rows) != 1 || most || least || chart {
		return ""
	}
	var cells []string
	for i, cell := range rows[0] {
		cells = append(cells, tb[0][i]+": "+cell)
	}
	return strings.Join(cells, ", ") + "."
}

// rows returns the rows whose cells a question names, or all of them, and says which.
func (tb table) rows(question string) (rows [][]string, which string) {
	words := " " + plainWords(question) + " "
	rows = tb[1:]
	for i := range tb[0] {
		if tb.isNumeric(i) {
			continue
		}
		dates := true
		var found [][]string
		var names []string
		for _, row := range rows {
			cell := plainWords(row[i])
			at, err := time.Parse(time.DateOnly, row[i])
			dates = dates && err == nil
			if cell != "" && strings.Contains(words, " "+cell+" ") || err == nil && strings.Contains(words, " "+strings.ToLower(at.Month().String())+" ") {
				found = append(found, row)
				if !slices.Contains(names, row[i]) {
					names = append(names, row[i])
				}
			}
		}
		switch {
		case len(found) == 0 && dates && inMonth.MatchString(question):
			return nil, "" // of another month
		case len(found) > 0 && dates:
			rows, which = found, which+" "+inMonth.FindString(question)
		case len(found) > 0:
			rows, which = found, which+" for "+strings.Join(names, " and ")
		}
	}
	return rows, which
}

// plainWords returns the words of a text in lower case, apart by spaces.
func plainWords(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), isNoWord), " ")
}

// group adds up a column by the values of another, in their order; all of it by a negative one.
func (tb table) group(rows [][]string, by, value int) (names []string, sums []float64) {
	for _, row := range rows {
		name := ""
		if by >= 0 {
			name = row[by]
		}
		i := slices.Index(names, name)
		if i < 0 {
			i, names, sums = len(names), append(names, name), append(sums, 0)
		}
		n, _ := number(row[value])
		sums[i] += n
	}
	return names, sums
}

// barChart draws a chart of characters.
func barChart(title string, names []string, sums []float64) string {
	const width = 20
	widest, most := 0, max(slices.Max(sums), 1e-9)
	for _, name := range names {
		widest = max(widest, len([]rune(name)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%s*, drawn with characters:\n\n```\n", title)
	for i, name := range names {
		bar := strings.Repeat("█", max(0, int(sums[i]/most*width+0.5)))
		fmt.Fprintf(&b, "%-*s %s %s\n", widest, name, bar, shortNumber(sums[i]))
	}
	return b.String() + "```"
}

// shortNumber writes a number to twelve digits, which hide the error of binary fractions.
func shortNumber(n float64) string {
	n, _ = strconv.ParseFloat(strconv.FormatFloat(n, 'g', 12, 64), 64)
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// splitRows reads a table whose rows are between semicolons or newlines, and whose cells between commas.
func splitRows(text string) (tb table) {
	for row := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		tb = append(tb, strings.Split(strings.Trim(strings.TrimSpace(row), "|"), ","))
	}
	return tb
}

// markdown returns the table in Markdown, with as many columns as the first row has.
func (tb table) markdown() string {
	var b strings.Builder
	for i, row := range tb {
		cells := make([]string, len(tb[0]))
		for k, cell := range row[:min(len(row), len(cells))] {
			cells[k] = strings.TrimSpace(cell)
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
		}
	}
	return strings.TrimSpace(b.String())
}
