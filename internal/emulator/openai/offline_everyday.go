package openai

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// setKey is the hint in replies to requests that the rules cannot answer.
const setKey = "this demo answers by rules, not by an AI. Set OPENAI_API_KEY for a real model."

var (
	sumPattern       = regexp.MustCompile(`(?i)^(?:what(?:'s| is)|how much is|calculate|compute|please calculate)?\s*([-+(]*\d[\d\s.,+*/()x×÷^%-]*)\s*=?\s*\??$`)
	percentage       = regexp.MustCompile(`(?i)(\d+(?:\.\d+)?)\s*(?:%|percent)\s+of\s+(\d+(?:\.\d+)?)`)
	tablePattern     = regexp.MustCompile(`(?i)\btable\b`)
	rowsPattern      = regexp.MustCompile(`(?is)\btable[^:]*:\s*(.+)$`)
	codePattern      = regexp.MustCompile(`(?i)\b(write|show|give|code|program)\b.*\b(function|program|script|code|snippet|python|javascript|golang|go)\b`)
	modelOnlyPattern = regexp.MustCompile(`(?i)\b(weather|forecast|news|translate|translation|draw|paint|picture of|image of|search the web|google for|look up|poem|story|joke|essay)\b`)
	whoAmI           = regexp.MustCompile(`(?i)^\W*(who|what) are you\W*$|\bintroduce yourself\b`)
	cityClock        = regexp.MustCompile(`(?i)\b(?:time|date|day)\b.*\bin ([\p{L} ]{3,40}?)\W*$`)
	livesIn          = regexp.MustCompile(`(?i)\b(?:I|we) (?:live|moved|am|are)(?: now)? (?:in|to) ([\p{L} ]{3,40}?)(?: now)?\W*$`)
	somePlanets      = regexp.MustCompile(`\b(one|two|three|four|five|six|seven|\d)\s+(?:\w+\s+)?planets?\b`)
	tableNumber      = regexp.MustCompile(`\b(\d{1,2})\b`)
)

// introduce says in two lines who the bot is and what it can do.
func (t *turn) introduce() Reply {
	return Reply{Text: "I am OneClaw. The bot is the real one; its answers here come from rules, not from an AI.\n" + t.abilities()}
}

// calculate computes a sum with js_eval.
func (t *turn) calculate() Reply {
	said := strings.TrimSpace(t.said)
	shown, code := "", ""
	if m := percentage.FindStringSubmatch(said); m != nil {
		shown, code = m[1]+" % of "+m[2], m[1]+"/100*"+m[2]
	} else {
		shown = strings.TrimSpace(strings.TrimRight(sumPattern.FindStringSubmatch(said)[1], "=? "))
		code = strings.NewReplacer("x", "*", "×", "*", "÷", "/", "^", "**", ",", "", " ", "").Replace(strings.ToLower(shown))
	}
	// Twelve digits hide the error of binary fractions.
	code = "Number((" + code + ").toPrecision(12))"
	return t.useTool("js_eval", map[string]any{"code": code}, func(text string) string {
		value := firstLine(text)
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			return "I could not work that out. Write it like 17*23 or 15% of 80."
		}
		return shown + " = **" + value + "**"
	})
}

// isSum reports whether the message is a calculation: a percentage, or numbers with an operator.
func (t *turn) isSum() bool {
	if percentage.MatchString(t.said) {
		return true
	}
	m := sumPattern.FindStringSubmatch(strings.TrimSpace(t.said))
	return m != nil && len(m[1]) <= 60 && strings.ContainsAny(strings.TrimLeft(m[1], "-+ "), "+-*/x×÷^")
}

// writeTable answers with a table of the message's data, or with a known table.
func (t *turn) writeTable() Reply {
	if m := rowsPattern.FindStringSubmatch(t.said); m != nil {
		return Reply{Text: markdownTable(m[1])}
	}
	switch {
	case t.hasWord("multiplication", "times"):
		n := 5
		if m := tableNumber.FindStringSubmatch(t.said); m != nil {
			n, _ = strconv.Atoi(m[1])
		}
		return Reply{Text: multiplicationTable(min(max(n, 2), 10))}
	case t.hasWord("slack", "telegram"):
		return Reply{Text: markdownTable("What, Telegram, Slack; A conversation is, a chat or topic, a thread; In groups I answer, when mentioned, when mentioned; Start over with, /clear, !clear; Buttons, yes, yes")}
	case t.hasWord("planet", "planets"):
		planets := strings.Split("Planet, Moons, Day in hours; Mercury, 0, 1408; Venus, 0, 5832; Earth, 1, 24; Mars, 2, 25; Jupiter, 95, 10; Saturn, 146, 11; Uranus, 28, 17; Neptune, 16, 16", ";")
		if m := somePlanets.FindStringSubmatch(t.lower); m != nil {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				n = numberWords[m[1]]
			}
			planets = planets[:min(max(n, 1)+1, len(planets))]
		}
		return Reply{Text: markdownTable(strings.Join(planets, ";"))}
	}
	return Reply{Text: "Give me the rows, as in \"table: name, age; Ann, 30; Bob, 31\", or ask for the planets, Telegram and Slack, or a multiplication table; " + setKey}
}

// markdownTable returns a Markdown table. Semicolons or newlines separate rows, commas separate cells.
func markdownTable(text string) string {
	var b strings.Builder
	columns := 0
	for row := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), ",")
		head := columns == 0
		if head {
			columns = len(cells)
		}
		for i := range columns {
			cell := ""
			if i < len(cells) {
				cell = strings.TrimSpace(cells[i])
			}
			b.WriteString("| " + cell + " ")
		}
		b.WriteString("|\n")
		if head {
			b.WriteString(strings.Repeat("|---", columns) + "|\n")
		}
	}
	return strings.TrimSpace(b.String())
}

func multiplicationTable(n int) string {
	var table strings.Builder
	table.WriteString("×")
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&table, ",%d", i)
	}
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&table, "\n%d", i)
		for k := 1; k <= n; k++ {
			fmt.Fprintf(&table, ",%d", i*k)
		}
	}
	return markdownTable(table.String())
}

// program is a known program in several languages.
type program struct {
	words                  []string
	purpose                string
	python, golang, script string
}

func programs() []program {
	return []program{
		{
			[]string{"reverse", "reverses", "backwards"},
			"reverses a text",
			"def reverse(text):\n    return text[::-1]",
			"func reverse(text string) string {\n\trunes := []rune(text)\n\tslices.Reverse(runes)\n\treturn string(runes)\n}",
			"const reverse = (text) => [...text].reverse().join(\"\");",
		},
		{
			[]string{"prime", "primes"},
			"tells primes",
			"def is_prime(n):\n    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))",
			"func isPrime(n int) bool {\n\tfor d := 2; d*d <= n; d++ {\n\t\tif n%d == 0 {\n\t\t\treturn false\n\t\t}\n\t}\n\treturn n > 1\n}",
			"function isPrime(n) {\n  for (let d = 2; d * d <= n; d++) if (n % d === 0) return false;\n  return n > 1;\n}",
		},
		{
			[]string{"fibonacci"},
			"computes Fibonacci numbers",
			"def fibonacci(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a",
			"func fibonacci(n int) int {\n\ta, b := 0, 1\n\tfor range n {\n\t\ta, b = b, a+b\n\t}\n\treturn a\n}",
			"function fibonacci(n) {\n  let [a, b] = [0, 1];\n  while (n-- > 0) [a, b] = [b, a + b];\n  return a;\n}",
		},
		{
			[]string{"hello"},
			"greets",
			"print(\"Hello!\")",
			"package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"Hello!\") }",
			"console.log(\"Hello!\");",
		},
	}
}

// writeCode answers with one of the known programs.
func (t *turn) writeCode() Reply {
	for _, p := range programs() {
		if !t.hasWord(p.words...) {
			continue
		}
		language, text := "python", p.python
		switch {
		case t.hasWord("go", "golang"):
			language, text = "go", p.golang
		case t.hasWord("javascript", "js"):
			language, text = "javascript", p.script
		}
		return Reply{Text: fmt.Sprintf("This %s:\n\n```%s\n%s\n```", p.purpose, language, text)}
	}
	return Reply{Text: "I know four programs by heart: hello, reverse a text, primes and Fibonacci, in Python, Go and JavaScript; " + setKey}
}

// decline tells the user what the rules cannot do.
func (t *turn) decline() Reply {
	what := "write that"
	switch {
	case t.hasWord("weather", "forecast", "news", "web", "google for", "look up"):
		what = "look that up"
	case t.hasWord("translate", "translation"):
		what = "translate"
	case t.hasWord("draw", "paint", "picture", "image"):
		what = "draw"
	}
	return Reply{Text: "I cannot " + what + ": " + setKey}
}

// cityZone returns the time zone of the city that a message names where pattern looks for it, or "".
func cityZone(said string, pattern *regexp.Regexp) string {
	m := pattern.FindStringSubmatch(said)
	if m == nil {
		return ""
	}
	words := strings.Fields(strings.ToLower(m[1]))
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	city := strings.Join(words, "_")
	for _, region := range []string{"Europe", "America", "Asia", "Africa", "Australia", "Pacific", "Atlantic"} {
		if _, err := time.LoadLocation(region + "/" + city); err == nil {
			return region + "/" + city
		}
	}
	return ""
}
