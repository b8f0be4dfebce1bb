// Package collector emulates an OpenTelemetry collector: it receives traces as OTLP over HTTP
// (opentelemetry.io/docs/specs/otlp, as of version 1.11), and checks that they are complete.
package collector

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	service "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// maxBody bounds a request, in bytes.
const maxBody = 4 << 20

// Span is a received span. The ids are in hex; ParentID is empty for a root.
type Span struct {
	TraceID, ID, ParentID, Name string
	Kind                        string
	Began, Ended                time.Time
	Failed                      bool
	// Attributes are the span's own attributes, as text; Resource are those of the sender.
	Attributes, Resource map[string]string
}

// Collector is an [http.Handler]. Its zero value has received nothing.
type Collector struct {
	// Authorization, if not empty, is the required Authorization header.
	Authorization string
	// RefuseStatus, if not 0, is the status of all responses.
	RefuseStatus int

	mu      sync.Mutex
	spans   []Span
	arrived chan struct{} // closed when spans arrive
}

// ServeHTTP receives an export request.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case c.RefuseStatus != 0:
		http.Error(w, "refused", c.RefuseStatus)
	case r.Method != http.MethodPost || r.URL.Path != "/v1/traces":
		http.Error(w, "no such signal", http.StatusNotFound)
	case c.Authorization != "" && r.Header.Get("Authorization") != c.Authorization:
		http.Error(w, "who are you?", http.StatusUnauthorized)
	case r.Header.Get("Content-Type") != "application/x-protobuf":
		http.Error(w, "not protobuf", http.StatusUnsupportedMediaType)
	default:
		if err := c.receive(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
		answer, _ := proto.Marshal(&service.ExportTraceServiceResponse{})
		_, _ = w.Write(answer)
	}
}

func (c *Collector) receive(r *http.Request) error {
	body := io.Reader(io.LimitReader(r.Body, maxBody))
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			return fmt.Errorf("gzip: %w", err)
		}
		body = io.LimitReader(unpacked, maxBody)
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return fmt.Errorf("body: %w", err)
	}
	var export service.ExportTraceServiceRequest
	if err := proto.Unmarshal(data, &export); err != nil {
		return fmt.Errorf("protobuf: %w", err)
	}
	var spans []Span
	for _, of := range export.GetResourceSpans() {
		for _, in := range of.GetScopeSpans() {
			for _, s := range in.GetSpans() {
				if len(s.GetTraceId()) != 16 || len(s.GetSpanId()) != 8 || s.GetName() == "" || s.GetEndTimeUnixNano() < s.GetStartTimeUnixNano() {
					return fmt.Errorf("invalid span: %v", s)
				}
				spans = append(spans, newSpan(s, attributeMap(of.GetResource().GetAttributes())))
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans = append(c.spans, spans...)
	if c.arrived != nil {
		close(c.arrived)
		c.arrived = nil
	}
	return nil
}

func newSpan(s *wire.Span, from map[string]string) Span {
	return Span{
		TraceID: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), ParentID: hex.EncodeToString(s.GetParentSpanId()),
		Name: s.GetName(), Kind: s.GetKind().String(), Failed: s.GetStatus().GetCode() == wire.Status_STATUS_CODE_ERROR,
		Began: time.Unix(0, int64(s.GetStartTimeUnixNano())), Ended: time.Unix(0, int64(s.GetEndTimeUnixNano())), //nolint:gosec // until 2262
		Attributes: attributeMap(s.GetAttributes()), Resource: from,
	}
}

func attributeMap(list []*common.KeyValue) map[string]string {
	all := make(map[string]string, len(list))
	for _, a := range list {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			all[a.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			all[a.GetKey()] = fmt.Sprint(v.IntValue)
		case *common.AnyValue_BoolValue:
			all[a.GetKey()] = fmt.Sprint(v.BoolValue)
		case *common.AnyValue_DoubleValue:
			all[a.GetKey()] = fmt.Sprint(v.DoubleValue)
		default:
			all[a.GetKey()] = a.GetValue().String()
		}
	}
	return all
}

// Spans returns the received spans.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Await waits until enough accepts the received spans, or done is closed, and returns the spans. The
// result is false if done was closed first.
func (c *Collector) Await(done <-chan struct{}, enough func([]Span) bool) ([]Span, bool) {
	for {
		c.mu.Lock()
		spans := slices.Clone(c.spans)
		if c.arrived == nil {
			c.arrived = make(chan struct{})
		}
		more := c.arrived
		c.mu.Unlock()
		if enough(spans) {
			return spans, true
		}
		select {
		case <-more:
		case <-done:
			return spans, false
		}
	}
}

// CheckTrees checks that each trace has one root, unique ids, and the parent of every other span.
func CheckTrees(spans []Span) error {
	type key struct{ trace, id string }
	known, roots, traces := make(map[key]bool), make(map[string]int), make(map[string]bool)
	for _, s := range spans {
		if known[key{s.TraceID, s.ID}] {
			return fmt.Errorf("trace %s has two spans with the id of %s", s.TraceID, s.Name)
		}
		known[key{s.TraceID, s.ID}], traces[s.TraceID] = true, true
		if s.ParentID == "" {
			roots[s.TraceID]++
		}
	}
	for _, s := range spans {
		if s.ParentID != "" && !known[key{s.TraceID, s.ParentID}] {
			return fmt.Errorf("trace %s lacks the parent of %s", s.TraceID, s.Name)
		}
	}
	for trace := range traces {
		if roots[trace] != 1 {
			return fmt.Errorf("trace %s has %d roots", trace, roots[trace])
		}
	}
	return nil
}
