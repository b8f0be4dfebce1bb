package google

import (
	"fmt"
	"slices"
	"strings"
)

// addressBook emulates the contacts of an account, and the directory of its domain, which has the
// same people.
type addressBook struct {
	*account
	people *store
}

func newAddressBook(o *account) implementation {
	b := &addressBook{o, newStore("resourceName")}
	b.seed()
	return implementation{methods: map[string]handler{
		"people.people.connections.list":      b.listContacts,
		"people.people.searchContacts":        b.searchContacts,
		"people.people.searchDirectoryPeople": b.searchDirectory,
		"people.people.get":                   b.getContact,
		"people.people.createContact":         b.createContact,
		"people.people.updateContact":         b.updateContact,
		"people.people.deleteContact":         b.deleteContact,
	}}
}

// directorySources are the valid sources of a directory search, which must name at least one.
var directorySources = []string{"DIRECTORY_SOURCE_TYPE_DOMAIN_CONTACT", "DIRECTORY_SOURCE_TYPE_DOMAIN_PROFILE"}

// selectFields returns the requested fields of a contact. Requests must name fields.
func (c *call) selectFields(p doc, param string) (doc, *rejection) {
	fields := c.query.Get(param)
	if fields == "" {
		return nil, invalidArgument("%s mask is required. Please specify one or more valid paths.", param)
	}
	known := c.api.Schemas["Person"].Props
	out := doc{"resourceName": p["resourceName"], "etag": p["etag"]}
	for f := range strings.SplitSeq(fields, ",") {
		if _, ok := known[f]; !ok {
			return nil, invalidArgument("Invalid %s mask path: %q.", param, f)
		}
		if p[f] != nil {
			out[f] = p[f]
		}
	}
	return clone(out), nil
}

func (b *addressBook) contactParam(c *call) (doc, *rejection) {
	p, ok := b.people.find("", c.vars["resourceName"])
	if !ok {
		return nil, notFound(c.vars["resourceName"])
	}
	return p, nil
}

func (b *addressBook) listContacts(c *call) (any, *rejection) {
	if c.vars["resourceName"] != "people/me" {
		return nil, invalidArgument("Resource name %q must be people/me.", c.vars["resourceName"])
	}
	var out []doc
	for _, p := range b.people.docs[""] {
		cut, rej := c.selectFields(p, "personFields")
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

func (b *addressBook) searchContacts(c *call) (any, *rejection) {
	results := []any{}
	query := strings.ToLower(c.query.Get("query"))
	for _, p := range b.people.docs[""] {
		words := strings.Fields(strings.ToLower(strings.NewReplacer("[", " ", "]", " ", ":", " ").Replace(fmt.Sprint(p))))
		if query == "" || !slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, query) }) {
			continue
		}
		cut, rej := c.selectFields(p, "readMask")
		if rej != nil {
			return nil, rej
		}
		results = append(results, doc{"person": cut})
	}
	return doc{"results": results}, nil
}

func (b *addressBook) searchDirectory(c *call) (any, *rejection) {
	sources := c.query["sources"]
	if len(sources) == 0 || slices.ContainsFunc(sources, func(s string) bool { return !slices.Contains(directorySources, s) }) {
		return nil, invalidArgument("Must specify at least one valid directory source.")
	}
	found, rej := b.searchContacts(c)
	if rej != nil {
		return nil, rej
	}
	people := []any{}
	for _, r := range asList(found.(doc)["results"]) {
		people = append(people, r.(doc)["person"])
	}
	return doc{"people": people, "totalSize": len(people)}, nil
}

func (b *addressBook) getContact(c *call) (any, *rejection) {
	p, rej := b.contactParam(c)
	if rej != nil {
		return nil, rej
	}
	return c.selectFields(p, "personFields")
}

func (b *addressBook) createContact(c *call) (any, *rejection) {
	p := clone(c.body)
	p["resourceName"], p["etag"] = "people/"+b.newID("c"), b.newID("etag")
	setDisplayNames(p)
	b.people.add("", p)
	return clone(p), nil
}

// setDisplayNames derives the display names from the given and family names.
func setDisplayNames(p doc) {
	for _, n := range asList(p["names"]) {
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

func (b *addressBook) updateContact(c *call) (any, *rejection) {
	p, rej := b.contactParam(c)
	if rej != nil {
		return nil, rej
	}
	fields := c.query.Get("updatePersonFields")
	if fields == "" {
		return nil, invalidArgument("updatePersonFields mask is required. Please specify one or more valid paths.")
	}
	if c.body["etag"] == nil {
		return nil, invalidArgument("Request must set person.etag or person.metadata.sources.etag for the source that is being updated.")
	}
	if c.body["etag"] != p["etag"] {
		return nil, &rejection{status: 400, reason: "failedPrecondition", message: "Request person.etag is different than the current person.etag. Clear local cache and get the latest person."}
	}
	for f := range strings.SplitSeq(fields, ",") {
		if _, ok := c.api.Schemas["Person"].Props[f]; !ok {
			return nil, invalidArgument("Invalid updatePersonFields mask path: %q.", f)
		}
		if p[f] = c.body[f]; p[f] == nil {
			delete(p, f)
		}
	}
	p["etag"] = b.newID("etag")
	setDisplayNames(p)
	return clone(p), nil
}

func (b *addressBook) deleteContact(c *call) (any, *rejection) {
	if _, rej := b.contactParam(c); rej != nil {
		return nil, rej
	}
	b.people.remove("", c.vars["resourceName"])
	return doc{}, nil
}
