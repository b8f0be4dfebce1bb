package google

import (
	"testing"

	"oneclaw/toolgroups/google/service"
)

// contactsFields is what is asked for of a person.
const contactsFields = "names,emailAddresses,phoneNumbers,organizations,biographies,addresses"

const (
	contactsAnn = `{"resourceName":"people/c1","etag":"e1","names":[{"displayName":"Ann Lee","givenName":"Ann","familyName":"Lee"}],` +
		`"emailAddresses":[{"value":"a@x","type":"home"},{"value":"b@x"}],"phoneNumbers":[{"value":"+1"}],"organizations":[{"name":"Org","title":"Boss"}]}`
	contactsAnnFlat = `{"resourceName":"people/c1","etag":"e1","name":"Ann Lee","givenName":"Ann","familyName":"Lee","email":"a@x","phone":"+1","organization":"Org","jobTitle":"Boss"}`
	contactsBare    = `{"resourceName":"people/c2"}`
)

func TestContactsLists(t *testing.T) {
	const list, search, directory = "/v1/people/me/connections", "/v1/people:searchContacts", "/v1/people:searchDirectoryPeople"
	warm := wantRequest("GET", search, "", "query", "", "pageSize", "1", "readMask", contactsFields)
	found := wantRequest("GET", search, "", "query", "ann", "pageSize", "10", "readMask", contactsFields)
	both := []string{"sources", "DIRECTORY_SOURCE_TYPE_DOMAIN_PROFILE", "sources", "DIRECTORY_SOURCE_TYPE_DOMAIN_CONTACT"}
	runSteps(t, []step{
		{
			name: "by default twenty", tool: "contacts_list", args: `{}`,
			replies: map[string][]string{"GET " + list: {`{"connections":[` + contactsAnn + `],"nextPageToken":"n1"}`, `{"connections":[` + contactsBare + `]}`}},
			requests: []string{
				wantRequest("GET", list, "", "personFields", contactsFields, "pageSize", "20"),
				wantRequest("GET", list, "", "personFields", contactsFields, "pageSize", "19", "pageToken", "n1"),
			},
			result: `{"contacts":[` + contactsAnnFlat + `,` + contactsBare + `]}`,
		},
		{
			name: "a page of one", tool: "contacts_list", args: `{"max_results":1,"page_token":"n1"}`,
			replies:  map[string][]string{"GET " + list: {`{"connections":[` + contactsBare + `],"nextPageToken":"n2"}`}},
			requests: []string{wantRequest("GET", list, "", "personFields", contactsFields, "pageSize", "1", "pageToken", "n1")},
			result:   `{"contacts":[` + contactsBare + `],"nextPageToken":"n2"}`,
		},
		{
			name: "nobody", tool: "contacts_list", args: `{"max_results":2000}`,
			replies:  map[string][]string{"GET " + list: {`{}`}},
			requests: []string{wantRequest("GET", list, "", "personFields", contactsFields, "pageSize", "1000")},
			result:   `{"contacts":[]}`,
		},
		{
			name: "search after the cache is filled", tool: "contacts_search", args: `{"query":"ann"}`,
			replies:  map[string][]string{"GET " + search: {`{}`, `{"results":[{"person":` + contactsAnn + `},{}]}`}},
			requests: []string{warm, found}, result: `{"contacts":[` + contactsAnnFlat + `]}`,
		},
		{
			name: "search that finds at the second try", tool: "contacts_search", args: `{"query":"ann"}`,
			replies:  map[string][]string{"GET " + search: {`{}`, `{}`, `{"results":[{"person":` + contactsBare + `}]}`}},
			requests: []string{warm, found, found}, result: `{"contacts":[` + contactsBare + `]}`,
		},
		{
			name: "search for more than Google gives", tool: "contacts_search", args: `{"query":"ann","max_results":99}`,
			replies:  map[string][]string{"GET " + search: {`{}`, `{"results":[{"person":` + contactsBare + `}]}`}},
			requests: []string{warm, wantRequest("GET", search, "", "query", "ann", "pageSize", "30", "readMask", contactsFields)},
			result:   `{"contacts":[` + contactsBare + `]}`,
		},
		{name: "search for nothing", tool: "contacts_search", args: `{"query":" "}`, code: "validation_error"},
		{
			name: "directory, over two pages", tool: "contacts_list_directory", args: `{"query":"an"}`,
			replies: map[string][]string{"GET " + directory: {`{"people":[` + contactsAnn + `],"nextPageToken":"n1"}`, `{"people":[` + contactsBare + `]}`}},
			requests: []string{
				wantRequest("GET", directory, "", append(both, "query", "an", "pageSize", "10", "readMask", contactsFields)...),
				wantRequest("GET", directory, "", append(both, "query", "an", "pageSize", "9", "readMask", contactsFields, "pageToken", "n1")...),
			},
			result: `{"contacts":[` + contactsAnnFlat + `,` + contactsBare + `]}`,
		},
		{name: "directory for nothing", tool: "contacts_list_directory", args: `{"query":""}`, code: "validation_error"},
		{
			name: "directory of an account without one", tool: "contacts_list_directory", args: `{"query":"an"}`,
			replies: map[string][]string{"GET " + directory: {`403{"error":{"code":403,"message":"Must be a G Suite domain user."}}`}},
			code:    "permission_denied",
		},
	})
}

func TestContactsOne(t *testing.T) {
	const one = "/v1/people/c1"
	runSteps(t, []step{
		{
			name: "get", tool: "contacts_get", args: `{"resource_name":"people/c1"}`,
			replies:  map[string][]string{"GET " + one: {contactsAnn}},
			requests: []string{wantRequest("GET", one, "", "personFields", contactsFields)}, result: contactsAnnFlat,
		},
		{name: "get something else", tool: "contacts_get", args: `{"resource_name":"people/me/connections"}`, code: "validation_error"},
		{name: "get something below", tool: "contacts_get", args: `{"resource_name":"people/c1?x=y"}`, code: "validation_error"},
		{name: "delete something else", tool: "contacts_delete", args: `{"resource_name":"contactGroups/g1"}`, code: "validation_error"},
		{
			name: "delete", tool: "contacts_delete", args: `{"resource_name":"people/c1"}`,
			replies:  map[string][]string{"DELETE " + one + ":deleteContact": {`{}`}},
			requests: []string{wantRequest("DELETE", one+":deleteContact", "")}, result: `{"success":true}`,
		},
		{
			name: "delete with status 204", tool: "contacts_delete", args: `{"resource_name":"people/c1"}`,
			replies: map[string][]string{"DELETE " + one + ":deleteContact": {"204"}}, result: `{"success":true}`,
		},
		{
			name: "delete with an empty body", tool: "contacts_delete", args: `{"resource_name":"people/c1"}`,
			replies: map[string][]string{"DELETE " + one + ":deleteContact": {"200"}}, result: `{"success":true}`,
		},
		{
			name: "delete that was cut off", tool: "contacts_delete", args: `{"resource_name":"people/c1"}`,
			replies: map[string][]string{"DELETE " + one + ":deleteContact": {`{"a`}},
			result: `{"success":true,"note":"Google has done it, but the answer could not be read (unexpected end of JSON input). ` +
				`Do not make this call again; read what is there now if something of the answer is needed."}`,
		},
		{
			name: "create with everything", tool: "contacts_create",
			args:    `{"given_name":"Ann","family_name":"Lee","email":"a@x","phone":"+1","organization":"Org","job_title":"Boss"}`,
			replies: map[string][]string{"POST /v1/people:createContact": {contactsAnn}},
			requests: []string{wantRequest("POST", "/v1/people:createContact", `{"emailAddresses":[{"type":"home","value":"a@x"}],`+
				`"names":[{"familyName":"Lee","givenName":"Ann"}],"organizations":[{"name":"Org","title":"Boss"}],`+
				`"phoneNumbers":[{"type":"mobile","value":"+1"}]}`, "personFields", contactsFields)},
			result: contactsAnnFlat,
		},
		{
			name: "create with a name", tool: "contacts_create", args: `{"given_name":"Bo"}`,
			replies:  map[string][]string{"POST /v1/people:createContact": {contactsBare}},
			requests: []string{wantRequest("POST", "/v1/people:createContact", `{"names":[{"givenName":"Bo"}]}`, "personFields", contactsFields)},
			result:   contactsBare,
		},
		{name: "create without a name", tool: "contacts_create", args: `{"given_name":" "}`, code: "validation_error"},
	})
}

func TestContactsUpdate(t *testing.T) {
	const one, patch = "/v1/people/c1", "/v1/people/c1:updateContact"
	const old = `{"resourceName":"people/c1","etag":"e1","metadata":{"sources":[{"type":"PROFILE","id":"7"},{"type":"CONTACT","id":"1","etag":"s1"}]},` +
		`"names":[{"displayName":"Ann Lee","unstructuredName":"Ann Lee","givenName":"Ann","familyName":"Lee","honorificPrefix":"Dr"}],` +
		`"emailAddresses":[{"value":"a@x","type":"home"},{"value":"b@x","type":"work"},{"value":"c@x"}],` +
		`"phoneNumbers":[{"value":"+1","canonicalForm":"+1","type":"mobile"},{"value":"+2"}]}`
	const head, tail = `{`, `"etag":"e1","metadata":{"sources":[{"etag":"s1","id":"1","type":"CONTACT"}]}`
	get := wantRequest("GET", one, "", "personFields", contactsFields+",metadata", "sources", "READ_SOURCE_TYPE_CONTACT")
	sent := func(body, fields string) []string {
		return []string{get, wantRequest("PATCH", patch, body, "updatePersonFields", fields, "personFields", contactsFields)}
	}
	ok := map[string][]string{"GET " + one: {old}, "PATCH " + patch: {contactsAnn}}
	refused := func(status, body string) map[string][]string {
		return map[string][]string{"GET " + one: {old}, "PATCH " + patch: {status + body}}
	}
	runSteps(t, []step{
		{
			name: "other addresses stay", tool: "contacts_update", args: `{"resource_name":"people/c1","email":"n@x"}`, replies: ok,
			requests: sent(head+`"emailAddresses":[{"type":"home","value":"n@x"},{"type":"work","value":"b@x"},{"value":"c@x"}],`+tail+`}`, "emailAddresses"),
			result:   contactsAnnFlat,
		},
		{
			name: "no address twice", tool: "contacts_update", args: `{"resource_name":"people/c1","email":"c@x"}`, replies: ok,
			requests: sent(head+`"emailAddresses":[{"type":"home","value":"c@x"},{"type":"work","value":"b@x"}],`+tail+`}`, "emailAddresses"),
			result:   contactsAnnFlat,
		},
		{
			name: "names are put together anew, the rest stays", tool: "contacts_update", replies: ok,
			args:     `{"resource_name":"people/c1","family_name":"Kay","phone":"+9"}`,
			requests: sent(head+tail+`,"names":[{"familyName":"Kay","givenName":"Ann","honorificPrefix":"Dr"}],"phoneNumbers":[{"type":"mobile","value":"+9"},{"value":"+2"}]}`, "names,phoneNumbers"),
			result:   contactsAnnFlat,
		},
		{
			name: "empty removes", tool: "contacts_update", replies: ok,
			args:     `{"resource_name":"people/c1","given_name":"","family_name":"","email":"","phone":""}`,
			requests: sent(head+`"emailAddresses":[{"type":"work","value":"b@x"},{"value":"c@x"}],`+tail+`,"names":[],"phoneNumbers":[{"value":"+2"}]}`, "names,emailAddresses,phoneNumbers"),
			result:   contactsAnnFlat,
		},
		{
			name: "to a contact that has none", tool: "contacts_update", args: `{"resource_name":"people/c1","given_name":"Bo","email":"n@x","phone":"+9"}`,
			replies:  map[string][]string{"GET " + one: {`{"resourceName":"people/c1","etag":"e1"}`}, "PATCH " + patch: {contactsAnn}},
			requests: sent(`{"emailAddresses":[{"value":"n@x"}],"etag":"e1","names":[{"givenName":"Bo"}],"phoneNumbers":[{"value":"+9"}]}`, "names,emailAddresses,phoneNumbers"),
			result:   contactsAnnFlat,
		},
		{name: "nothing to change", tool: "contacts_update", args: `{"resource_name":"people/c1"}`, code: "validation_error"},
		{name: "no contact", tool: "contacts_update", args: `{"resource_name":"c1","email":"n@x"}`, code: "validation_error"},
		{
			name: "changed meanwhile", tool: "contacts_update", args: `{"resource_name":"people/c1","email":"n@x"}`,
			replies: refused("400", `{"error":{"code":400,"message":"Request person.etag is different","status":"FAILED_PRECONDITION"}}`),
			code:    service.CodeConflict,
		},
		{
			name: "not accepted", tool: "contacts_update", args: `{"resource_name":"people/c1","email":"n"}`,
			replies: refused("400", `{"error":{"code":400,"message":"Invalid","status":"INVALID_ARGUMENT"}}`),
			code:    "validation_error",
		},
	})
}
