package google

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write contract.json anew")

// documents are the discovery documents of the services that the tools use.
var documents = []string{
	"gmail/v1/gmail-api.json", "drive/v3/drive-api.json", "calendar/v3/calendar-api.json", "people/v1/people-api.json",
	"docs/v1/docs-api.json", "sheets/v4/sheets-api.json", "slides/v1/slides-api.json", "forms/v1/forms-api.json",
	"tasks/v1/tasks-api.json", "oauth2/v2/oauth2-api.json",
}

// TestContract extracts the contract from the library's documents, which are the
// services' own, and compares it with the file that is checked in.
func TestContract(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "google.golang.org/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	services := map[string]api{}
	for _, name := range documents {
		services[strings.Split(name, "/")[0]] = extract(t, filepath.Join(strings.TrimSpace(string(out)), name))
	}
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(services); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("contract.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(want.Bytes(), contractJSON) {
		t.Error("contract.json is not what the library's documents say: run go test -run TestContract -update")
	}
}

// document is the part of a discovery document that matters here.
type document struct {
	ServicePath string              `json:"servicePath"`
	Resources   map[string]resource `json:"resources"`
	Schemas     map[string]schema   `json:"schemas"`
}

type resource struct {
	Methods   map[string]documented `json:"methods"`
	Resources map[string]resource   `json:"resources"`
}

type documented struct {
	ID          string            `json:"id"`
	Path        string            `json:"path"`
	HTTPMethod  string            `json:"httpMethod"`
	Parameters  map[string]schema `json:"parameters"`
	Request     schema            `json:"request"`
	Response    schema            `json:"response"`
	Scopes      []string          `json:"scopes"`
	Download    bool              `json:"supportsMediaDownload"`
	MediaUpload struct {
		Protocols struct {
			Simple struct {
				Path string `json:"path"`
			} `json:"simple"`
		} `json:"protocols"`
	} `json:"mediaUpload"`
}

type schema struct {
	Ref        string            `json:"$ref"`
	Type       string            `json:"type"`
	Format     string            `json:"format"`
	Enum       []string          `json:"enum"`
	Items      *schema           `json:"items"`
	Properties map[string]schema `json:"properties"`
	Additional *schema           `json:"additionalProperties"`
	Location   string            `json:"location"`
	Pattern    string            `json:"pattern"`
	Minimum    string            `json:"minimum"`
	Maximum    string            `json:"maximum"`
	Required   bool              `json:"required"`
	Repeated   bool              `json:"repeated"`
}

func extract(t *testing.T, file string) api {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc document
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatalf("%s: %v", path.Base(file), err)
	}
	s := api{Base: "/" + doc.ServicePath, Methods: map[string]method{}, Schemas: map[string]shape{}}
	for _, r := range doc.Resources {
		extractMethods(r, s.Methods)
	}
	for name, sch := range doc.Schemas {
		s.Schemas[name] = sch.shape()
	}
	return s
}

func extractMethods(r resource, into map[string]method) {
	for _, d := range r.Methods {
		m := method{
			HTTP: d.HTTPMethod, Path: d.Path, Params: map[string]param{}, Body: d.Request.Ref, Answer: d.Response.Ref,
			Scopes: slices.Sorted(slices.Values(d.Scopes)), Upload: d.MediaUpload.Protocols.Simple.Path, Download: d.Download,
		}
		for name, p := range d.Parameters {
			m.Params[name] = param{
				In: p.Location, Type: p.Type, Format: p.Format, Pattern: p.Pattern, Minimum: p.Minimum, Maximum: p.Maximum,
				Enum: p.Enum, Required: p.Required, Repeated: p.Repeated,
			}
		}
		into[d.ID] = m
	}
	for _, sub := range r.Resources {
		extractMethods(sub, into)
	}
}

func (s schema) shape() shape {
	out := shape{Ref: s.Ref, Type: s.Type, Format: s.Format, Enum: s.Enum}
	if s.Items != nil {
		items := s.Items.shape()
		out.Items = &items
	}
	if s.Additional != nil {
		more := s.Additional.shape()
		out.AdditionalProps = &more
	}
	if len(s.Properties) > 0 {
		out.Props = map[string]shape{}
		for name, p := range s.Properties {
			out.Props[name] = p.shape()
		}
	}
	return out
}

// What the services never send is an error of the emulator, which the test that meets it sees.
func TestAnswersThatAreNotInTheContractAreNotSent(t *testing.T) {
	all, err := buildRoutes()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(r route) bool { return r.id == "calendar.calendars.get" })
	c := &call{route: all[at]}
	for answer, ok := range map[string]bool{`{"id":"c","summary":"x"}`: true, `{"id":"c","accessRole":"owner"}`: false, `{"id":7}`: false} {
		var d doc
		if err := json.Unmarshal([]byte(answer), &d); err != nil {
			t.Fatal(err)
		}
		if rej := c.checkAnswer(d); ok != (rej == nil) {
			t.Errorf("%s: %+v", answer, rej)
		}
	}
}
