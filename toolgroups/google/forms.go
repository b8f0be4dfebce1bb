package google

import (
	"cmp"
	"context"
	"strings"

	"google.golang.org/api/forms/v1"

	"oneclaw/toolgroups"
)

// Maxima of the list of answers (developers.google.com/workspace/forms/api/reference/rest).
const (
	maxResponses     = 5000
	defaultResponses = 20
)

// The ends of a scale.
const (
	formsScaleLow  = 1
	formsScaleHigh = 5
)

func formsGroup() group {
	return group{
		name:   "google_forms",
		scopes: []string{forms.FormsBodyScope},
		operations: operations{
			"formsCreate":        with(forms.NewService, formsCreate),
			"formsGet":           with(forms.NewService, formsGet),
			"formsAddQuestion":   with(forms.NewService, formsAddQuestion),
			"formsListResponses": with(forms.NewService, formsListResponses).needs(forms.FormsResponsesReadonlyScope),
			"formsGetResponse":   with(forms.NewService, formsGetResponse).needs(forms.FormsResponsesReadonlyScope),
		},
	}
}

type formsCreateArgs struct {
	Title    string `json:"title"`
	Document string `json:"document_title"`
}

// formsCreated is the result of forms_create.
type formsCreated struct {
	Form      string `json:"formId"`
	Responder string `json:"responderUri"`
	Title     string `json:"title"`
}

func formsCreate(ctx context.Context, api *forms.Service, _ *conn, in formsCreateArgs) (any, error) {
	if strings.TrimSpace(in.Title) == "" {
		return nil, invalidf("'title' is empty")
	}
	f, err := api.Forms.Create(&forms.Form{Info: &forms.Info{
		Title: in.Title, DocumentTitle: cmp.Or(in.Document, in.Title),
	}}).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	out := formsCreated{f.FormId, f.ResponderUri, in.Title}
	if f.Info != nil {
		out.Title = f.Info.Title
	}
	return out, nil
}

type formsAddArgs struct {
	Form     string   `json:"form_id"`
	Title    string   `json:"title"`
	Type     string   `json:"type"`
	Options  []string `json:"options"`
	Required bool     `json:"required"`
	Index    *int64   `json:"index"`
}

// formsAdded is the result of forms_add_question.
type formsAdded struct {
	Form     string `json:"formId"`
	Item     string `json:"itemId"`
	Question string `json:"questionId"`
}

func formsAddQuestion(ctx context.Context, api *forms.Service, _ *conn, in formsAddArgs) (any, error) {
	question, err := in.question()
	if err != nil {
		return nil, err
	}
	at, err := in.position(ctx, api)
	if err != nil {
		return nil, err
	}
	answer, err := api.Forms.BatchUpdate(in.Form, &forms.BatchUpdateFormRequest{Requests: []*forms.Request{{
		CreateItem: &forms.CreateItemRequest{
			Item:     &forms.Item{Title: in.Title, QuestionItem: &forms.QuestionItem{Question: question}},
			Location: &forms.Location{Index: at, ForceSendFields: []string{"Index"}},
		},
	}}}).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	if len(answer.Replies) == 0 || answer.Replies[0].CreateItem == nil {
		return nil, toolgroups.Errorf(toolgroups.CodeExecution, "Google did not say whether the question was added. Look with forms_get.")
	}
	made := answer.Replies[0].CreateItem
	out := formsAdded{Form: in.Form, Item: made.ItemId}
	if len(made.QuestionId) > 0 {
		out.Question = made.QuestionId[0]
	}
	return out, nil
}

// position is where the question goes: Google knows no "last".
func (in formsAddArgs) position(ctx context.Context, api *forms.Service) (int64, error) {
	if in.Index != nil {
		return *in.Index, nil
	}
	f, err := api.Forms.Get(in.Form).Context(ctx).Fields("items/itemId").Do()
	if err != nil {
		return 0, err
	}
	return int64(len(f.Items)), nil
}

// question checks the arguments and makes what Google calls the question, which is
// the kind of answer.
func (in formsAddArgs) question() (*forms.Question, error) {
	if strings.TrimSpace(in.Title) == "" {
		return nil, invalidf("'title' is empty")
	}
	if in.Index != nil && *in.Index < 0 {
		return nil, invalidf("'index' must not be negative")
	}
	choice := map[string]string{"radio": "RADIO", "checkbox": "CHECKBOX", "dropdown": "DROP_DOWN"}[in.Type]
	switch {
	case choice != "" && len(in.Options) == 0:
		return nil, invalidf("a question of type %s needs 'options'", in.Type)
	case choice == "" && len(in.Options) > 0:
		return nil, invalidf("'options' are for radio, checkbox and dropdown only")
	}
	q := &forms.Question{Required: in.Required}
	switch in.Type {
	case "", "short_answer":
		q.TextQuestion = &forms.TextQuestion{}
	case "paragraph":
		q.TextQuestion = &forms.TextQuestion{Paragraph: true}
	case "scale":
		q.ScaleQuestion = &forms.ScaleQuestion{Low: formsScaleLow, High: formsScaleHigh}
	case "date":
		q.DateQuestion = &forms.DateQuestion{IncludeYear: true}
	case "time":
		q.TimeQuestion = &forms.TimeQuestion{}
	default:
		q.ChoiceQuestion = &forms.ChoiceQuestion{Type: choice}
		for _, o := range in.Options {
			q.ChoiceQuestion.Options = append(q.ChoiceQuestion.Options, &forms.Option{Value: o})
		}
	}
	return q, nil
}

type formsResponsesArgs struct {
	Form  string `json:"form_id"`
	Size  int    `json:"page_size"`
	Token string `json:"page_token"`
}

// formsResponses is the result of forms_list_responses. The total is known only
// where nothing lies before or after the page.
type formsResponses struct {
	Responses []*forms.FormResponse `json:"responses"`
	Next      string                `json:"nextPageToken,omitempty"`
	Total     *int                  `json:"totalSize,omitempty"`
}

func formsListResponses(ctx context.Context, api *forms.Service, _ *conn, in formsResponsesArgs) (any, error) {
	limit := bounded(in.Size, defaultResponses, maxResponses)
	responses, next, err := collect(limit, func(token string, wanted int64) ([]*forms.FormResponse, string, error) {
		call := api.Forms.Responses.List(in.Form).Context(ctx).PageSize(wanted)
		if token == "" {
			token = in.Token
		}
		if token != "" {
			call.PageToken(token)
		}
		page, err := call.Do()
		if err != nil {
			return nil, "", err
		}
		return page.Responses, page.NextPageToken, nil
	})
	out := formsResponses{Responses: responses, Next: next}
	if n := len(responses); in.Token == "" && next == "" {
		out.Total = &n
	}
	return out, err
}

type formsResponseArgs struct {
	Form     string `json:"form_id"`
	Response string `json:"response_id"`
}

func formsGetResponse(ctx context.Context, api *forms.Service, _ *conn, in formsResponseArgs) (any, error) {
	return api.Forms.Responses.Get(in.Form, in.Response).Context(ctx).Do()
}
