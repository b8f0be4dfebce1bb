package drive

import (
	"context"
	"encoding/json"
	"strings"

	"google.golang.org/api/slides/v1"

	"oneclaw/toolgroups/google/service"
)

// Slides returns the group of tools for presentations.
func Slides() service.Group {
	return service.Group{
		Name:      "google_slides",
		Scopes:    []string{slides.PresentationsScope},
		Manifests: manifests,
		Operations: service.Operations{
			"slidesGet":         service.With(slides.NewService, slidesGet),
			"slidesCreate":      service.With(slides.NewService, slidesCreate),
			"slidesAddSlide":    service.With(slides.NewService, slidesAddSlide),
			"slidesGetText":     service.With(slides.NewService, slidesGetText),
			"slidesBatchUpdate": service.With(slides.NewService, slidesBatchUpdate),
			"slidesDeleteSlide": service.With(slides.NewService, slidesDeleteSlide),
			"slidesListSlides":  service.With(slides.NewService, slidesListSlides),
		},
	}
}

type slidesArgs struct {
	Presentation string            `json:"presentation_id"`
	Title        string            `json:"title"`
	Slide        string            `json:"slide_id"`
	Layout       string            `json:"layout"`
	Index        *int64            `json:"insertion_index"`
	Requests     []json.RawMessage `json:"requests"`
}

func slidesGet(ctx context.Context, api *slides.Service, _ *service.Conn, in slidesArgs) (any, error) {
	return api.Presentations.Get(in.Presentation).Context(ctx).Do()
}

func slidesCreate(ctx context.Context, api *slides.Service, _ *service.Conn, in slidesArgs) (any, error) {
	// Leave out the many masters and layouts of a new presentation.
	return api.Presentations.Create(&slides.Presentation{Title: in.Title}).Context(ctx).
		Fields("presentationId", "title", "revisionId", "pageSize", "slides").Do()
}

// slidesUpdate applies updates and returns Google's answer.
func slidesUpdate[T any](ctx context.Context, api *slides.Service, c *service.Conn, id string, updates ...T) (any, error) {
	return service.BatchUpdate(ctx, c, api.BasePath+"v1/presentations/", "presentationId", id, updates...)
}

func slidesAddSlide(ctx context.Context, api *slides.Service, c *service.Conn, in slidesArgs) (any, error) {
	add := &slides.CreateSlideRequest{}
	if layout := strings.ToUpper(strings.TrimSpace(in.Layout)); layout != "" {
		add.SlideLayoutReference = &slides.LayoutReference{PredefinedLayout: layout}
	}
	if in.Index != nil {
		if *in.Index < 0 {
			return nil, service.Invalidf("'insertion_index' must not be negative")
		}
		add.InsertionIndex, add.ForceSendFields = *in.Index, []string{"InsertionIndex"}
	}
	return slidesUpdate(ctx, api, c, in.Presentation, slides.Request{CreateSlide: add})
}

func slidesBatchUpdate(ctx context.Context, api *slides.Service, c *service.Conn, in slidesArgs) (any, error) {
	return slidesUpdate(ctx, api, c, in.Presentation, in.Requests...)
}

func slidesDeleteSlide(ctx context.Context, api *slides.Service, c *service.Conn, in slidesArgs) (any, error) {
	return slidesUpdate(ctx, api, c, in.Presentation, slides.Request{
		DeleteObject: &slides.DeleteObjectRequest{ObjectId: in.Slide},
	})
}

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

func slidesListSlides(ctx context.Context, api *slides.Service, _ *service.Conn, in slidesArgs) (any, error) {
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
