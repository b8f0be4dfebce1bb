// Package google emulates Google Workspace for tests and the demo: mail, calendar, drive, contacts,
// documents, spreadsheets, slides, forms, tasks and the sign-in.
//
// Methods, paths, parameters and the shapes of bodies are extracted from Google's discovery documents
// (contract.json). Invalid requests are refused as Google refuses them, and responses have the same
// shapes. A method without an implementation returns a sample of its response. Each account has its own
// data, with a type for each service, so that tests can inspect the changes that a tool has made.
//
// Each account begins with: the messages m-1 to m-8 in the threads t-1 to t-7 (m-4 has the attachment
// att-m-4-1, m-6 is deeply nested, m-3 answers m-2), 61 messages s-1 to s-61 in the spam folder, the
// draft draft-1, the labels Label_1 (Work) and Label_2 (Travel/2026), the filter filter-1 and the other
// settings; the calendar of the account and calendar-team with event-standup (every week), event-lunch
// (an invitation) and event-holiday (whole day); the spreadsheet sheet-budget with the sheets Budget and
// Log; the document doc-notes, the presentation slides-pitch (slide-1, slide-2), the form form-survey
// with response-1 and response-2; in the drive these, folder-reports, file-report (a PDF),
// shortcut-report (which leads to it) and file-shared; the contacts people/c1 to people/c3; the lists of
// tasks list-home (task-milk, task-rent, task-done) and list-work (task-report).
package google
