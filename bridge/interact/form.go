package interact

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"oneclaw/bridge/chats"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// Limits of a question. A question with more fields, choices or text is declined; a longer description
// is cut, and after a longer answer the user is asked again.
const (
	maxFields     = 20
	maxChoices    = 40
	maxText       = 2000 // characters of the message
	maxFieldAbout = 300  // characters of a field's description
	maxAnswer     = 4000 // characters of an answer
	maxShownValue = 500  // characters of an answer on the card
)

// form is the data of a question's card: the question, and the answer so far.
type form struct {
	// Requester is the user who may answer, as platform:id, and Name is that user's name on the
	// platform. ByChat says that the requester is a chat, for which its administrators answer.
	Requester string              `json:"requester"`
	Name      string              `json:"name,omitempty"`
	ByChat    bool                `json:"by_chat,omitempty"`
	Direct    bool                `json:"direct,omitempty"`
	Threaded  bool                `json:"threaded,omitempty"`
	Tool      string              `json:"tool"`
	Timeout   time.Duration       `json:"within"`
	Question  toolgroups.Question `json:"question"`
	// FieldIndex is the index of the field being asked; after the last field the answer is reviewed.
	FieldIndex int               `json:"at,omitempty"`
	Values     toolgroups.Values `json:"values,omitempty"`
	// Foreign says that Values hold words that the requester did not write.
	Foreign bool `json:"foreign,omitempty"`
	// Picked are the indexes of the options chosen so far for the current field.
	Picked []int `json:"picked,omitempty"`
	// Answer is set once the question is answered.
	Answer *toolgroups.Answer `json:"answer,omitempty"`
}

func decodeForm(card Card) (*form, error) {
	f := &form{}
	if err := json.Unmarshal(card.Data, f); err != nil {
		return nil, fmt.Errorf("decode question: %w", err)
	}
	return f, nil
}

const faultSecret = "it asks for a secret"

var secretPattern = regexp.MustCompile(`(?i)pass(word|wd|phrase|code)|secret|token|api[ _-]?key|private[ _-]?key|credential|card[ _-]?number|\b(cvv|cvc|pin|otp)\b`)

// declineReason returns why a question cannot be asked; empty if it can.
func declineReason(q *toolgroups.Question) string {
	if len(q.Fields) > maxFields || utf8.RuneCountInString(q.Text) > maxText {
		return "it is too long"
	}
	if q.URL != "" {
		if at, err := url.Parse(q.URL); err != nil || at.Scheme != "https" || at.Host == "" || at.User != nil || len(q.URL) > maxText {
			return "its address is no plain https one"
		}
	}
	for _, f := range q.Fields {
		choose := f.Type == toolgroups.FieldChooseOne || f.Type == toolgroups.FieldChooseMany
		switch {
		case secretPattern.MatchString(f.Name + " " + f.Title):
			return faultSecret
		case choose && len(f.Choices) == 0 || len(f.Choices) > maxChoices:
			return "it has no choices that fit under a message"
		}
	}
	return ""
}

// Button values. The value of an option ends in its index.
const (
	pressYes     = "yes"
	pressNo      = "no"
	pressChoice  = "choice-"
	pressPicked  = "picked"
	pressDefault = "default"
	pressSkip    = "skip"
	pressSend    = "send"
	pressAgain   = "again"
	pressOpen    = "open"
	pressDone    = "done"
	pressDecline = "decline"
	pressCancel  = "cancel"
)

// HandlePress handles the buttons of questions, and the messages that answer them.
func (d *Elicitation) HandlePress(_ context.Context, press Press) (Result, error) {
	f, err := decodeForm(press.Card)
	if err != nil {
		return Result{}, err
	}
	if press.Expired {
		f.Answer = &toolgroups.Answer{Action: toolgroups.AnswerCancel}
		return f.result("", "⌛ **Expired.** There was no answer in time.")
	}
	if press.User != f.Requester && !press.ForChat {
		return Result{Toast: "Only the person this is done for can answer."}, nil
	}
	switch press.Choice {
	case pressDecline:
		f.Answer = &toolgroups.Answer{Action: toolgroups.AnswerDecline}
		return f.result("Declined.", "❌ **Declined.**")
	case pressCancel:
		f.Answer = &toolgroups.Answer{Action: toolgroups.AnswerCancel}
		return f.result("Cancelled.", "✖ **Cancelled.**")
	case pressAgain:
		f.FieldIndex, f.Values, f.Foreign, f.Picked = 0, nil, false, nil
		return f.result("", "")
	case pressSend, pressDone:
		f.accept()
		return f.result("Sent.", "✅ **Answered.**")
	case pressOpen:
		return Result{}, nil // the platform opens the link
	}
	if complaint := f.setField(press); complaint != "" {
		return Result{Toast: complaint}, nil
	}
	// In a thread any message is taken for the answer, and so is a reply to any message of the bot until the
	// question is shown. The user has to look at such an answer before it leaves, and at one that others wrote.
	// What the model asks itself does not leave.
	maybeOther := press.Choice == "" && (!press.IsReply || press.Foreign)
	if f.FieldIndex == len(f.Question.Fields) && (f.Question.Own || f.FieldIndex == 1 && !maybeOther) {
		f.accept()
		return f.result("", "✅ **Answered.**")
	}
	return f.result("", "")
}

func (f *form) accept() {
	f.Answer = &toolgroups.Answer{Action: toolgroups.AnswerAccept, Values: f.Values, Foreign: f.Foreign}
}

// setField sets the current field to the value of a press or a text. If the value is invalid, it returns
// a complaint for the user, as a sentence.
func (f *form) setField(press Press) string {
	if f.FieldIndex >= len(f.Question.Fields) {
		return "Please use the buttons under the question."
	}
	field := &f.Question.Fields[f.FieldIndex]
	var value any
	switch number, isChoice := strings.CutPrefix(press.Choice, pressChoice); {
	case press.Choice == "":
		var complaint string
		if value, complaint = parseValue(field, press.Text); complaint != "" {
			return complaint + " Please answer the question once more."
		}
		f.Foreign = f.Foreign || press.Foreign
	case press.Choice == pressYes, press.Choice == pressNo:
		value = press.Choice == pressYes
	case press.Choice == pressDefault:
		value = field.Default
	case press.Choice == pressSkip:
	case press.Choice == pressPicked:
		var complaint string
		if value, complaint = pickedValues(field, f.Picked); complaint != "" {
			return complaint
		}
	case isChoice:
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n >= len(field.Choices) {
			return "That cannot be chosen here."
		}
		if field.Type == toolgroups.FieldChooseMany {
			if i := slices.Index(f.Picked, n); i >= 0 {
				f.Picked = slices.Delete(f.Picked, i, i+1)
			} else {
				f.Picked = append(f.Picked, n)
			}
			return ""
		}
		value = field.Choices[n].Value
	default:
		return "That cannot be chosen here."
	}
	if value != nil {
		if f.Values == nil {
			f.Values = make(toolgroups.Values)
		}
		f.Values[field.Name] = value
	}
	f.FieldIndex++
	f.Picked = nil
	return ""
}

// parseValue parses a text as the value of a field, or returns a complaint.
func parseValue(field *toolgroups.Field, text string) (any, string) {
	text = strings.TrimSpace(text)
	if utf8.RuneCountInString(text) > maxAnswer {
		return nil, fmt.Sprintf("That is longer than %d characters.", maxAnswer)
	}
	switch field.Type {
	case toolgroups.FieldNumber, toolgroups.FieldInteger:
		return parseNumber(field, text)
	case toolgroups.FieldBoolean:
		switch strings.ToLower(text) {
		case "yes", "y", "true":
			return true, ""
		case "no", "n", "false":
			return false, ""
		}
		return nil, "I need a yes or a no."
	case toolgroups.FieldChooseOne:
		if i := findChoice(field, text); i >= 0 {
			return field.Choices[i].Value, ""
		}
		if field.Free {
			return text, ""
		}
		return nil, "That is not one of the choices."
	case toolgroups.FieldChooseMany:
		var numbers []int
		for part := range strings.SplitSeq(text, ",") {
			i := findChoice(field, strings.TrimSpace(part))
			if i < 0 {
				return nil, "That is not one of the choices."
			}
			if !slices.Contains(numbers, i) {
				numbers = append(numbers, i)
			}
		}
		return pickedValues(field, numbers)
	}
	return text, checkText(field, text)
}

func findChoice(field *toolgroups.Field, text string) int {
	return slices.IndexFunc(field.Choices, func(c toolgroups.FieldChoice) bool {
		return strings.EqualFold(c.Value, text) || strings.EqualFold(c.Title, text)
	})
}

func parseNumber(field *toolgroups.Field, text string) (any, string) {
	n, err := strconv.ParseFloat(text, 64)
	switch whole := field.Type == toolgroups.FieldInteger; {
	case whole && (err != nil || n != math.Trunc(n)):
		return nil, "I need a whole number, such as 7."
	case err != nil || n-n != 0: // not a number, or one that JSON cannot encode
		return nil, "I need a number, such as 7 or 2.5."
	case field.Min != nil && n < *field.Min:
		return nil, "That is too small: it has to be " + formatValue(*field.Min) + " or more."
	case field.Max != nil && n > *field.Max:
		return nil, "That is too large: it has to be " + formatValue(*field.Max) + " or less."
	}
	if !json.Valid([]byte(text)) { // such as +7
		return json.Number(strconv.FormatFloat(n, 'g', -1, 64)), ""
	}
	return json.Number(strings.TrimSuffix(text, ".0")), ""
}

// checkText returns a complaint about a text that is no valid value of a field; empty if it is valid.
func checkText(field *toolgroups.Field, text string) string {
	length := float64(utf8.RuneCountInString(text))
	switch {
	case field.Min != nil && length < *field.Min:
		return "That is too short: it needs at least " + formatValue(*field.Min) + " characters."
	case field.Max != nil && length > *field.Max:
		return "That is too long: it may have " + formatValue(*field.Max) + " characters."
	}
	if pattern, err := regexp.Compile(field.Pattern); err == nil && !pattern.MatchString(text) {
		return "That does not have the requested form."
	}
	var err error
	switch field.Format {
	case "email":
		var address *mail.Address
		if address, err = mail.ParseAddress(text); err == nil && address.Address != text {
			err = fmt.Errorf("more than an address")
		}
	case "uri":
		var at *url.URL
		if at, err = url.Parse(text); err == nil && at.Scheme == "" {
			err = fmt.Errorf("no scheme")
		}
	case "date":
		_, err = time.Parse(time.DateOnly, text)
	case "date-time":
		_, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		return "I need " + formatExamples[field.Format] + "."
	}
	return ""
}

// formatExamples describe the formats of texts.
var formatExamples = map[string]string{
	"email": "an e-mail address, such as ann@example.com", "uri": "an address, such as https://example.com",
	"date": "a date, such as 2026-01-31", "date-time": "a date with a time, such as 2026-01-31T18:30:00Z",
}

// pickedValues returns the value for several chosen options, or a complaint.
func pickedValues(field *toolgroups.Field, numbers []int) (any, string) {
	n := float64(len(numbers))
	switch {
	case field.Min != nil && n < *field.Min:
		return nil, "Please choose at least " + formatValue(*field.Min) + "."
	case field.Max != nil && n > *field.Max:
		return nil, "Please choose at most " + formatValue(*field.Max) + "."
	}
	values := []any{}
	for _, i := range slices.Sorted(slices.Values(numbers)) {
		values = append(values, field.Choices[i].Value)
	}
	return values, ""
}

// formatValue formats a value for users.
func formatValue(value any) string {
	switch v := value.(type) {
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, formatValue(one))
		}
		return wording.JoinOr(all, "none")
	}
	return fmt.Sprint(value)
}

// card returns the card of the question in its current state.
func (f *form) card() (Card, error) {
	data, err := json.Marshal(f)
	if err != nil {
		return Card{}, fmt.Errorf("encode question: %w", err)
	}
	return Card{Kind: ElicitationKind, KeepCommands: true, Text: f.text(), Footer: f.footer(), Choices: f.choices(), Data: data}, nil
}

// result returns what the card shows after a press. An outcome closes the card, unless it is empty.
func (f *form) result(toast, outcome string) (Result, error) {
	card, err := f.card()
	result := Result{Toast: toast, Text: card.Text, Choices: card.Choices, Data: card.Data}
	if outcome != "" {
		result.Text += "\n\n" + outcome
		result.Close, result.Choices = true, nil
	}
	return result, err
}

// footer says who may answer.
func (f *form) footer() string {
	who := "You"
	if f.ByChat {
		who = "An administrator of this chat who may talk to me"
	} else if !f.Direct {
		who = "Only " + showName(cmp.Or(f.Name, f.Requester))
	}
	if f.Question.Own {
		return fmt.Sprintf("%s can answer within %s; until then I wait. An answer approves nothing.", who, wording.DurationInWords(f.Timeout))
	}
	return fmt.Sprintf("%s can answer within %s; until then I wait. What you answer goes to %s: tell it no passwords.",
		who, wording.DurationInWords(f.Timeout), wording.EscapeRevealed(wording.Clip(f.Question.From, MaxName)))
}

// text returns the question, the answers so far, and the current field.
func (f *form) text() string {
	q := &f.Question
	if q.Own {
		return f.ownText()
	}
	var text strings.Builder
	fmt.Fprintf(&text, "🔌 **The server %s asks this, not I,** for %s:\n", wording.InlineCode(wording.Clip(q.From, MaxName)), wording.InlineCode(f.Tool))
	for line := range strings.Lines(q.Text) {
		fmt.Fprintf(&text, "\n> %s", wording.EscapeRevealed(line))
	}
	if q.URL != "" {
		fmt.Fprintf(&text, "\n\nIt wants you to open a page at %s:\n\n%s\n\nOpen it only if you trust it, and press **Done** when you have finished there.", wording.InlineCode(hostOf(q.URL)), wording.Fence(q.URL))
		return text.String()
	}
	text.WriteString("\n")
	for i := range q.Fields[:min(f.FieldIndex, len(q.Fields))] {
		field, said := &q.Fields[i], "_left out_"
		if value, has := f.Values[field.Name]; has {
			said = wording.EscapeRevealed(wording.Clip(formatValue(value), maxShownValue))
		}
		fmt.Fprintf(&text, "\n- %s: %s", fieldTitle(field), said)
	}
	if f.Answer != nil || len(q.Fields) == 0 {
		return text.String()
	}
	if f.FieldIndex == len(q.Fields) {
		return text.String() + fmt.Sprintf("\n\nShall I send this to %s? Nothing has left yet.", wording.InlineCode(wording.Clip(q.From, MaxName)))
	}
	field := &q.Fields[f.FieldIndex]
	fmt.Fprintf(&text, "\n\n**%s**", fieldTitle(field))
	if len(q.Fields) > 1 {
		fmt.Fprintf(&text, " (%d of %d)", f.FieldIndex+1, len(q.Fields))
	}
	if field.Description != "" {
		fmt.Fprintf(&text, "\n\n> %s", wording.EscapeRevealed(wording.Clip(field.Description, maxFieldAbout)))
	}
	fmt.Fprintf(&text, "\n\n%s", f.instruction(field))
	return text.String()
}

// ownText returns what the model asks: what was answered so far, and the current question. The model's words are quoted,
// so that none of them look like those of the bot.
func (f *form) ownText() string {
	q := &f.Question
	var text strings.Builder
	text.WriteString("❓ **I have a question.**")
	if len(q.Fields) > 1 {
		text.Reset()
		fmt.Fprintf(&text, "❓ **I have %d questions.**", len(q.Fields))
	}
	for i := range q.Fields[:min(f.FieldIndex, len(q.Fields))] {
		field, said := &q.Fields[i], "_left out_"
		if value, has := f.Values[field.Name]; has {
			said = showAnswer(formatValue(value))
		}
		fmt.Fprintf(&text, "\n\n> %s\n\n%s", wording.EscapeRevealed(field.Title), said)
	}
	if f.FieldIndex == len(q.Fields) {
		return text.String()
	}
	field := &q.Fields[f.FieldIndex]
	fmt.Fprintf(&text, "\n\n> %s", wording.EscapeRevealed(field.Title))
	if f.Answer != nil {
		return text.String()
	}
	how := "reply to this message with your own answer"
	switch {
	case f.Direct:
		how = "write your own answer"
	case f.Threaded:
		how = "write your own answer here"
	}
	return text.String() + "\n\nPlease press a button, or " + how + "."
}

// showAnswer formats what a user answered to the model, in quotation marks.
func showAnswer(value string) string {
	return wording.EscapeRevealed(wording.Quote(value, maxShownValue))
}

func fieldTitle(field *toolgroups.Field) string {
	return wording.EscapeRevealed(wording.Clip(cmp.Or(field.Title, field.Name), MaxName))
}

// instruction tells the user how to answer a field.
func (f *form) instruction(field *toolgroups.Field) string {
	var want string
	switch field.Type {
	case toolgroups.FieldBoolean, toolgroups.FieldChooseOne:
		return "Please press a button."
	case toolgroups.FieldChooseMany:
		return "Please press your choices, then **OK**."
	case toolgroups.FieldNumber:
		want = "a number"
	case toolgroups.FieldInteger:
		want = "a whole number"
	default:
		want = cmp.Or(formatExamples[field.Format], "text")
	}
	least, most, unit := field.Min, field.Max, ""
	if field.Type == toolgroups.FieldText {
		unit = " characters"
	}
	switch {
	case least != nil && most != nil:
		want += fmt.Sprintf(", %s to %s%s", formatValue(*least), formatValue(*most), unit)
	case least != nil:
		want += fmt.Sprintf(", at least %s%s", formatValue(*least), unit)
	case most != nil:
		want += fmt.Sprintf(", at most %s%s", formatValue(*most), unit)
	}
	if f.Threaded {
		return "Please write it here: " + want + "."
	}
	return "Please reply to this message with it: " + want + "."
}

// reactions returns those that say yes and no; none if somebody decides for a chat.
func (f *form) reactions() (yes, no chats.Feedback) {
	if f.ByChat {
		return "", ""
	}
	return chats.FeedbackGood, chats.FeedbackBad
}

// choices returns the buttons.
func (f *form) choices() [][]Choice {
	q := &f.Question
	last := []Choice{{Label: "Decline", Value: pressDecline, Style: chats.StyleDanger}, {Label: "Cancel", Value: pressCancel}}
	var rows [][]Choice
	switch {
	case q.URL != "":
		open := "Open " + hostOf(q.URL)
		if utf8.RuneCountInString(open) > MaxLabel { // whose page it is stands at the end
			open = "Open the page"
		}
		rows = [][]Choice{{{Label: open, Value: pressOpen, URL: q.URL}, {Label: "Done", Value: pressDone, Style: chats.StylePrimary}}}
	case len(q.Fields) == 0:
		rows = [][]Choice{{{Label: "Agree", Value: pressSend, Style: chats.StylePrimary}}}
		rows[0][0].Reaction, last[0].Reaction = f.reactions()
	case f.FieldIndex >= len(q.Fields):
		rows = [][]Choice{{{Label: "Send", Value: pressSend, Style: chats.StylePrimary}, {Label: "Start over", Value: pressAgain}}}
	default:
		rows = f.fieldChoices(&q.Fields[f.FieldIndex])
	}
	if q.Own { // each question can be skipped, and /stop ends them
		return rows
	}
	return append(rows, last)
}

// hostOf returns the host of an address, so that it looks like no other one.
func hostOf(address string) string {
	at, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return wording.RevealHost(at.Host)
}

func (f *form) fieldChoices(field *toolgroups.Field) (rows [][]Choice) {
	switch field.Type {
	case toolgroups.FieldBoolean:
		yes, no := f.reactions()
		rows = append(rows, []Choice{{Label: "Yes", Value: pressYes, Reaction: yes}, {Label: "No", Value: pressNo, Reaction: no}})
	case toolgroups.FieldChooseOne, toolgroups.FieldChooseMany:
		for i, c := range field.Choices {
			// In quotation marks, so that no choice of a server or the model looks like a button of the bot.
			label := "“" + cmp.Or(wording.OneLine(cmp.Or(c.Title, c.Value), MaxLabel-4), strconv.Itoa(i+1)) + "”"
			if slices.Contains(f.Picked, i) {
				label = "✓ " + label
			}
			rows = append(rows, []Choice{{Label: label, Value: pressChoice + strconv.Itoa(i)}})
		}
		if field.Type == toolgroups.FieldChooseMany {
			rows = append(rows, []Choice{{Label: "OK", Value: pressPicked, Style: chats.StylePrimary}})
		}
	}
	var more []Choice
	if field.Default != nil {
		more = append(more, Choice{Label: wording.OneLine("As suggested: "+formatValue(field.Default), MaxLabel), Value: pressDefault})
	}
	if !field.Required {
		more = append(more, Choice{Label: "Skip", Value: pressSkip})
	}
	if more != nil {
		rows = append(rows, more)
	}
	return rows
}
