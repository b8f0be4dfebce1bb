package google

import (
	"fmt"
	"slices"
	"strings"
)

// directorySources are what a search in the directory has to name.
var directorySources = []string{"DIRECTORY_SOURCE_TYPE_DOMAIN_CONTACT", "DIRECTORY_SOURCE_TYPE_DOMAIN_PROFILE"}

// person cuts a contact to the fields that a request names, which it has to.
func (c *call) person(p doc, param string) (doc, *rejection) {
	fields := c.query.Get(param)
	if fields == "" {
		return nil, invalid("%s mask is required. Please specify one or more valid paths.", param)
	}
	known := c.service.Schemas["Person"].Props
	out := doc{"resourceName": p["resourceName"], "etag": p["etag"]}
	for f := range strings.SplitSeq(fields, ",") {
		if _, ok := known[f]; !ok {
			return nil, invalid("Invalid %s mask path: %q.", param, f)
		}
		if p[f] != nil {
			out[f] = p[f]
		}
	}
	return clone(out), nil
}

func (w *world) contact(c *call) (doc, *rejection) {
	for _, p := range w.kept["people"][""] {
		if p["resourceName"] == c.vars["resourceName"] {
			return p, nil
		}
	}
	return nil, missing(c.vars["resourceName"])
}

func (w *world) listContacts(c *call) (any, *rejection) {
	if c.vars["resourceName"] != "people/me" {
		return nil, invalid("Resource name %q must be people/me.", c.vars["resourceName"])
	}
	var out []doc
	for _, p := range w.kept["people"][""] {
		cut, rej := c.person(p, "personFields")
		if rej != nil {
			return nil, rej
		}
		out = append(out, cut)
	}
	answer, rej := c.page("connections", out)
	if d, ok := answer.(doc); ok {
		d["totalPeople"], d["totalItems"] = len(out), len(out)
	}
	return answer, rej
}

func (w *world) searchContacts(c *call) (any, *rejection) {
	results := []any{}
	query := strings.ToLower(c.query.Get("query"))
	for _, p := range w.kept["people"][""] {
		words := strings.Fields(strings.ToLower(strings.NewReplacer("[", " ", "]", " ", ":", " ").Replace(fmt.Sprint(p))))
		if query == "" || !slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, query) }) {
			continue
		}
		cut, rej := c.person(p, "readMask")
		if rej != nil {
			return nil, rej
		}
		results = append(results, doc{"person": cut})
	}
	return doc{"results": results}, nil
}

func (w *world) searchDirectory(c *call) (any, *rejection) {
	sources := c.query["sources"]
	if len(sources) == 0 || slices.ContainsFunc(sources, func(s string) bool { return !slices.Contains(directorySources, s) }) {
		return nil, invalid("Must specify at least one valid directory source.")
	}
	found, rej := w.searchContacts(c)
	if rej != nil {
		return nil, rej
	}
	people := []any{}
	for _, r := range list(found.(doc)["results"]) {
		people = append(people, r.(doc)["person"])
	}
	return doc{"people": people, "totalSize": len(people)}, nil
}

func (w *world) getContact(c *call) (any, *rejection) {
	p, rej := w.contact(c)
	if rej != nil {
		return nil, rej
	}
	cut, rej := c.person(p, "personFields")
	if rej != nil {
		return nil, rej
	}
	return cut, nil
}

func (w *world) createContact(c *call) (any, *rejection) {
	p := clone(c.body)
	p["resourceName"], p["etag"] = "people/"+w.mint("c"), w.mint("etag")
	displayNames(p)
	w.put("people", "", p)
	return clone(p), nil
}

// displayNames puts together what Google shows for a name.
func displayNames(p doc) {
	for _, n := range list(p["names"]) {
		name, ok := n.(doc)
		if !ok {
			continue
		}
		var parts []string
		for _, key := range []string{"givenName", "familyName"} {
			if s, ok := name[key].(string); ok && s != "" {
				parts = append(parts, s)
			}
		}
		name["displayName"] = strings.Join(parts, " ")
	}
}

func (w *world) updateContact(c *call) (any, *rejection) {
	p, rej := w.contact(c)
	if rej != nil {
		return nil, rej
	}
	fields := c.query.Get("updatePersonFields")
	if fields == "" {
		return nil, invalid("updatePersonFields mask is required. Please specify one or more valid paths.")
	}
	if c.body["etag"] == nil {
		return nil, invalid("Request must set person.etag or person.metadata.sources.etag for the source that is being updated.")
	}
	if c.body["etag"] != p["etag"] {
		return nil, &rejection{status: 400, reason: "failedPrecondition", message: "Request person.etag is different than the current person.etag. Clear local cache and get the latest person."}
	}
	for f := range strings.SplitSeq(fields, ",") {
		if _, ok := c.service.Schemas["Person"].Props[f]; !ok {
			return nil, invalid("Invalid updatePersonFields mask path: %q.", f)
		}
		if p[f] = c.body[f]; p[f] == nil {
			delete(p, f)
		}
	}
	p["etag"] = w.mint("etag")
	displayNames(p)
	return clone(p), nil
}

func (w *world) deleteContact(c *call) (any, *rejection) {
	p, rej := w.contact(c)
	if rej != nil {
		return nil, rej
	}
	w.kept["people"][""] = slices.DeleteFunc(w.kept["people"][""], func(d doc) bool { return d["resourceName"] == p["resourceName"] })
	return doc{}, nil
}
