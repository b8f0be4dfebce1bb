package frame_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/internal/admin/frame"
)

// house is a frame with one view, and a clock that stands still but while a page is made.
type house struct {
	*testing.T
	handler http.Handler
	now     time.Time
	takes   time.Duration
	made    int
	says    string
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{T: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), takes: 100 * time.Millisecond}
	var err error
	h.handler, err = frame.New(frame.Config{
		Views: []frame.View{{Title: "One", Show: func(context.Context, frame.Request) (frame.Page, error) {
			h.made, h.now = h.made+1, h.now.Add(h.takes)
			return frame.Page{Lead: h.says}, nil
		}}},
		Visitor: func(*http.Request) (frame.Visitor, bool) { return frame.Visitor{Person: "telegram:1"}, true },
		Now:     func() time.Time { return h.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// look asks for the page with a tag, as its script does if live, and returns the new tag.
func (h *house) look(tag string, live bool, wantStatus, wantMade int) string {
	h.Helper()
	r := httptest.NewRequestWithContext(h.Context(), http.MethodGet, frame.Root, nil)
	r.Header.Set("If-None-Match", tag)
	if live {
		r.Header.Set("OneClaw-Live", "1")
	}
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	if w.Code != wantStatus || h.made != wantMade {
		h.Errorf("status %d, made %d times; want %d, %d", w.Code, h.made, wantStatus, wantMade)
	}
	return w.Header().Get("ETag")
}

// An open page is made anew no more often than its cost allows, and what is new is seen then.
func TestOpenPagesAreMadeAsTheyCost(t *testing.T) {
	h := newHouse(t)
	tag := h.look("", true, http.StatusOK, 1)
	h.says = "something new"
	h.now = h.now.Add(frame.ProcessorShare*h.takes - time.Millisecond)
	tag = h.look(tag, true, http.StatusNotModified, 1)
	h.now = h.now.Add(time.Millisecond)
	tag = h.look(tag, true, http.StatusOK, 2)
	tag = h.look(tag, false, http.StatusNotModified, 3) // somebody asks
	h.takes = time.Hour
	tag = h.look(tag, false, http.StatusNotModified, 4)
	h.now = h.now.Add(time.Minute)
	h.look(tag, true, http.StatusNotModified, 5)
	for i, forged := range []string{"x", `"x.zzzzzzzz"`, `"."`, `"x.-1"`, `"x.99999999999999999999"`} {
		h.look(forged, true, http.StatusOK, 6+i)
	}
}

// However many look, one page is made at a time; who goes away waits no longer.
func TestPagesAreMadeOneAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		making, free := 0, make(chan struct{})
		handler, err := frame.New(frame.Config{
			Views: []frame.View{{Show: func(context.Context, frame.Request) (frame.Page, error) {
				making++
				<-free
				return frame.Page{Lead: "One of them"}, nil
			}}},
			Visitor: func(*http.Request) (frame.Visitor, bool) { return frame.Visitor{}, true },
		})
		if err != nil {
			t.Fatal(err)
		}
		answers := make(chan string, 10)
		ask := func(ctx context.Context) {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, frame.Root, nil))
			answers <- w.Body.String()
		}
		gone, leave := context.WithCancel(t.Context())
		for _, ctx := range []context.Context{t.Context(), gone, t.Context(), t.Context()} {
			go ask(ctx)
			synctest.Wait()
		}
		leave()
		if answer := <-answers; answer != "" {
			t.Errorf("who went away is answered %s", answer)
		}
		for n := 1; n <= 3; n++ {
			synctest.Wait()
			if making != n {
				t.Errorf("%d are made, want %d", making, n)
			}
			free <- struct{}{}
			if answer := <-answers; !strings.Contains(answer, "One of them") {
				t.Errorf("answer %d is %s", n, answer)
			}
		}
	})
}

// Who goes away while a form is handled is no error, which the overview would show for an hour.
func TestWhoGoesAwayDuringAFormIsNoError(t *testing.T) {
	var log strings.Builder
	handler, err := frame.New(frame.Config{
		Views:   []frame.View{{Show: func(context.Context, frame.Request) (frame.Page, error) { return frame.Page{}, nil }, HandleForm: func(ctx context.Context, _ frame.Request) (string, error) { return "", ctx.Err() }}},
		Visitor: func(*http.Request) (frame.Visitor, bool) { return frame.Visitor{}, true },
		Log:     slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, frame.Root, nil))
	if log.Len() > 0 {
		t.Errorf("the log has %s", log.String())
	}
}
