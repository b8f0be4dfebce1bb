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
			Description: "Set up this bot: providers, models, agents, settings, environment variables, tool switches",
		},
		{
			Name: "pdf", DisplayName: "PDF Tools",
			Description: "PDF files: properties, text, page images",
		},
		{
			Name: "scheduled_tasks", DisplayName: "Scheduled Tasks",
			Description: "Plan tasks for later or repeating times and manage them",
		},
		{
			Name: "js_tool_management", DisplayName: "JS Tool Management", Role: RoleAdmin,
			Description: "Write and manage user tools in JavaScript",
		},
		{
			Name: "google_gmail", DisplayName: "Google Gmail",
			Description: "Email: search, read, send, reply, draft, label, archive, trash",
		},
		{
			Name: "google_gmail_settings", DisplayName: "Google Gmail Settings",
			Description: "Email settings: vacation reply, filters, forwarding, IMAP, language",
		},
		{
			Name: "google_drive", DisplayName: "Google Drive",
			Description: "Files: search, upload, download, export, organize, share",
		},
		{
			Name: "google_calendar", DisplayName: "Google Calendar",
			Description: "Events and calendars: find, create, change, delete, respond, free times",
		},
		{
			Name: "google_contacts", DisplayName: "Google Contacts",
			Description: "Contacts: search, create, update, delete; company directory",
		},
		{
			Name: "google_docs", DisplayName: "Google Docs",
			Description: "Documents: create, read, write and format text",
		},
		{
			Name: "google_sheets", DisplayName: "Google Sheets",
			Description: "Spreadsheets: create, read, write and format cells",
		},
		{
			Name: "google_slides", DisplayName: "Google Slides",
			Description: "Presentations: create, read and edit slides",
		},
		{
			Name: "google_forms", DisplayName: "Google Forms",
			Description: "Forms: create, add questions, read responses",
		},
		{
			Name: "google_tasks", DisplayName: "Google Tasks",
			Description: "To-do lists: create, update, complete, delete tasks",
		},
	}
}
