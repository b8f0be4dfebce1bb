package wire

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Params are the arguments of a call, from its query, form, JSON or multipart body.
type Params struct {
	values map[string]string
	files  map[string]Upload
}

// Upload is a file in a multipart body.
type Upload struct {
	// Name and MIME are from the client. Disposition is the raw header.
	Name, MIME, Disposition string
	// Data is the content of the file.
	Data []byte
}

// ReadParams reads a whole request, whose body is bounded by limit. Values in the body
// override the query. The error for a body that is too long is an [http.MaxBytesError].
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

// IsJSON reports whether the content type of a request is JSON.
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

// readJSON keeps strings and converts everything else to its JSON text, as the value would be in
// a form.
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
		disposition := part.Header.Get("Content-Disposition")
		name, _ := dispositionField(disposition, "name")
		if file, isFile := dispositionField(disposition, "filename"); isFile {
			p.files[name] = Upload{Name: file, MIME: part.Header.Get("Content-Type"), Disposition: disposition, Data: data}
			continue
		}
		p.values[name] = string(data)
	}
}

// dispositionPattern matches a field of a Content-Disposition, in quotes, or up to the next semicolon: some libraries
// quote no names (grammY 1.46.0), and the services take those (tdlib/td, tdnet HttpReader.cpp).
var dispositionPattern = regexp.MustCompile(`;\s*([^=;"]+?)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^";]*))`)

// dispositionField returns a field of a Content-Disposition.
func dispositionField(header, field string) (string, bool) {
	for _, m := range dispositionPattern.FindAllStringSubmatch(header, -1) {
		if m[1] == field {
			return cmp.Or(escapedRune.ReplaceAllString(m[2], "$1"), strings.TrimSpace(m[3])), true
		}
	}
	return "", false
}

var escapedRune = regexp.MustCompile(`\\(.)`)

// EncodeJSON returns the parameters as one JSON object. Those for which isText is true are strings;
// others are JSON values if valid. A file is represented by its name, unless another parameter refers to it.
func (p *Params) EncodeJSON(isText func(name string) bool) []byte {
	fields := make(map[string]json.RawMessage, len(p.values)+len(p.files))
	put := func(name, value string, asText bool) {
		if raw := []byte(value); !asText && json.Valid(raw) {
			fields[name] = raw
			return
		}
		fields[name], _ = json.Marshal(value) // a string can always be encoded
	}
	for name, value := range p.values {
		put(name, value, isText(name))
	}
	for name, f := range p.files {
		attached := func(value string) bool { return strings.Contains(value, "attach://"+name) }
		if !slices.ContainsFunc(slices.Collect(maps.Values(p.values)), attached) {
			put(name, f.Name, true)
		}
	}
	object, _ := json.Marshal(fields)
	return object
}

// Clone returns a copy, which may be changed.
func (p *Params) Clone() *Params { return &Params{values: maps.Clone(p.values), files: p.files} }

// Set changes a parameter.
func (p *Params) Set(name, value string) { p.values[name] = value }

// Drop removes a parameter.
func (p *Params) Drop(name string) { delete(p.values, name) }

// Text returns a parameter as received, or "".
func (p *Params) Text(name string) string { return p.values[name] }

// Int returns a parameter as a number, or 0 if it is not a number, as the services do.
func (p *Params) Int(name string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(p.values[name]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Bool reports whether a parameter is true, in any of the forms that the services accept.
func (p *Params) Bool(name string) bool {
	switch strings.ToLower(p.values[name]) {
	case "true", "yes", "1":
		return true
	}
	return false
}

// DecodeJSON decodes a JSON parameter and reports whether the parameter exists.
func (p *Params) DecodeJSON(name string, into any) (bool, error) {
	raw := p.values[name]
	if raw == "" || raw == "null" {
		return false, nil
	}
	return true, json.Unmarshal([]byte(raw), into)
}

// File returns the file of a parameter. It was uploaded under that name, or under the name that follows
// attach://.
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
