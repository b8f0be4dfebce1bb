package drive

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"google.golang.org/api/forms/v1"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
)

// Sizes of the list of responses (developers.google.com/workspace/forms/api/reference/rest).
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
			"formsCreate":        service.NewOperation(forms.NewService, formsCreate),
			"formsGet":           service.NewOperation(forms.NewService, formsGet),
			"formsAddQuestion":   service.NewOperation(forms.NewService, formsAddQuestion),
			"formsListResponses": service.NewOperation(forms.NewService, formsListResponses).WithScopes(forms.FormsResponsesReadonlyScope),
			"formsGetResponse":   service.NewOperation(forms.NewService, formsGetResponse).WithScopes(forms.FormsResponsesReadonlyScope),
		},
		Resources: service.Resources{
			"form_id": describesFile().Or(service.NewOperation(forms.NewService, formsTitle)),
		},
	}
}

type formsArgs struct {
	FormID        string   `json:"form_id"`
	ResponseID    string   `json:"response_id"`
	Title         string   `json:"title"`
	DocumentTitle string   `json:"document_title"`
	Type          string   `json:"type"`
	Options       []string `json:"options"`
	Required      bool     `json:"required"`
	Index         *int64   `json:"index"`
	PageSize      int      `json:"page_size"`
	PageToken     string   `json:"page_token"`
}

func formsCreate(ctx context.Context, api *forms.Service, _ *service.Conn, in formsArgs) (any, error) {
	if strings.TrimSpace(in.Title) == "" {
		return nil, service.Invalidf("'title' is empty")
	}
	f, err := api.Forms.Create(&forms.Form{Info: &forms.Info{
		Title: in.Title, DocumentTitle: cmp.Or(in.DocumentTitle, in.Title),
	}}).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	title := in.Title
	if f.Info != nil {
		title = f.Info.Title
	}
	out := map[string]any{"formId": f.FormId, "responderUri": f.ResponderUri, "title": title}
	if err := publishForm(ctx, api, f.FormId); err != nil {
		out["note"] = fmt.Sprintf("The form is there, but it may not be published (%s); until it is, it takes no answers. "+
			"Do not create it again: the user can publish it at https://docs.google.com/forms/d/%s/edit.", service.PlainLine(err.Error()), f.FormId)
	}
	return out, nil
}

// publishForm opens a form for answers. Forms that the API has created since 30 June 2026 take no answers
// before they are published (developers.google.com/workspace/forms/api/guides/api-changes-to-google-forms).
func publishForm(ctx context.Context, api *forms.Service, id string) error {
	_, err := api.Forms.SetPublishSettings(id, &forms.SetPublishSettingsRequest{
		PublishSettings: &forms.PublishSettings{PublishState: &forms.PublishState{IsPublished: true, IsAcceptingResponses: true}},
	}).Context(ctx).Do()
	return err
}

func formsAddQuestion(ctx context.Context, api *forms.Service, _ *service.Conn, in formsArgs) (any, error) {
	question, err := in.newQuestion()
	if err != nil {
		return nil, err
	}
	at, err := in.insertIndex(ctx, api)
	if err != nil {
		return nil, err
	}
	answer, err := api.Forms.BatchUpdate(in.FormID, &forms.BatchUpdateFormRequest{Requests: []*forms.Request{{
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
	return map[string]any{"formId": in.FormID, "itemId": made.ItemId, "questionId": added}, nil
}

// insertIndex returns the index for a new question: Google has no index for the end.
func (in formsArgs) insertIndex(ctx context.Context, api *forms.Service) (int64, error) {
	if in.Index != nil {
		return *in.Index, nil
	}
	f, err := api.Forms.Get(in.FormID).Context(ctx).Fields("items/itemId").Do()
	if err != nil {
		return 0, err
	}
	return int64(len(f.Items)), nil
}

// newQuestion makes a Google Forms question, which defines the kind of answer.
func (in formsArgs) newQuestion() (*forms.Question, error) {
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

// formsResponses is a page of responses. It has the total only if there is a single page.
type formsResponses struct {
	Responses     []*forms.FormResponse `json:"responses"`
	NextPageToken string                `json:"nextPageToken,omitempty"`
	TotalSize     *int                  `json:"totalSize,omitempty"`
}

func formsListResponses(ctx context.Context, api *forms.Service, _ *service.Conn, in formsArgs) (any, error) {
	call := api.Forms.Responses.List(in.FormID).Context(ctx)
	if in.PageToken != "" {
		call.PageToken(in.PageToken)
	}
	limit := service.ClampLimit(in.PageSize, defaultResponses, maxResponses)
	responses, next, err := service.Collect(limit, call, call.PageSize, func(page *forms.ListFormResponsesResponse) ([]*forms.FormResponse, string) {
		return page.Responses, page.NextPageToken
	})
	out := formsResponses{Responses: responses, NextPageToken: next}
	if n := len(responses); in.PageToken == "" && next == "" {
		out.TotalSize = &n
	}
	return out, err
}

func formsGetResponse(ctx context.Context, api *forms.Service, _ *service.Conn, in formsArgs) (any, error) {
	return api.Forms.Responses.Get(in.FormID, in.ResponseID).Context(ctx).Do()
}
