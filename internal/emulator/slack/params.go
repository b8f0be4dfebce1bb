package slack

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
)

// params are the arguments of a call, from wherever the client put them: query,
// form, JSON or multipart.
type params struct {
	values map[string]string
	files  map[string]upload
}

// upload is a file in a multipart body.
type upload struct {
	name string
	mime string
	data []byte
}

// readParams reads the whole request. Values of the body win over the query.
func readParams(w http.ResponseWriter, r *http.Request) (*params, *apiError) {
	p := &params{values: map[string]string{}, files: map[string]upload{}}
	for key, v := range r.URL.Query() {
		p.values[key] = v[0]
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxUpload+1<<20)
	var err error
	kind, attrs, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		err = p.readJSON(r.Body)
	case "multipart/form-data":
		err = p.readMultipart(multipart.NewReader(r.Body, attrs["boundary"]))
	case "application/x-www-form-urlencoded":
		err = p.readForm(r)
	default:
		_, err = io.Copy(io.Discard, r.Body)
	}
	if err != nil && kind == "application/json" {
		return nil, refuse("invalid_json")
	}
	if err != nil {
		return nil, refuse("invalid_form_data")
	}
	return p, nil
}

func (p *params) readForm(r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return err
	}
	for key, v := range r.PostForm {
		p.values[key] = v[0]
	}
	return nil
}

// readJSON takes strings as they are and everything else as its JSON text, which
// is how the same value would stand in a form.
func (p *params) readJSON(body io.Reader) error {
	data, err := io.ReadAll(body)
	if err != nil || len(data) == 0 {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	for key, raw := range fields {
		var text string
		switch {
		case string(raw) == "null":
		case json.Unmarshal(raw, &text) == nil:
			p.values[key] = text
		default:
			p.values[key] = string(raw)
		}
	}
	return nil
}

func (p *params) readMultipart(mr *multipart.Reader) error {
	for {
		part, err := mr.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return err
		}
		if part.FileName() == "" {
			p.values[part.FormName()] = string(data)
			continue
		}
		p.files[part.FormName()] = upload{name: part.FileName(), mime: part.Header.Get("Content-Type"), data: data}
	}
}

func (p *params) text(name string) string { return p.values[name] }

// int is 0 for what is not a number, as with the service.
func (p *params) int(name string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(p.values[name]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (p *params) bool(name string) bool {
	switch strings.ToLower(p.values[name]) {
	case "true", "yes", "1":
		return true
	}
	return false
}

// json decodes a parameter that holds JSON and reports whether it was there.
func (p *params) json(name string, into any) (bool, error) {
	raw := p.values[name]
	if raw == "" || raw == "null" {
		return false, nil
	}
	return true, json.Unmarshal([]byte(raw), into)
}
