// Package questions has the tool with which the model asks its user. The question is a form of
// [toolgroups.Ask]; the bridge shows it, and keeps the answer through restarts.
package questions

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"oneclaw/toolgroups"
)

// Limits of a call: how many questions it asks, with how many choices each, and their characters. A choice has to fit on a
// button.
const (
	maxQuestions = 3
	maxQuestion  = 300
	minChoices   = 2
	maxChoices   = 6
	maxChoice    = 36
)

//go:embed questions.json
var manifests embed.FS

// Group returns the tool. It only reads, so that a restart makes the call again, which finds its question where it stood.
func Group() (toolgroups.Group, error) {
	group, err := toolgroups.ReadGroup(manifests, "questions", map[string]toolgroups.Handler{
		"ask_user": toolgroups.TypedHandler(ask),
	})
	group.NotInTasks = true
	return group, err
}

type arguments struct {
	Questions []question `json:"questions"`
}

type question struct {
	Question string   `json:"question"`
	Choices  []string `json:"choices"`
}

func ask(ctx context.Context, _ toolgroups.Call, in arguments) (toolgroups.Result, error) {
	if n := len(in.Questions); n == 0 || n > maxQuestions {
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "'questions' has %d questions, want 1 to %d.", n, maxQuestions)
	}
	form := toolgroups.Question{From: "me", Own: true}
	for i, q := range in.Questions {
		field, err := q.field(i + 1)
		if err != nil {
			return toolgroups.Result{}, err
		}
		form.Fields = append(form.Fields, field)
	}
	answer, err := toolgroups.Ask(ctx, form)
	switch {
	case err != nil:
		return toolgroups.Result{}, err
	case answer.Fault != "":
		return toolgroups.Result{}, toolgroups.OwnErrorf(toolgroups.CodeInvalid, "The user was not asked: %s.", answer.Fault)
	case answer.Action == toolgroups.AnswerDecline:
		return toolgroups.Result{}, toolgroups.OwnErrorf(toolgroups.CodeNotAvailable, "Nobody can be asked with buttons here: no user waits for this run, or the chat has no buttons. Go on without, and say in your answer what you assumed or need to know.")
	case answer.Action != toolgroups.AnswerAccept:
		return toolgroups.TextResult("The user did not answer in time. Do not ask again now: go on without if you can, and say in your answer what you assumed or need to know.")
	}
	result := toolgroups.Result{Text: in.describe(answer)}
	if answer.Foreign {
		// What the user passed on is the words of others, like the result of a tool that reads them.
		result.Origin = toolgroups.OriginComputed
	}
	return result, nil
}

// field returns the field of a form for a question with a number.
func (q question) field(number int) (toolgroups.Field, error) {
	field := toolgroups.Field{Name: strconv.Itoa(number), Title: strings.TrimSpace(q.Question), Type: toolgroups.FieldChooseOne, Free: true}
	if n := utf8.RuneCountInString(field.Title); n == 0 || n > maxQuestion {
		return field, toolgroups.Errorf(toolgroups.CodeInvalid, "Question %d has %d characters, want 1 to %d.", number, n, maxQuestion)
	}
	if n := len(q.Choices); n < minChoices || n > maxChoices {
		return field, toolgroups.Errorf(toolgroups.CodeInvalid, "Question %d has %d choices, want %d to %d.", number, n, minChoices, maxChoices)
	}
	for _, choice := range q.Choices {
		choice = strings.Join(strings.Fields(choice), " ")
		if n := utf8.RuneCountInString(choice); n == 0 || n > maxChoice {
			return field, toolgroups.Errorf(toolgroups.CodeInvalid, "A choice of question %d has %d characters, want 1 to %d.", number, n, maxChoice)
		}
		if slices.ContainsFunc(field.Choices, func(c toolgroups.FieldChoice) bool { return strings.EqualFold(c.Value, choice) }) {
			return field, toolgroups.Errorf(toolgroups.CodeInvalid, "Question %d has a choice twice.", number)
		}
		field.Choices = append(field.Choices, toolgroups.FieldChoice{Value: choice})
	}
	return field, nil
}

// describe tells the model what was answered. It says which words are the user's, because those of a choice are its own.
func (in arguments) describe(answer toolgroups.Answer) string {
	var text strings.Builder
	text.WriteString("The user answered. None of this approves a call.")
	for i, q := range in.Questions {
		field, _ := q.field(i + 1)
		fmt.Fprintf(&text, "\n%d. ", i+1)
		switch value, given := answer.Values[field.Name].(string); {
		case !given:
			text.WriteString("skipped: decide yourself")
		case slices.Contains(field.Choices, toolgroups.FieldChoice{Value: value}):
			fmt.Fprintf(&text, "chose %q", value)
		default:
			fmt.Fprintf(&text, "wrote in their own words: %q", value)
		}
	}
	return text.String()
}
