package google

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// contractJSON is extracted from the discovery documents in google.golang.org/api by
// TestContract.
//
//go:embed contract.json
var contractJSON []byte

// api is one API of Google.
type api struct {
	// Base is the path that precedes those of the methods, with a slash at both ends.
	Base    string            `json:"base"`
	Methods map[string]method `json:"methods"`
	Schemas map[string]shape  `json:"schemas"`
}

// method is one method of an API.
type method struct {
	HTTP     string           `json:"http"`
	Path     string           `json:"path"`
	Params   map[string]param `json:"params,omitempty"`
	Body     string           `json:"body,omitempty"`
	Answer   string           `json:"answer,omitempty"`
	Scopes   []string         `json:"scopes,omitempty"`
	Upload   string           `json:"upload,omitempty"`
	Download bool             `json:"download,omitempty"`
}

// param is a parameter in a path or a query.
type param struct {
	In       string   `json:"in"`
	Type     string   `json:"type"`
	Format   string   `json:"format,omitempty"`
	Pattern  string   `json:"pattern,omitempty"`
	Minimum  string   `json:"minimum,omitempty"`
	Maximum  string   `json:"maximum,omitempty"`
	Enum     []string `json:"enum,omitempty"`
	Required bool     `json:"required,omitempty"`
	Repeated bool     `json:"repeated,omitempty"`
}

// shape is the type of a value in a body.
type shape struct {
	Ref             string           `json:"ref,omitempty"`
	Type            string           `json:"type,omitempty"`
	Format          string           `json:"format,omitempty"`
	Enum            []string         `json:"enum,omitempty"`
	Items           *shape           `json:"items,omitempty"`
	Props           map[string]shape `json:"props,omitempty"`
	AdditionalProps *shape           `json:"more,omitempty"` // of keys that are not in Props
}

// route is a method with the pattern of its path.
type route struct {
	id      string
	api     *api
	method  method
	pattern *regexp.Regexp
	upload  bool
	names   []string // names of the pattern's groups
}

// commonParams are the query parameters that every method accepts.
var commonParams = map[string]param{
	"alt":         {Type: "string", Enum: []string{"json", "media"}},
	"fields":      {Type: "string"},
	"prettyPrint": {Type: "boolean"},
	"uploadType":  {Type: "string", Enum: []string{"media", "multipart"}},
	"quotaUser":   {Type: "string"},
}

var pathVariable = regexp.MustCompile(`\{(\+?)([A-Za-z_]+)\}`)

// buildRoutes returns the routes of the contract.
func buildRoutes() ([]route, error) {
	var services map[string]*api
	if err := json.Unmarshal(contractJSON, &services); err != nil {
		return nil, fmt.Errorf("contract: %w", err)
	}
	var out []route
	for _, name := range slices.Sorted(maps.Keys(services)) {
		s := services[name]
		for _, id := range slices.Sorted(maps.Keys(s.Methods)) {
			m := s.Methods[id]
			r, err := newRoute(id, s, m, s.Base+m.Path)
			if err != nil {
				return nil, err
			}
			out = append(out, r)
			if m.Upload != "" {
				up, err := newRoute(id, s, m, m.Upload)
				if err != nil {
					return nil, err
				}
				up.upload = true
				out = append(out, up)
			}
		}
	}
	// A literal path takes precedence over one with a variable in the same place.
	slices.SortStableFunc(out, func(a, b route) int { return len(a.names) - len(b.names) })
	return out, nil
}

// newRoute compiles the path of a method.
func newRoute(id string, s *api, m method, path string) (route, error) {
	r := route{id: id, api: s, method: m}
	var b strings.Builder
	b.WriteByte('^')
	rest := path
	for {
		at := pathVariable.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		b.WriteString(regexp.QuoteMeta(rest[:at[0]]))
		name := rest[at[4]:at[5]]
		r.names = append(r.names, name)
		switch p := m.Params[name]; {
		case at[2] < at[3] && p.Pattern != "":
			b.WriteString("(" + strings.TrimSuffix(strings.TrimPrefix(p.Pattern, "^"), "$") + ")")
		case at[2] < at[3]:
			b.WriteString("(.+)")
		default:
			b.WriteString("([^/]+?)")
		}
		rest = rest[at[1]:]
	}
	b.WriteString(regexp.QuoteMeta(rest) + "$")
	var err error
	if r.pattern, err = regexp.Compile(b.String()); err != nil {
		return route{}, fmt.Errorf("contract: %s: %w", id, err)
	}
	return r, nil
}

// match returns the variables of an escaped path.
func (r route) match(httpMethod, path string) (map[string]string, bool) {
	if httpMethod != r.method.HTTP {
		return nil, false
	}
	found := r.pattern.FindStringSubmatch(path)
	if found == nil {
		return nil, false
	}
	vars := map[string]string{}
	for i, name := range r.names {
		value, err := url.PathUnescape(found[i+1])
		if err != nil {
			return nil, false
		}
		vars[name] = value
	}
	return vars, true
}
