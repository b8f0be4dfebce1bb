package organizer

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/people/v1"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
)

func contactsCreate(ctx context.Context, api *people.Service, _ *service.Conn, in contactArgs) (any, error) {
	p := &people.Person{Names: []*people.Name{{GivenName: in.GivenName, FamilyName: in.FamilyName}}}
	if in.Email != "" {
		p.EmailAddresses = []*people.EmailAddress{{Value: in.Email, Type: "home"}}
	}
	if in.Phone != "" {
		p.PhoneNumbers = []*people.PhoneNumber{{Value: in.Phone, Type: "mobile"}}
	}
	if in.Organization != "" || in.JobTitle != "" {
		p.Organizations = []*people.Organization{{Name: in.Organization, Title: in.JobTitle}}
	}
	made, err := api.People.CreateContact(p).Context(ctx).PersonFields(contactsFields).Do()
	if err != nil {
		return nil, err
	}
	return newContact(made), nil
}

// contactUpdateArgs distinguishes empty fields from missing ones.
type contactUpdateArgs struct {
	contactArgs
	GivenName  *string `json:"given_name"`
	FamilyName *string `json:"family_name"`
	Email      *string `json:"email"`
	Phone      *string `json:"phone"`
}

func contactsUpdate(ctx context.Context, api *people.Service, _ *service.Conn, in contactUpdateArgs) (any, error) {
	name, err := in.resourceName()
	if err != nil {
		return nil, err
	}
	if in.GivenName == nil && in.FamilyName == nil && in.Email == nil && in.Phone == nil {
		return nil, service.Invalidf("nothing to change: give given_name, family_name, email or phone")
	}
	// Only the user's own entries can be changed, not those of the person's profile.
	old, err := api.People.Get(name).Context(ctx).PersonFields(contactsFields + ",metadata").Sources("READ_SOURCE_TYPE_CONTACT").Do()
	if err != nil {
		return nil, err
	}
	patch, changed := in.newPatch(old)
	p, err := api.People.UpdateContact(name, patch).Context(ctx).
		UpdatePersonFields(strings.Join(changed, ",")).PersonFields(contactsFields).Do()
	if err != nil {
		return nil, contactsConflictError(err)
	}
	return newContact(p), nil
}

// newPatch returns the part of a person to send and the changed fields. Google replaces changed
// fields as a whole, so the values after the first are sent too.
func (in contactUpdateArgs) newPatch(old *people.Person) (*people.Person, []string) {
	patch := &people.Person{Etag: old.Etag}
	if m := old.Metadata; m != nil {
		patch.Metadata = &people.PersonMetadata{Sources: slices.DeleteFunc(m.Sources, func(s *people.Source) bool {
			return s.Type != "CONTACT"
		})}
	}
	var changed []string
	if in.GivenName != nil || in.FamilyName != nil {
		patch.Names = in.newNames(old.Names)
		changed = append(changed, "names")
		patch.ForceSendFields = append(patch.ForceSendFields, "Names")
	}
	if in.Email != nil {
		patch.EmailAddresses = contactsReplaceFirst(old.EmailAddresses, *in.Email, contactsEmailValue)
		changed = append(changed, "emailAddresses")
		patch.ForceSendFields = append(patch.ForceSendFields, "EmailAddresses")
	}
	if in.Phone != nil {
		patch.PhoneNumbers = contactsReplaceFirst(old.PhoneNumbers, *in.Phone, contactsPhoneValue)
		changed = append(changed, "phoneNumbers")
		patch.ForceSendFields = append(patch.ForceSendFields, "PhoneNumbers")
	}
	return patch, changed
}

// newNames returns the only name that a contact may have. Derived fields are left out, because they
// would override the parts.
func (in contactUpdateArgs) newNames(old []*people.Name) []*people.Name {
	var n people.Name
	if len(old) > 0 {
		n = *old[0]
	}
	n.DisplayName, n.DisplayNameLastFirst, n.UnstructuredName = "", "", ""
	toolgroups.Assign(&n.GivenName, in.GivenName)
	toolgroups.Assign(&n.FamilyName, in.FamilyName)
	if n.GivenName == "" && n.FamilyName == "" {
		return []*people.Name{}
	}
	return []*people.Name{&n}
}

// contactsEmailValue and contactsPhoneValue return a pointer to the value of an entry.
func contactsEmailValue(e *people.EmailAddress) *string { return &e.Value }

func contactsPhoneValue(n *people.PhoneNumber) *string {
	n.CanonicalForm = "" // Google derives it again
	return &n.Value
}

// contactsReplaceFirst sets the value of the first entry, or removes that entry if the value is
// empty. It drops later entries with the same value.
func contactsReplaceFirst[T any](entries []*T, value string, of func(*T) *string) []*T {
	out := []*T{}
	if value != "" {
		first := new(T)
		if len(entries) > 0 {
			first = entries[0]
		}
		*of(first) = value
		out = append(out, first)
	}
	for i, e := range entries {
		if i > 0 && *of(e) != value {
			out = append(out, e)
		}
	}
	return out
}

// contactsConflictError maps the status 400 for a contact that has changed since it was read.
func contactsConflictError(err error) error {
	var answer *googleapi.Error
	if !errors.As(err, &answer) || answer.Code != http.StatusBadRequest {
		return err
	}
	for _, r := range service.Reasons([]byte(answer.Body)) {
		if r == "failedPrecondition" || r == "FAILED_PRECONDITION" {
			return toolgroups.Errorf(service.CodeConflict, "The contact was changed meanwhile: %s. Read it again first.", service.PlainLine(answer.Message))
		}
	}
	return err
}
