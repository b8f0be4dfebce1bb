package npmtest

import (
	_ "embed"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

//go:embed models.cjs
var models string

// Asked is a question to a model.
type Asked struct {
	// API is chat, responses or messages. Way is whole for an answer without a stream, helper for the library's own
	// reader of streams, or, for chat, events for a reader without its rules.
	API string `json:"api"`
	Way string `json:"way"`
	// URL is the base URL of the server, and Key the key for it.
	URL   string `json:"url"`
	Key   string `json:"key"`
	Model string `json:"model"`
	Text  string `json:"text"`
	// Tools offers the tools a and b.
	Tools bool `json:"tools"`
}

// Ask returns what is asked in the case of a name, which is the text: with the right key, unless the case is that of another
// key, or of another model.
func Ask(api, way, url, model, name string, tools bool) Asked {
	a := Asked{API: api, Way: way, URL: url, Key: "right", Model: model, Text: name, Tools: tools}
	switch name {
	case "another model":
		a.Model = "other"
	case "another key":
		a.Key = "wrong"
	}
	return a
}

// Answer is an answer as a library reads it, or its error.
type Answer struct {
	// Text is the text of the whole answer, Shown what the pieces of a stream said.
	Text, Shown string
	Calls       []Call
	// Thinking is a thought with its signature.
	Thinking, Stop string
	// Input and Output count tokens.
	Input, Output int

	// Error is the text of the error; Status, Code and Request belong to it.
	Error, Code, Request string
	Status               int
}

// Call is a call of a tool.
type Call struct{ ID, Name, Arguments string }

// AskByLibraries asks each question with the library of its service.
func AskByLibraries(t testing.TB, asked []Asked) []Answer {
	t.Helper()
	var answers []Answer
	if err := json.Unmarshal(Run(t, models, asked, "openai", "@anthropic-ai/sdk"), &answers); err != nil || len(answers) != len(asked) {
		t.Fatalf("%d of %d answers, %v", len(answers), len(asked), err)
	}
	for i := range answers {
		if len(answers[i].Calls) == 0 {
			answers[i].Calls = nil
		}
	}
	return answers
}

// ReadByLibraries serves streams, and has each read by the library of its service; an object is an answer without a stream.
// ask returns the API of a stream, and whether tools are offered. The client reaches the same streams where they were asked.
func ReadByLibraries(t testing.TB, streams []string, ask func(i int) (api string, tools bool)) (client *http.Client, asked []Asked, read []Answer) {
	t.Helper()
	client, urls := serve(t, streams)
	for i, stream := range streams {
		a := Asked{Way: "helper", URL: urls[i], Key: "any", Model: "m", Text: "Hi"}
		if a.API, a.Tools = ask(i); strings.HasPrefix(stream, "{") {
			a.Way = "whole"
		}
		asked = append(asked, a)
	}
	return client, asked, AskByLibraries(t, asked)
}

// serve answers each request with the stream whose number is the first element of the path, and returns the base URLs
// of the streams.
func serve(t testing.TB, streams []string) (client *http.Client, urls []string) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		number, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		i, err := strconv.Atoi(number)
		if err != nil || i >= len(streams) {
			http.NotFound(w, r)
			return
		}
		kind := "text/event-stream"
		if strings.HasPrefix(streams[i], "{") {
			kind = "application/json"
		}
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, streams[i])
	}))
	t.Cleanup(srv.Close)
	for i := range streams {
		urls = append(urls, srv.URL+"/"+strconv.Itoa(i))
	}
	return srv.Client(), urls
}

// Samples returns an example of each kind that a contract has for a union of types, with all fields, by the value of
// its field type.
func Samples(t testing.TB, contract []byte, union string) map[string]string {
	t.Helper()
	var schema jsonschema.Schema
	if err := json.Unmarshal(contract, &schema); err != nil {
		t.Fatal(err)
	}
	samples := map[string]string{}
	for _, kind := range resolve(&schema, schema.Definitions[union]).AnyOf {
		value, _ := sample(&schema, kind, 0).(map[string]any)
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		name, _ := value["type"].(string)
		samples[name] = string(raw)
	}
	if len(samples) < 2 {
		t.Fatalf("%s has %d kinds", union, len(samples))
	}
	return samples
}

func resolve(root, s *jsonschema.Schema) *jsonschema.Schema {
	for s.Ref != "" {
		s = root.Definitions[strings.TrimPrefix(s.Ref, "#/definitions/")]
	}
	return s
}

// deepest is where samples of types that hold themselves end.
const deepest = 8

// sample returns a value that fits a schema.
func sample(root, s *jsonschema.Schema, depth int) any {
	s = resolve(root, s)
	kind := s.Type
	if len(s.Types) > 0 {
		kind = s.Types[0]
	}
	switch {
	case s.Const != nil:
		return *s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.AnyOf) > 0:
		return sample(root, s.AnyOf[0], depth)
	case kind == "object":
		fields := map[string]any{}
		for name, field := range s.Properties {
			if depth < deepest || slices.Contains(s.Required, name) {
				fields[name] = sample(root, field, depth+1)
			}
		}
		return fields
	case kind == "array" && depth < deepest && s.Items != nil:
		return []any{sample(root, s.Items, depth+1)}
	case kind == "array":
		return []any{}
	case kind == "number", kind == "integer":
		return 1
	case kind == "boolean":
		return true
	case kind == "null":
		return nil
	}
	return "x"
}
