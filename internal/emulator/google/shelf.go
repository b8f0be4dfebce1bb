package google

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
)

// store has the documents of one kind by the id of their parent, or by "" without a parent.
type store struct {
	idField string // name of the field with a document's id
	docs    map[string][]doc
}

func newStore(id string) *store { return &store{idField: id, docs: map[string][]doc{}} }

func (s *store) add(parent string, docs ...doc) { s.docs[parent] = append(s.docs[parent], docs...) }

func (s *store) find(parent, id string) (doc, bool) {
	i := slices.IndexFunc(s.docs[parent], func(d doc) bool { return d[s.idField] == id })
	if i < 0 {
		return nil, false
	}
	return s.docs[parent][i], true
}

func (s *store) remove(parent, id string) {
	s.docs[parent] = slices.DeleteFunc(s.docs[parent], func(d doc) bool { return d[s.idField] == id })
}

// collection is an API resource whose documents are stored in the form in which they are written.
type collection struct {
	*store
	// idParam is the parameter with the id of a document.
	idParam string
	// parentParam is the parameter with the id of the documents' parent, if any.
	parentParam string
	parents     *store
	// listField is the field of a list response that has the documents.
	listField string
	// idPrefix begins the ids of new documents. If it is empty, requests choose the ids.
	idPrefix string
	// check refuses an inconsistent document.
	check func(d doc) *rejection
	// onCreate fills in the fields of a new document; onPatch updates those of a changed one.
	onCreate, onPatch func(c *call, d doc)
	// hideFields removes the fields that this resource lacks from a copy of a document.
	hideFields func(d doc)
}

// present returns a copy of a document for a response.
func (k collection) present(d doc) doc {
	out := clone(d)
	if k.hideFields != nil {
		k.hideFields(out)
	}
	return out
}

// runVerb runs the usual verbs. It returns false for any other verb.
func (k collection) runVerb(o *account, c *call, verb string) (any, *rejection, bool) {
	parent := o.resolveAlias(k.parentParam, c.vars[k.parentParam])
	if k.parentParam != "" {
		if _, ok := k.parents.find("", parent); !ok {
			return nil, notFound(parent), true
		}
	}
	id := o.resolveAlias(k.idParam, c.vars[k.idParam])
	old, found := k.find(parent, id)
	switch verb {
	case "list":
		answer, rej := c.page(k.listField, k.docs[parent])
		return answer, rej, true
	case "insert", "create":
		d, rej := k.insert(o, c, parent)
		return d, rej, true
	case "get", "patch", "update", "delete":
		if !found {
			return nil, notFound(id), true
		}
	default:
		return nil, nil, false
	}
	switch c.method.HTTP {
	case http.MethodPatch:
		changed := clone(old)
		merge(changed, clone(c.body))
		if k.check != nil {
			if rej := k.check(changed); rej != nil {
				return nil, rej, true
			}
		}
		maps.Copy(old, changed)
		maps.DeleteFunc(old, func(key string, _ any) bool { return changed[key] == nil })
		if k.onPatch != nil {
			k.onPatch(c, old)
		}
	case http.MethodPut:
		fresh := clone(c.body)
		fresh[k.idField] = old[k.idField]
		clear(old)
		maps.Copy(old, fresh)
	case http.MethodDelete:
		k.remove(parent, id)
		if c.method.Answer == "" {
			return nil, nil, true
		}
		return doc{}, nil, true
	}
	return k.present(old), nil, true
}

func (k collection) insert(o *account, c *call, parent string) (any, *rejection) {
	d := clone(c.body)
	if d[k.idField] == nil || k.idPrefix != "" {
		d[k.idField] = o.newID(k.idPrefix)
	}
	id := fmt.Sprint(d[k.idField])
	if _, taken := k.find(parent, id); taken {
		return nil, &rejection{status: 409, message: "The requested identifier already exists: " + id, reason: "duplicate"}
	}
	if k.check != nil {
		if rej := k.check(d); rej != nil {
			return nil, rej
		}
	}
	if k.onCreate != nil {
		k.onCreate(c, d)
	}
	k.add(parent, d)
	return k.present(d), nil
}

// merge applies a patch to a document as in RFC 7396: null removes a field.
func merge(into, patch doc) {
	for key, value := range patch {
		below, isDoc := value.(doc)
		old, wasDoc := into[key].(doc)
		switch {
		case value == nil:
			delete(into, key)
		case isDoc && wasDoc:
			merge(old, below)
		default:
			into[key] = value
		}
	}
}

func asList(v any) []any {
	out, _ := v.([]any)
	return out
}

// page returns the page of a list that the request asks for.
func (c *call) page(field string, all []doc) (any, *rejection) {
	size := len(all)
	for _, name := range []string{"maxResults", "pageSize"} {
		if v := c.query.Get(name); v != "" {
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 {
				return nil, invalidArgument("Invalid value for %s", name)
			}
			if n > 0 {
				size = n
			}
		}
	}
	start := 0
	if token := c.query.Get("pageToken"); c.query.Has("pageToken") {
		n, err := strconv.Atoi(token)
		if err != nil || n < 0 || n > len(all) {
			return nil, invalidArgument("Invalid pageToken")
		}
		start = n
	}
	end := min(start+size, len(all))
	items := make([]any, 0, end-start)
	for _, d := range all[start:end] {
		items = append(items, clone(d))
	}
	answer := doc{field: items}
	if len(items) == 0 {
		delete(answer, field) // Google leaves out empty lists
	}
	if end < len(all) {
		answer["nextPageToken"] = strconv.Itoa(end)
	}
	return answer, nil
}
