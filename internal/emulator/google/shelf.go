package google

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
)

// shelf stores documents of one kind by the id of their parent, "" without one.
type shelf struct {
	id   string // the field with the id of a document
	docs map[string][]doc
}

func newShelf(id string) *shelf { return &shelf{id: id, docs: map[string][]doc{}} }

func (s *shelf) put(parent string, docs ...doc) { s.docs[parent] = append(s.docs[parent], docs...) }

func (s *shelf) find(parent, id string) (doc, bool) {
	i := slices.IndexFunc(s.docs[parent], func(d doc) bool { return d[s.id] == id })
	if i < 0 {
		return nil, false
	}
	return s.docs[parent][i], true
}

func (s *shelf) remove(parent, id string) {
	s.docs[parent] = slices.DeleteFunc(s.docs[parent], func(d doc) bool { return d[s.id] == id })
}

// collection is an API resource whose documents are stored as they are written.
type collection struct {
	*shelf
	// key is the parameter that identifies a document.
	key string
	// parent is the parameter that identifies the documents' parent, if any.
	parent string
	in     *shelf
	// list is the field with the documents in a list response.
	list string
	// mint begins the ids of new documents. If empty, requests choose ids.
	mint string
	// check refuses an inconsistent document.
	check func(d doc) *rejection
	// made completes a new document, patched a changed one.
	made, patched func(c *call, d doc)
	// shown removes fields that this resource lacks from a copy.
	shown func(d doc)
}

// show returns a copy of a document for a response.
func (k collection) show(d doc) doc {
	out := clone(d)
	if k.shown != nil {
		k.shown(out)
	}
	return out
}

// answer handles the usual verbs; false for any other.
func (k collection) answer(o *owner, c *call, verb string) (any, *rejection, bool) {
	parent := o.alias(k.parent, c.vars[k.parent])
	if k.parent != "" {
		if _, ok := k.in.find("", parent); !ok {
			return nil, missing(parent), true
		}
	}
	id := o.alias(k.key, c.vars[k.key])
	old, found := k.find(parent, id)
	switch verb {
	case "list":
		answer, rej := c.page(k.list, k.docs[parent])
		return answer, rej, true
	case "insert", "create":
		d, rej := k.insert(o, c, parent)
		return d, rej, true
	case "get", "patch", "update", "delete":
		if !found {
			return nil, missing(id), true
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
		if k.patched != nil {
			k.patched(c, old)
		}
	case http.MethodPut:
		fresh := clone(c.body)
		fresh[k.id] = old[k.id]
		clear(old)
		maps.Copy(old, fresh)
	case http.MethodDelete:
		k.remove(parent, id)
		if c.method.Answer == "" {
			return nil, nil, true
		}
		return doc{}, nil, true
	}
	return k.show(old), nil, true
}

func (k collection) insert(o *owner, c *call, parent string) (any, *rejection) {
	d := clone(c.body)
	if d[k.id] == nil || k.mint != "" {
		d[k.id] = o.mint(k.mint)
	}
	id := fmt.Sprint(d[k.id])
	if _, taken := k.find(parent, id); taken {
		return nil, &rejection{status: 409, message: "The requested identifier already exists: " + id, reason: "duplicate"}
	}
	if k.check != nil {
		if rej := k.check(d); rej != nil {
			return nil, rej
		}
	}
	if k.made != nil {
		k.made(c, d)
	}
	k.put(parent, d)
	return k.show(d), nil
}

// merge patches a document by RFC 7396: null removes.
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

func list(v any) []any {
	out, _ := v.([]any)
	return out
}

// page returns the requested page of a list.
func (c *call) page(field string, all []doc) (any, *rejection) {
	size := len(all)
	for _, name := range []string{"maxResults", "pageSize"} {
		if v := c.query.Get(name); v != "" {
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 {
				return nil, invalid("Invalid value for %s", name)
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
			return nil, invalid("Invalid pageToken")
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
