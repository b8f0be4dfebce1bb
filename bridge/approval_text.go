package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"oneclaw/internal/runes"
	"oneclaw/toolgroups"
)

const (
	// maxOnCard is how many characters of arguments stand on the card itself; longer
	// ones stand whole in the messages above it.
	maxOnCard = 2000
	// maxArguments bounds what a person is asked to check.
	maxArguments = 30_000
	// maxAbout bounds what the card says about the tool, in characters.
	maxAbout = 200
)

// approvalCard is the question whether a call may run.
func approvalCard(j *Job, r *request, tool toolgroups.Tool, arguments string, timeout time.Duration) Card {
	card := Card{Kind: kindApproval, ReplyTo: j.Message.ID, Choices: [][]Choice{{
		{Label: "Allow once", Value: choiceAllow, Style: StylePrimary},
		{Label: "Deny", Value: choiceDeny, Style: StyleDanger},
	}}}
	if j.isTask() || r.Direct {
		card.ReplyTo = ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "**May I run %s?**", codeSpan(r.Tool))
	if j.isTask() {
		fmt.Fprintf(&text, " It is for the scheduled task %s.", shown(runes.Clip(j.Title, maxShownName)))
	}
	fmt.Fprintf(&text, "\n\n_%s_\n\n", shown(firstSentence(tool.Description)))
	if utf8.RuneCountInString(arguments) > maxOnCard {
		card.Lead = fmt.Sprintf("**What %s would be given:**\n\n%s", codeSpan(r.Tool), arguments)
		text.WriteString("What it would be given stands above. Please read it to its end.\n\n")
	} else {
		text.WriteString(arguments + "\n\n")
	}
	switch {
	case r.Approvers == ApproversAdmins:
		text.WriteString("An administrator can allow it")
	case r.Direct:
		text.WriteString("You can allow it")
	case r.Approvers == ApproversRequester:
		fmt.Fprintf(&text, "Only %s can allow it", shown(runes.Clip(requesterName(j), maxShownName)))
	default:
		fmt.Fprintf(&text, "%s or an administrator can allow it", shown(runes.Clip(requesterName(j), maxShownName)))
	}
	fmt.Fprintf(&text, " within %s; until then I wait.", lasting(timeout))
	card.Text = text.String()
	return card
}

// overText is the text of such a card once it is over: who can still do what until when,
// its last paragraph, gives way to what was done.
func overText(card, outcome string) string {
	if at := strings.LastIndex(card, "\n\n"); at >= 0 {
		card = card[:at]
	}
	return strings.TrimSpace(card + "\n\n" + outcome)
}

func requesterName(j *Job) string {
	if j.Message.UserName != "" {
		return j.Message.UserName
	}
	return j.Message.User
}

// lasting is a duration as people say it.
func lasting(d time.Duration) string {
	if d >= time.Minute && d%time.Minute == 0 {
		if d == time.Minute {
			return "a minute"
		}
		return fmt.Sprintf("%d minutes", d/time.Minute)
	}
	return d.String()
}

// firstSentence is the beginning of a tool's description, on one line.
func firstSentence(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if i := strings.Index(line, ". "); i >= 0 {
		line = line[:i+1]
	}
	return runes.Clip(line, maxAbout)
}

// shown is a text of one line as Markdown that shows it as it is.
func shown(text string) string {
	return escapeMarkdown(strings.Join(strings.Fields(reveal(text)), " "))
}

// codeSpan shows a name in the type of code.
func codeSpan(name string) string {
	return "`" + strings.ReplaceAll(strings.Join(strings.Fields(reveal(name)), " "), "`", "'") + "`"
}

// reveal makes visible what a person would not see, or would see in another order:
// control characters, marks of direction, characters without a width.
func reveal(text string) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t' || unicode.IsPrint(r) && visible(string(r)) || r == ' ':
			out.WriteRune(r)
		default:
			fmt.Fprintf(&out, "⟨U+%04X⟩", r)
		}
	}
	return out.String()
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// showArguments shows the arguments of a call whole and exactly, as Markdown: each under
// its name, texts with their lines. It reports false where they are too long for that.
func showArguments(raw json.RawMessage) (string, bool) {
	if utf8.RuneCount(raw) > maxArguments {
		return "", false
	}
	if len(bytes.TrimSpace(raw)) == 0 || string(bytes.TrimSpace(raw)) == "{}" {
		return "It is given nothing.", true
	}
	fields, ok := argumentFields(raw)
	if !ok {
		return fence(string(raw)), true
	}
	var text strings.Builder
	for _, f := range fields {
		fmt.Fprintf(&text, "%s:\n\n%s\n\n", codeSpan(f.name), fence(f.value))
	}
	shown := strings.TrimSpace(text.String())
	return shown, utf8.RuneCountInString(shown) <= 2*maxArguments
}

type field struct{ name, value string }

// argumentFields takes an object apart, in its own order, every key counted. It reports
// false for anything else, and for an object whose keys are no plain names.
func argumentFields(raw json.RawMessage) ([]field, bool) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	var fields []field
	for decoder.More() {
		key, err := decoder.Token()
		name, _ := key.(string)
		var value json.RawMessage
		if err != nil || !plainName.MatchString(name) || decoder.Decode(&value) != nil {
			return nil, false
		}
		var text string
		if value[0] != '"' || json.Unmarshal(value, &text) != nil {
			var indented bytes.Buffer
			if json.Indent(&indented, value, "", "  ") != nil {
				return nil, false
			}
			text = indented.String()
		}
		fields = append(fields, field{name, text})
	}
	if _, err := decoder.Token(); err != nil || decoder.More() {
		return nil, false
	}
	return fields, true
}

// fence shows a text in a block of code that it can not get out of.
func fence(text string) string {
	longest, run := 0, 0
	for _, r := range text {
		if r == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	marks := strings.Repeat("`", max(3, longest+1))
	return marks + "\n" + reveal(text) + "\n" + marks
}
