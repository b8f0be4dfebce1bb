package drive

import (
	"cmp"
	"context"

	"google.golang.org/api/forms/v1"

	"oneclaw/toolgroups/google/service"
)

type formsView struct {
	FormID        string      `json:"formId"`
	Title         string      `json:"title"`
	Description   string      `json:"description,omitempty"`
	DocumentTitle string      `json:"documentTitle,omitempty"`
	ResponderURI  string      `json:"responderUri,omitempty"`
	Items         []formsItem `json:"items"`
}

// formsItem is a question, a group of questions, or an item between them.
type formsItem struct {
	ID          string             `json:"itemId"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Question    *formsQuestionItem `json:"questionItem"`
	Group       *formsGrid         `json:"questionGroupItem,omitempty"`
}

type formsQuestionItem struct {
	Question formsQuestion `json:"question"`
}

type formsQuestion struct {
	ID         string   `json:"questionId"`
	Title      string   `json:"title,omitempty"` // of a row
	Required   bool     `json:"required"`
	Type       string   `json:"type"`
	ChoiceType string   `json:"choiceType,omitempty"`
	Options    []string `json:"options,omitempty"`
	Low        *int64   `json:"low,omitempty"`
	High       *int64   `json:"high,omitempty"`
}

// formsGrid is a grid: questions with the same options.
type formsGrid struct {
	Rows    []formsQuestion `json:"questions"`
	Options []string        `json:"options,omitempty"`
}

func formsGet(ctx context.Context, api *forms.Service, _ *service.Conn, in formsArgs) (any, error) {
	f, err := api.Forms.Get(in.FormID).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	out := formsView{FormID: f.FormId, ResponderURI: f.ResponderUri, Items: make([]formsItem, len(f.Items))}
	if f.Info != nil {
		out.Title, out.Description, out.DocumentTitle = f.Info.Title, f.Info.Description, f.Info.DocumentTitle
	}
	for i, item := range f.Items {
		out.Items[i] = newFormsItem(item)
	}
	return out, nil
}

func newFormsItem(item *forms.Item) formsItem {
	out := formsItem{ID: item.ItemId, Title: item.Title, Description: item.Description}
	if item.QuestionItem != nil && item.QuestionItem.Question != nil {
		out.Question = &formsQuestionItem{newFormsQuestion(item.QuestionItem.Question)}
	}
	if group := item.QuestionGroupItem; group != nil {
		out.Group = &formsGrid{Rows: make([]formsQuestion, len(group.Questions))}
		for i, q := range group.Questions {
			out.Group.Rows[i] = newFormsQuestion(q)
		}
		if group.Grid != nil {
			out.Group.Options = formsOptions(group.Grid.Columns)
		}
	}
	return out
}

func newFormsQuestion(q *forms.Question) formsQuestion {
	out := formsQuestion{ID: q.QuestionId, Required: q.Required, Type: "UNKNOWN"}
	switch {
	case q.ChoiceQuestion != nil:
		out.Type, out.ChoiceType, out.Options = "CHOICE", q.ChoiceQuestion.Type, formsOptions(q.ChoiceQuestion)
	case q.TextQuestion != nil:
		out.Type = "TEXT"
	case q.ScaleQuestion != nil:
		out.Type, out.Low, out.High = "SCALE", &q.ScaleQuestion.Low, &q.ScaleQuestion.High
	case q.DateQuestion != nil:
		out.Type = "DATE"
	case q.TimeQuestion != nil:
		out.Type = "TIME"
	case q.FileUploadQuestion != nil:
		out.Type = "FILE_UPLOAD"
	case q.RowQuestion != nil:
		out.Type, out.Title = "ROW", q.RowQuestion.Title
	}
	return out
}

// formsOptions returns the texts of a choice's options.
func formsOptions(choice *forms.ChoiceQuestion) []string {
	if choice == nil {
		return nil
	}
	options := make([]string, len(choice.Options))
	for i, o := range choice.Options {
		if options[i] = o.Value; o.IsOther {
			options[i] = cmp.Or(o.Value, "(other)")
		}
	}
	return options
}
