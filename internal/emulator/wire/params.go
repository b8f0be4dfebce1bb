package wire

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

// Params are the arguments of a call, from wherever the client put them: query,
// form, JSON or multipart.
type Params struct {
	values map[string]string
	files  map[string]Upload
}

// Upload is a file in a multipart body.
type Upload struct {
	// Name and MIME are what the client says of it, Disposition is how it says it.
	Name, MIME, Disposition string
	// Data is its content.
	Data []byte
}

// ReadParams reads the whole request, whose body may have so many bytes. Values of the
// body win over the query. The error of a body that is too long is an
// [http.MaxBytesError].
func ReadParams(w http.ResponseWriter, r *http.Request, limit int64) (*Params, error) {
	p := &Params{values: map[string]string{}, files: map[string]Upload{}}
	for key, v := range r.URL.Query() {
		p.values[key] = v[0]
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
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
	if err != nil {
		return nil, err
	}
	return p, nil
}

// IsJSON says whether a request claims to carry JSON.
func IsJSON(r *http.Request) bool {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return kind == "application/json"
}

func (p *Params) readForm(r *http.Request) error {
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
func (p *Params) readJSON(body io.Reader) error {
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

func (p *Params) readMultipart(mr *multipart.Reader) error {
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
		p.files[part.FormName()] = Upload{Name: part.FileName(), MIME: part.Header.Get("Content-Type"), Disposition: part.Header.Get("Content-Disposition"), Data: data}
	}
}

// Object returns the parameters as one JSON object: those that isText reports as they came, others
// as the JSON that they are, where they are any. In the place of a file stands its name.
func (p *Params) Object(isText func(name string) bool) []byte {
	fields := make(map[string]json.RawMessage, len(p.values)+len(p.files))
	put := func(name, value string, asText bool) {
		if raw := []byte(value); !asText && json.Valid(raw) {
			fields[name] = raw
			return
		}
		fields[name], _ = json.Marshal(value) // a string always has a form
	}
	for name, value := range p.values {
		put(name, value, isText(name))
	}
	for name, f := range p.files {
		put(name, f.Name, true)
	}
	object, _ := json.Marshal(fields)
	return object
}

// Drop forgets a parameter.
func (p *Params) Drop(name string) { delete(p.values, name) }

// Text returns a parameter as it came, or nothing.
func (p *Params) Text(name string) string { return p.values[name] }

// Int returns a parameter as a number: 0 for what is none, as with the services.
func (p *Params) Int(name string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(p.values[name]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Bool says whether a parameter is true, in any of the ways the services take.
func (p *Params) Bool(name string) bool {
	switch strings.ToLower(p.values[name]) {
	case "true", "yes", "1":
		return true
	}
	return false
}

// JSON decodes a parameter that holds JSON and reports whether it was there.
func (p *Params) JSON(name string, into any) (bool, error) {
	raw := p.values[name]
	if raw == "" || raw == "null" {
		return false, nil
	}
	return true, json.Unmarshal([]byte(raw), into)
}

// File finds the file of a parameter: uploaded under the name itself or under
// another one that attach:// names.
func (p *Params) File(name string) (Upload, bool) {
	if f, ok := p.files[name]; ok {
		return f, true
	}
	if other, ok := strings.CutPrefix(p.values[name], "attach://"); ok {
		f, ok := p.files[other]
		return f, ok
	}
	return Upload{}, false
}
