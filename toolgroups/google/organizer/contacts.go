package organizer

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"google.golang.org/api/people/v1"

	"oneclaw/internal/retry"
	"oneclaw/toolgroups/google/service"
)

// Sizes of lists of people (developers.google.com/people/api/rest).
const (
	maxContacts          = 1000
	defaultContacts      = 20
	maxContactsSearch    = 30
	defaultContactsFound = 10
	maxDirectory         = 500
)

// contactsFields are the requested fields of a person.
const contactsFields = "names,emailAddresses,phoneNumbers,organizations,biographies,addresses"

// contactsNamePattern matches the resource name of a contact, which becomes a path.
var contactsNamePattern = regexp.MustCompile(`^people/[A-Za-z0-9_-]+$`)

// Contacts returns the group of tools for contacts.
func Contacts() service.Group {
	return service.Group{
		Name:      "google_contacts",
		Scopes:    []string{people.ContactsScope},
		Manifests: manifests,
		Operations: service.Operations{
			"contactsList":          service.NewOperation(people.NewService, contactsList),
			"contactsSearch":        service.NewOperation(people.NewService, contactsSearch),
			"contactsGet":           service.NewOperation(people.NewService, contactsGet),
			"contactsCreate":        service.NewOperation(people.NewService, contactsCreate),
			"contactsUpdate":        service.NewOperation(people.NewService, contactsUpdate),
			"contactsDelete":        service.NewOperation(people.NewService, contactsDelete),
			"contactsListDirectory": service.NewOperation(people.NewService, contactsListDirectory).WithScopes(people.DirectoryReadonlyScope),
		},
		Resources: service.Resources{"resource_name": service.NewOperation(people.NewService, describeContact)},
	}
}

// contact is a person with the first value of each kind.
type contact struct {
	ResourceName string `json:"resourceName"`
	Etag         string `json:"etag,omitempty"`
	Name         string `json:"name,omitempty"`
	GivenName    string `json:"givenName,omitempty"`
	FamilyName   string `json:"familyName,omitempty"`
	Email        string `json:"email,omitempty"`
	Phone        string `json:"phone,omitempty"`
	Organization string `json:"organization,omitempty"`
	JobTitle     string `json:"jobTitle,omitempty"`
}

func newContact(p *people.Person) contact {
	out := contact{ResourceName: p.ResourceName, Etag: p.Etag}
	if len(p.Names) > 0 {
		out.Name, out.GivenName, out.FamilyName = p.Names[0].DisplayName, p.Names[0].GivenName, p.Names[0].FamilyName
	}
	if len(p.EmailAddresses) > 0 {
		out.Email = p.EmailAddresses[0].Value
	}
	if len(p.PhoneNumbers) > 0 {
		out.Phone = p.PhoneNumbers[0].Value
	}
	if len(p.Organizations) > 0 {
		out.Organization, out.JobTitle = p.Organizations[0].Name, p.Organizations[0].Title
	}
	return out
}

func newContacts(persons []*people.Person) []contact {
	out := make([]contact, 0, len(persons))
	for _, p := range persons {
		if p != nil {
			out = append(out, newContact(p))
		}
	}
	return out
}

type contactArgs struct {
	ResourceName string `json:"resource_name"`
	Query        string `json:"query"`
	MaxResults   int    `json:"max_results"`
	PageToken    string `json:"page_token"`
	GivenName    string `json:"given_name"`
	FamilyName   string `json:"family_name"`
	Email        string `json:"email"`
	Phone        string `json:"phone"`
	Organization string `json:"organization"`
	JobTitle     string `json:"job_title"`
}

func contactsList(ctx context.Context, api *people.Service, _ *service.Conn, in contactArgs) (any, error) {
	call := api.People.Connections.List("people/me").Context(ctx).PersonFields(contactsFields)
	if in.PageToken != "" {
		call.PageToken(in.PageToken)
	}
	limit := service.ClampLimit(in.MaxResults, defaultContacts, maxContacts)
	persons, next, err := service.Collect(limit, call, call.PageSize, func(page *people.ListConnectionsResponse) ([]*people.Person, string) {
		return page.Connections, page.NextPageToken
	})
	return service.Page("contacts", newContacts(persons), next), err
}

func contactsSearch(ctx context.Context, api *people.Service, c *service.Conn, in contactArgs) (any, error) {
	if strings.TrimSpace(in.Query) == "" {
		return nil, service.Invalidf("'query' is empty")
	}
	search := func(query string, size int) ([]*people.SearchResult, error) {
		found, err := api.People.SearchContacts().Context(ctx).Query(query).PageSize(int64(size)).ReadMask(contactsFields).Do()
		if err != nil {
			return nil, err
		}
		return found.Results, nil
	}
	// According to Google's reference, an empty search makes Google fill its cache soon afterwards.
	if _, err := search("", 1); err != nil {
		return nil, err
	}
	size := service.ClampLimit(in.MaxResults, defaultContactsFound, maxContactsSearch)
	found, err := search(in.Query, size)
	if err == nil && len(found) == 0 {
		// Give Google's cache two seconds, or less if the configured pauses are short.
		if err = retry.Wait(ctx, 4*c.Pause); err == nil {
			found, err = search(in.Query, size)
		}
	}
	if err != nil {
		return nil, err
	}
	persons := make([]*people.Person, len(found))
	for i, r := range found {
		persons[i] = r.Person
	}
	return service.Page("contacts", newContacts(persons), ""), nil
}

func contactsListDirectory(ctx context.Context, api *people.Service, _ *service.Conn, in contactArgs) (any, error) {
	if strings.TrimSpace(in.Query) == "" {
		return nil, service.Invalidf("'query' is empty")
	}
	call := api.People.SearchDirectoryPeople().Context(ctx).Query(in.Query).ReadMask(contactsFields).
		Sources("DIRECTORY_SOURCE_TYPE_DOMAIN_PROFILE", "DIRECTORY_SOURCE_TYPE_DOMAIN_CONTACT")
	limit := service.ClampLimit(in.MaxResults, defaultContactsFound, maxDirectory)
	persons, _, err := service.Collect(limit, call, call.PageSize, func(page *people.SearchDirectoryPeopleResponse) ([]*people.Person, string) {
		return page.People, page.NextPageToken
	})
	return service.Page("contacts", newContacts(persons), ""), err
}

// resourceName returns the resource name of the contact if it is valid as a path.
func (in contactArgs) resourceName() (string, error) {
	name := strings.TrimSpace(in.ResourceName)
	if !contactsNamePattern.MatchString(name) {
		return "", service.Invalidf("'resource_name' must look like people/c123, not %q", in.ResourceName)
	}
	return name, nil
}

func contactsGet(ctx context.Context, api *people.Service, _ *service.Conn, in contactArgs) (any, error) {
	name, err := in.resourceName()
	if err != nil {
		return nil, err
	}
	p, err := api.People.Get(name).Context(ctx).PersonFields(contactsFields).Do()
	if err != nil {
		return nil, err
	}
	return newContact(p), nil
}

func contactsDelete(ctx context.Context, api *people.Service, _ *service.Conn, in contactArgs) (any, error) {
	name, err := in.resourceName()
	if err != nil {
		return nil, err
	}
	_, err = api.People.DeleteContact(name).Context(ctx).Do()
	return service.SuccessResult(), ignoreEmptyBody(err)
}

// ignoreEmptyBody returns nil for the error of a response without a body.
func ignoreEmptyBody(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && syntax.Offset == 0 {
		return nil
	}
	return err
}
