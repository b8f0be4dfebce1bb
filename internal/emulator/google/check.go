package google

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checkQuery checks the query parameters, and the path parameters that have a type.
func (c *call) checkQuery() *rejection {
	for name, values := range c.query {
		if rej := c.checkParam(name, values); rej != nil {
			return rej
		}
	}
	for name, p := range c.method.Params {
		value, inPath := c.vars[name]
		if inPath {
			if rej := p.check(name, value); rej != nil {
				return rej
			}
		} else if p.Required && c.query.Get(name) == "" {
			return invalidArgument("Required parameter: %s", name)
		}
	}
	if c.query.Get("alt") == "media" && !c.method.Download {
		return invalidArgument("alt=media is not supported by %s", c.id)
	}
	return nil
}

// checkParam checks the values of a query parameter.
func (c *call) checkParam(name string, values []string) *rejection {
	p, ok := c.method.Params[name]
	if !ok || p.In != "query" {
		if p, ok = commonParams[name]; !ok {
			return invalidArgument("Invalid JSON payload received. Unknown name %q: Cannot bind query parameter.", name)
		}
	}
	if len(values) > 1 && !p.Repeated {
		return invalidArgument("Parameter %q is given more than once.", name)
	}
	for _, v := range values {
		if rej := p.check(name, v); rej != nil {
			return rej
		}
	}
	return nil
}

// check checks a value of a parameter.
func (p param) check(name, v string) *rejection {
	wrong := false
	switch p.Type {
	case "integer":
		n, err := strconv.ParseInt(v, 10, 64)
		low, lowErr := strconv.ParseInt(p.Minimum, 10, 64)
		high, highErr := strconv.ParseInt(p.Maximum, 10, 64)
		wrong = err != nil || lowErr == nil && n < low || highErr == nil && n > high
	case "boolean":
		wrong = v != "true" && v != "false"
	case "number":
		_, err := strconv.ParseFloat(v, 64)
		wrong = err != nil
	case "string":
		wrong = !hasFormat(p.Format, v) || len(p.Enum) > 0 && !slices.Contains(p.Enum, v)
	}
	if wrong {
		return invalidArgument("Invalid value for parameter %q: %q", name, v)
	}
	return nil
}

// hasFormat reports whether a text has a format.
func hasFormat(format, v string) bool {
	var err error
	switch format {
	case "int64", "uint64":
		_, err = strconv.ParseInt(v, 10, 64)
	case "date-time", "google-datetime":
		_, err = time.Parse(time.RFC3339, v)
	case "date":
		_, err = time.Parse(time.DateOnly, v)
	case "google-fieldmask":
		return v != "" && !strings.ContainsAny(v, " \n")
	case "byte":
		_, err = decodeBytes(v)
	}
	return err == nil
}

// checkValue checks a value in a body against a shape. Errors give where as its path.
func (s *api) checkValue(sh shape, v any, where string) *rejection {
	if sh.Ref != "" {
		sh = s.Schemas[sh.Ref]
	}
	fits := true
	switch v := v.(type) {
	case doc:
		return s.checkObject(sh, v, where)
	case []any:
		return s.checkList(sh, v, where)
	case string:
		fits = (sh.Type == "string" || sh.Type == "any") && hasFormat(sh.Format, v)
		if fits && len(sh.Enum) > 0 && v != "" && !slices.Contains(sh.Enum, v) {
			return invalidArgument("Invalid value at '%s' (%s): %q", where, "TYPE_ENUM", v)
		}
	case bool:
		fits = sh.Type == "boolean" || sh.Type == "any"
	case float64:
		fits = sh.allowsNumber(v)
	}
	if !fits { // null clears a field and is always valid
		return s.typeError(sh, where)
	}
	return nil
}

// allowsNumber reports whether a number is valid for the shape.
func (sh shape) allowsNumber(v float64) bool {
	if sh.Type == "integer" || sh.Format == "int64" || sh.Format == "uint64" {
		return v == float64(int64(v))
	}
	return sh.Type == "number" || sh.Type == "any"
}

func (s *api) checkList(sh shape, list []any, where string) *rejection {
	if sh.Type != "array" {
		return s.typeError(sh, where)
	}
	for i, item := range list {
		if rej := s.checkValue(*sh.Items, item, where+"["+strconv.Itoa(i)+"]"); rej != nil {
			return rej
		}
	}
	return nil
}

func (s *api) checkObject(sh shape, v doc, where string) *rejection {
	if sh.Type != "object" && sh.Type != "any" {
		return s.typeError(sh, where)
	}
	for key, value := range v {
		at := strings.TrimPrefix(where+"."+key, ".")
		prop, ok := sh.Props[key]
		switch {
		case ok:
		case sh.AdditionalProps != nil:
			prop = *sh.AdditionalProps
		case sh.Type == "any", len(sh.Props) == 0:
			continue
		default:
			return invalidArgument("Invalid JSON payload received. Unknown name %q at '%s': Cannot find field.", key, where)
		}
		if rej := s.checkValue(prop, value, at); rej != nil {
			return rej
		}
	}
	return nil
}

func (s *api) typeError(sh shape, where string) *rejection {
	return invalidArgument("Invalid value at '%s' (want %s %s)", where, sh.Type, sh.Format)
}

// readUpload reads an upload: either only media, or multipart/related, whose first part is JSON
// (developers.google.com/workspace/drive/api/guides/manage-uploads).
func (c *call) readUpload(contentType string, body []byte) *rejection {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return invalidArgument("Content-Type %q cannot be read.", contentType)
	}
	if c.query.Get("uploadType") == "media" {
		c.media, c.mediaType = body, media
		return nil
	}
	if c.query.Get("uploadType") != "multipart" || media != "multipart/related" {
		return invalidArgument("A multipart upload must be multipart/related, not %q.", media)
	}
	parts := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for i := range 2 {
		part, err := parts.NextRawPart()
		if err != nil {
			return invalidArgument("Multipart upload: %v", err)
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return invalidArgument("Multipart upload: %v", err)
		}
		if i == 0 {
			if rej := c.readJSON(data); rej != nil {
				return rej
			}
			continue
		}
		c.media, c.mediaType = data, part.Header.Get("Content-Type")
	}
	return nil
}

// clone returns a deep copy of a document.
func clone(d doc) doc {
	data, err := json.Marshal(d)
	if err != nil || d == nil {
		return doc{}
	}
	out := doc{}
	_ = json.Unmarshal(data, &out)
	return out
}
