package wire_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"oneclaw/internal/emulator/wire"
)

func TestControl(t *testing.T) {
	c := &wire.Control[int]{
		MaxBody: 100,
		Faults:  newFaults(1),
		Messages: func(ctx context.Context, query url.Values, answers int) (any, error) {
			_, limited := ctx.Deadline()
			return map[string]any{"of": query.Get("chat"), "answers": answers, "limited": limited}, nil
		},
		State: func() any { return "still" },
		RunAction: func(act string, body *json.Decoder) (any, error) {
			return wire.RunAction(body, "act", func(text string) (any, error) { return act + " " + text, nil })
		},
	}
	for _, tt := range []struct {
		name, method, path, kind, body string
		status                         int
		want                           string
	}{
		{"messages", "GET", "messages?chat=7&answers=2&seconds=x", "", "", 200, `{"answers":2,"limited":true,"of":"7"}`},
		{"state", "GET", "state", "", "", 200, `"still"`},
		{"act", "POST", "say", "application/json", `"hi"`, 200, `"say hi"`},
		{"a fault", "POST", "faults", "application/json", `{"method":"send","effect":"hang"}`, 200, `{"id":1}`},
		{"no fault", "POST", "faults", "application/json", `{"effect":"else"}`, 400, `{"error":"test emulator: unknown effect \"else\""}`},
		{"a fault taken back", "POST", "unfault", "application/json", `{"id":1}`, 200, `{"fired":0}`},
		{"reading an act", "GET", "say", "", "", 400, `{"error":"unknown action"}`},
		{"a form", "POST", "say", "text/plain", `"hi"`, 415, `{"error":"content type must be application/json"}`},
		{"a long body", "POST", "say", "application/json", `"` + strings.Repeat("x", 100) + `"`, 400, `{"error":"decode act: http: request body too large"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), tt.method, "/emulator/"+tt.path, strings.NewReader(tt.body))
			if tt.kind != "" {
				r.Header.Set("Content-Type", tt.kind)
			}
			w := httptest.NewRecorder()
			c.ServeHTTP(w, r)
			if w.Code != tt.status || w.Body.String() != tt.want || w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("got %d %s (%s)", w.Code, w.Body, w.Header().Get("Content-Type"))
			}
		})
	}
}
