package drive

import (
	"cmp"
	"context"
	"strings"

	"google.golang.org/api/forms/v1"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
)

// Maxima of the list of answers (developers.google.com/workspace/forms/api/reference/rest).
const (
	maxResponses     = 5000
	defaultResponses = 20
)

// Forms returns the group of tools for forms.
func Forms() service.Group {
	return service.Group{
		Name:      "google_forms",
		Scopes:    []string{forms.FormsBodyScope},
		Manifests: manifests,
		Operations: service.Operations{
			"formsCreate":        service.With(forms.NewService, formsCreate),
			"formsGet":           service.With(forms.NewService, formsGet),
			"formsAddQuestion":   service.With(forms.NewService, formsAddQuestion),
			"formsListResponses": service.With(forms.NewService, formsListResponses).Needs(forms.FormsResponsesReadonlyScope),
			"formsGetResponse":   service.With(forms.NewService, formsGetResponse).Needs(forms.FormsResponsesReadonlyScope),
		},
	}
}

type formsArgs struct {
	Form     string   `json:"form_id"`
	Response string   `json:"response_id"`
	Title    string   `json:"title"`
	Document string   `json:"document_title"`
	Type     string   `json:"type"`
	Options  []string `json:"options"`
	Required bool     `json:"required"`
	Index    *int64   `json:"index"`
	Size     int      `json:"page_size"`
	Token    string   `json:"page_token"`
}

func formsCreate(ctx context.Context, api *forms.Service, _ *service.Conn, in formsArgs) (any, error) {
	if strings.TrimSpace(in.Title) == "" {
		return nil, service.Invalidf("'title' is empty")
	}
	f, err := api.Forms.Create(&forms.Form{Info: &forms.Info{
		Title: in.Title, DocumentTitle: cmp.Or(in.Document, in.Title),
	}}).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	title := in.Title
	if f.Info != nil {
		title = f.Info.Title
	}
	return map[string]any{"formId": f.FormId, "responderUri": f.ResponderUri, "title": title}, nil
}

func formsAddQuestion(ctx context.Context, api *forms.Service, _ *service.Conn, in formsArgs) (any, error) {
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
	added := ""
	if len(made.QuestionId) > 0 {
		added = made.QuestionId[0]
	}
	return map[string]any{"formId": in.Form, "itemId": made.ItemId, "questionId": added}, nil
}

// position returns the index of a new question: Google has no "last".
func (in formsArgs) position(ctx context.Context, api *forms.Service) (int64, error) {
	if in.Index != nil {
		return *in.Index, nil
	}
	f, err := api.Forms.Get(in.Form).Context(ctx).Fields("items/itemId").Do()
	if err != nil {
		return 0, err
	}
	return int64(len(f.Items)), nil
}

// question makes Google's question, which is the kind of answer.
func (in formsArgs) question() (*forms.Question, error) {
	if strings.TrimSpace(in.Title) == "" {
		return nil, service.Invalidf("'title' is empty")
	}
	if in.Index != nil && *in.Index < 0 {
		return nil, service.Invalidf("'index' must not be negative")
	}
	choice := map[string]string{"radio": "RADIO", "checkbox": "CHECKBOX", "dropdown": "DROP_DOWN"}[in.Type]
	switch {
	case choice != "" && len(in.Options) == 0:
		return nil, service.Invalidf("a question of type %s needs 'options'", in.Type)
	case choice == "" && len(in.Options) > 0:
		return nil, service.Invalidf("'options' are for radio, checkbox and dropdown only")
	}
	q := &forms.Question{Required: in.Required}
	switch in.Type {
	case "", "short_answer":
		q.TextQuestion = &forms.TextQuestion{}
	case "paragraph":
		q.TextQuestion = &forms.TextQuestion{Paragraph: true}
	case "scale":
		q.ScaleQuestion = &forms.ScaleQuestion{Low: 1, High: 5}
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

// formsResponses has the total only if there is a single page.
type formsResponses struct {
	Responses []*forms.FormResponse `json:"responses"`
	Next      string                `json:"nextPageToken,omitempty"`
	Total     *int                  `json:"totalSize,omitempty"`
}

func formsListResponses(ctx context.Context, api *forms.Service, _ *service.Conn, in formsArgs) (any, error) {
	call := api.Forms.Responses.List(in.Form).Context(ctx)
	if in.Token != "" {
		call.PageToken(in.Token)
	}
	limit := service.Bounded(in.Size, defaultResponses, maxResponses)
	responses, next, err := service.Collect(limit, call, call.PageSize, func(page *forms.ListFormResponsesResponse) ([]*forms.FormResponse, string) {
		return page.Responses, page.NextPageToken
	})
	out := formsResponses{Responses: responses, Next: next}
	if n := len(responses); in.Token == "" && next == "" {
		out.Total = &n
	}
	return out, err
}

func formsGetResponse(ctx context.Context, api *forms.Service, _ *service.Conn, in formsArgs) (any, error) {
	return api.Forms.Responses.Get(in.Form, in.Response).Context(ctx).Do()
}
