package toolgroups

import (
	"errors"
	"fmt"
)

// BuiltinGroups returns the fourteen groups of the program in the order of the
// listing, filled with the tools of those that are given. A group that is not
// given is listed all the same and has no tools. Names, descriptions and roles
// are those of this table, so that neither the prompt nor who may load a group
// depends on what has been built in. A name that is not in the table is an error:
// such groups go into [RegistryConfig] beside these.
func BuiltinGroups(built ...Group) ([]Group, error) {
	groups := builtin()
	at := map[string]int{}
	for i := range groups {
		groups[i].Source = SourceBuiltin
		at[groups[i].Name] = i
	}
	var errs []error
	filled := map[string]bool{}
	for _, g := range built {
		i, ok := at[g.Name]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("toolgroups: %q is no built-in group", g.Name))
		case filled[g.Name]:
			errs = append(errs, fmt.Errorf("toolgroups: built-in group %q is given twice", g.Name))
		default:
			filled[g.Name] = true
			groups[i].Tools = g.Tools
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return groups, nil
}

func builtin() []Group {
	return []Group{
		{
			Name: "config", DisplayName: "Configuration", Role: RoleAdmin,
			Description: "Manage providers, models, agents, app settings, environment variables, and tool states",
		},
		{
			Name: "pdf", DisplayName: "PDF Tools",
			Description: "Extract text, get info, and render pages from PDF files",
		},
		{
			Name: "scheduled_tasks", DisplayName: "Scheduled Tasks",
			Description: "Create, list, run, update, and delete scheduled tasks",
		},
		{
			Name: "js_tool_management", DisplayName: "JS Tool Management", Role: RoleAdmin,
			Description: "Create, list, update, and delete user JavaScript tools",
		},
		{
			Name: "google_gmail", DisplayName: "Google Gmail",
			Description: "Email management: search, read, send, draft, label, archive, and manage Gmail messages",
		},
		{
			Name: "google_gmail_settings", DisplayName: "Google Gmail Settings",
			Description: "Gmail settings: manage filters, labels, forwarding, signatures, and vacation responders",
		},
		{
			Name: "google_drive", DisplayName: "Google Drive",
			Description: "File storage: list, search, upload, download, share, and manage Google Drive files and folders",
		},
		{
			Name: "google_calendar", DisplayName: "Google Calendar",
			Description: "Calendar management: list, create, update, delete events, and manage Google Calendar",
		},
		{
			Name: "google_contacts", DisplayName: "Google Contacts",
			Description: "Contact management: search, list, create, update, and delete Google Contacts",
		},
		{
			Name: "google_docs", DisplayName: "Google Docs",
			Description: "Document editing: create, read, update, and format Google Docs documents",
		},
		{
			Name: "google_sheets", DisplayName: "Google Sheets",
			Description: "Spreadsheet management: create, read, update cells, format, and manage Google Sheets",
		},
		{
			Name: "google_slides", DisplayName: "Google Slides",
			Description: "Presentation management: create, update, add slides, and manage Google Slides presentations",
		},
		{
			Name: "google_forms", DisplayName: "Google Forms",
			Description: "Form management: create forms, add questions, get responses, and manage Google Forms",
		},
		{
			Name: "google_tasks", DisplayName: "Google Tasks",
			Description: "Task management: list, create, update, complete, and delete Google Tasks",
		},
	}
}
