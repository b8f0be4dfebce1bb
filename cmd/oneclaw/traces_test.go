package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"oneclaw/internal/emulator/collector"
)

// received are the traces of a program.
type received struct {
	t         *testing.T
	collector collector.Collector
	// gate answers when two tools were told of, and two replies of the model.
	gate string
}

// newTraces has the program of a bot tell a collector what it does.
func newTraces(w *harness) *received {
	r := &received{t: w.t.(*testing.T), collector: collector.Collector{Authorization: "Bearer collectors-own-secret"}}
	mux := http.NewServeMux()
	mux.Handle("/v1/traces", &r.collector)
	mux.HandleFunc("/gate", func(_ http.ResponseWriter, request *http.Request) {
		r.collector.Await(request.Context().Done(), func(spans []collector.Span) bool {
			counts := named(spans)
			return counts["execute_tool"] >= 2 && counts["chat"] >= 2
		})
	})
	server := httptest.NewServer(mux)
	r.t.Cleanup(server.Close)
	r.gate = server.URL + "/gate"
	maps.Copy(w.env, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL, "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20collectors-own-secret",
		"OTEL_BSP_SCHEDULE_DELAY": "1",
	})
	return r
}

// named counts spans by their names, and by the first word of those that have several.
func named(spans []collector.Span) map[string]int {
	counts := make(map[string]int)
	for _, s := range spans {
		counts[s.Name]++
		if first, _, several := strings.Cut(s.Name, " "); several {
			counts[first]++
		}
	}
	return counts
}

// check waits for the answer to one message to be told of, and fails unless several lives of
// the program have told of one job with spans of these names, which say nothing of who wrote what. The
// last one's are a tree.
func (r *received) check(who int64, want map[string]int) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	spans, ok := r.collector.Await(ctx.Done(), func(spans []collector.Span) bool { return named(spans)["message"] > 0 })
	jobs, byLife, counts := make(map[string]bool), make(map[string][]collector.Span), named(spans)
	user := regexp.MustCompile(fmt.Sprintf(`\b%d\b`, who)) // durations and counts may hold these digits
	last := ""
	for _, s := range spans {
		life := s.Resource["service.instance.id"]
		jobs[s.Attributes["oneclaw.job"]], byLife[life] = true, append(byLife[life], s)
		if s.Name == "message" {
			last = life
		}
		if text := fmt.Sprint(s.Name, s.Attributes); user.MatchString(text) || strings.Contains(text, "secret") {
			r.t.Errorf("a span says more than it may: %s", text)
		}
	}
	if err := collector.CheckTrees(byLife[last]); err != nil || !ok {
		r.t.Errorf("received: %v, %v", ok, err)
	}
	for name, n := range want {
		if counts[name] != n {
			r.t.Errorf("%d spans %q, want %d; all: %v", counts[name], name, n, counts)
		}
	}
	if len(jobs) != 1 || len(byLife) < 2 {
		r.t.Errorf("%d jobs of %d lives", len(jobs), len(byLife))
	}
}
