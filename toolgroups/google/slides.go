package google

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"google.golang.org/api/slides/v1"
)

func slidesGroup() group {
	return group{
		name:   "google_slides",
		scopes: []string{slides.PresentationsScope},
		operations: operations{
			"slidesGet":         with(slides.NewService, slidesGet),
			"slidesCreate":      with(slides.NewService, slidesCreate),
			"slidesAddSlide":    with(slides.NewService, slidesAddSlide),
			"slidesGetText":     with(slides.NewService, slidesGetText),
			"slidesBatchUpdate": with(slides.NewService, slidesBatchUpdate),
			"slidesDeleteSlide": with(slides.NewService, slidesDeleteSlide),
			"slidesListSlides":  with(slides.NewService, slidesListSlides),
		},
	}
}

type slidesArgs struct {
	Presentation string `json:"presentation_id"`
}

func slidesGet(ctx context.Context, api *slides.Service, _ *conn, in slidesArgs) (any, error) {
	return api.Presentations.Get(in.Presentation).Context(ctx).Do()
}

func slidesCreate(ctx context.Context, api *slides.Service, _ *conn, in struct {
	Title string `json:"title"`
},
) (any, error) {
	// The masters and layouts of a new presentation are many and say nothing.
	return api.Presentations.Create(&slides.Presentation{Title: in.Title}).Context(ctx).
		Fields("presentationId", "title", "revisionId", "pageSize", "slides").Do()
}

// slidesChanged is the result of a change to which Google answers nothing.
type slidesChanged struct {
	Presentation string            `json:"presentationId"`
	Replies      []json.RawMessage `json:"replies"`
}

// slidesUpdate applies updates and returns Google's answer.
func slidesUpdate(ctx context.Context, api *slides.Service, c *conn, id string, updates batch) (any, error) {
	answer, err := c.postJSON(ctx, api.BasePath+"v1/presentations/"+url.PathEscape(id)+":batchUpdate", updates)
	if err != nil {
		return nil, err
	}
	if answer == nil {
		return slidesChanged{id, []json.RawMessage{}}, nil
	}
	return answer, nil
}

type slidesAddArgs struct {
	slidesArgs
	Layout string `json:"layout"`
	Index  *int64 `json:"insertion_index"`
}

func slidesAddSlide(ctx context.Context, api *slides.Service, c *conn, in slidesAddArgs) (any, error) {
	add := &slides.CreateSlideRequest{}
	if layout := strings.ToUpper(strings.TrimSpace(in.Layout)); layout != "" {
		add.SlideLayoutReference = &slides.LayoutReference{PredefinedLayout: layout}
	}
	if in.Index != nil {
		if *in.Index < 0 {
			return nil, invalidf("'insertion_index' must not be negative")
		}
		add.InsertionIndex, add.ForceSendFields = *in.Index, []string{"InsertionIndex"}
	}
	return slidesUpdate(ctx, api, c, in.Presentation, batch{[]any{slides.Request{CreateSlide: add}}})
}

type slidesBatchArgs struct {
	slidesArgs
	Requests []json.RawMessage `json:"requests"`
}

func slidesBatchUpdate(ctx context.Context, api *slides.Service, c *conn, in slidesBatchArgs) (any, error) {
	updates, err := newBatch(in.Requests)
	if err != nil {
		return nil, err
	}
	return slidesUpdate(ctx, api, c, in.Presentation, updates)
}

type slidesDeleteArgs struct {
	slidesArgs
	Slide string `json:"slide_id"`
}

func slidesDeleteSlide(ctx context.Context, api *slides.Service, c *conn, in slidesDeleteArgs) (any, error) {
	return slidesUpdate(ctx, api, c, in.Presentation, batch{[]any{slides.Request{
		DeleteObject: &slides.DeleteObjectRequest{ObjectId: in.Slide},
	}}})
}

// slidesList is the result of slides_list_slides.
type slidesList struct {
	Presentation string       `json:"presentationId"`
	Title        string       `json:"title"`
	Count        int          `json:"slideCount"`
	Slides       []slidesItem `json:"slides"`
}

type slidesItem struct {
	Object   string `json:"objectId"`
	Index    int    `json:"index"`
	Layout   string `json:"layoutObjectId,omitempty"`
	Elements int    `json:"pageElementCount"`
}

func slidesListSlides(ctx context.Context, api *slides.Service, _ *conn, in slidesArgs) (any, error) {
	p, err := api.Presentations.Get(in.Presentation).Context(ctx).
		Fields("presentationId", "title", "slides(objectId,slideProperties/layoutObjectId,pageElements/objectId)").Do()
	if err != nil {
		return nil, err
	}
	out := slidesList{p.PresentationId, p.Title, len(p.Slides), make([]slidesItem, len(p.Slides))}
	for i, s := range p.Slides {
		out.Slides[i] = slidesItem{Object: s.ObjectId, Index: i, Elements: len(s.PageElements)}
		if s.SlideProperties != nil {
			out.Slides[i].Layout = s.SlideProperties.LayoutObjectId
		}
	}
	return out, nil
}
