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
			"slidesGet":         service.NewOperation(slides.NewService, slidesGet),
			"slidesCreate":      service.AsksAmongOthers(service.NewOperation(slides.NewService, slidesCreate), func(in slidesArgs) bool { return !service.QuotesWhole(in.Title) }),
			"slidesAddSlide":    service.NewOperation(slides.NewService, slidesAddSlide),
			"slidesGetText":     service.NewOperation(slides.NewService, slidesGetText),
			"slidesBatchUpdate": service.NewOperation(slides.NewService, slidesBatchUpdate),
			"slidesDeleteSlide": service.NewOperation(slides.NewService, slidesDeleteSlide),
			"slidesListSlides":  service.NewOperation(slides.NewService, slidesListSlides),
		},
		Resources: service.Resources{
			"presentation_id": describesFile().Or(service.NewOperation(slides.NewService, slidesTitle)),
			"slide_id":        service.NewOperation(slides.NewService, describeSlide),
		},
	}
}

type slidesArgs struct {
	PresentationID string            `json:"presentation_id"`
	Title          string            `json:"title"`
	SlideID        string            `json:"slide_id"`
	Layout         string            `json:"layout"`
	InsertionIndex *int64            `json:"insertion_index"`
	Requests       []json.RawMessage `json:"requests"`
}

func slidesGet(ctx context.Context, api *slides.Service, _ *service.Conn, in slidesArgs) (any, error) {
	return api.Presentations.Get(in.PresentationID).Context(ctx).Do()
}

func slidesCreate(ctx context.Context, api *slides.Service, _ *service.Conn, in slidesArgs) (any, error) {
	// Leave the many masters and layouts of a new presentation out of the response.
	return api.Presentations.Create(&slides.Presentation{Title: in.Title}).Context(ctx).
		Fields("presentationId", "title", "revisionId", "pageSize", "slides").Do()
}

// slidesUpdate applies updates and returns Google's response.
func slidesUpdate[T any](ctx context.Context, api *slides.Service, c *service.Conn, id string, updates ...T) (any, error) {
	return service.BatchUpdate(ctx, c, api.BasePath+"v1/presentations/", "presentationId", id, updates...)
}

func slidesAddSlide(ctx context.Context, api *slides.Service, c *service.Conn, in slidesArgs) (any, error) {
	add := &slides.CreateSlideRequest{}
	if layout := strings.ToUpper(strings.TrimSpace(in.Layout)); layout != "" {
		add.SlideLayoutReference = &slides.LayoutReference{PredefinedLayout: layout}
	}
	if in.InsertionIndex != nil {
		if *in.InsertionIndex < 0 {
			return nil, service.Invalidf("'insertion_index' must not be negative")
		}
		add.InsertionIndex, add.ForceSendFields = *in.InsertionIndex, []string{"InsertionIndex"}
	}
	return slidesUpdate(ctx, api, c, in.PresentationID, slides.Request{CreateSlide: add})
}

func slidesBatchUpdate(ctx context.Context, api *slides.Service, c *service.Conn, in slidesArgs) (any, error) {
	return slidesUpdate(ctx, api, c, in.PresentationID, in.Requests...)
}

func slidesDeleteSlide(ctx context.Context, api *slides.Service, c *service.Conn, in slidesArgs) (any, error) {
	return slidesUpdate(ctx, api, c, in.PresentationID, slides.Request{
		DeleteObject: &slides.DeleteObjectRequest{ObjectId: in.SlideID},
	})
}

type slidesList struct {
	PresentationID string       `json:"presentationId"`
	Title          string       `json:"title"`
	Count          int          `json:"slideCount"`
	Slides         []slidesItem `json:"slides"`
}

type slidesItem struct {
	ObjectID       string `json:"objectId"`
	Index          int    `json:"index"`
	LayoutObjectID string `json:"layoutObjectId,omitempty"`
	Elements       int    `json:"pageElementCount"`
}

func slidesListSlides(ctx context.Context, api *slides.Service, _ *service.Conn, in slidesArgs) (any, error) {
	p, err := api.Presentations.Get(in.PresentationID).Context(ctx).
		Fields("presentationId", "title", "slides(objectId,slideProperties/layoutObjectId,pageElements/objectId)").Do()
	if err != nil {
		return nil, err
	}
	out := slidesList{p.PresentationId, p.Title, len(p.Slides), make([]slidesItem, len(p.Slides))}
	for i, s := range p.Slides {
		out.Slides[i] = slidesItem{ObjectID: s.ObjectId, Index: i, Elements: len(s.PageElements)}
		if s.SlideProperties != nil {
			out.Slides[i].LayoutObjectID = s.SlideProperties.LayoutObjectId
		}
	}
	return out, nil
}
