package google

import (
	"fmt"
	"strings"
	"time"
)

// spamEmails is the number of emails in the spam folder.
const spamEmails = 61

// seedEmail is an email of the initial content.
type seedEmail struct {
	id, thread, from, subject, body string
	labels                          []string
}

func (m *mailbox) seed() {
	inbox, unread := []string{"INBOX"}, []string{"INBOX", "UNREAD"}
	letters := []seedEmail{
		{"m-1", "t-1", "Bob Builder <bob@example.com>", "Lunch on Thursday?", "Shall we meet at noon?\nBob", unread},
		{"m-2", "t-2", "Grace Hopper <grace@example.com>", "Quarterly report", "Please have a look at the numbers.", []string{"INBOX", "Label_1"}},
		{"m-3", "t-2", "Ada <" + m.email + ">", "Re: Quarterly report", "They look good to me.", []string{"SENT"}},
		{"m-4", "t-3", "Zoë Müller <zoe@example.com>", "Rechnung für März – bitte prüfen", "", unread},
		{"m-5", "t-4", "Airline <noreply@airline.example>", "Your boarding pass", "Gate B12, seat 4A.", []string{"INBOX", "STARRED", "Label_2"}},
		{"m-6", "t-5", "News <news@example.org>", "Weekly digest", "", inbox},
		{"m-7", "t-6", "山田太郎 <yamada@example.jp>", "会議の件", "来週の会議についてご連絡します。", unread},
		{"m-8", "t-7", "Old Friend <old@example.net>", "Long ago", "Do you remember?", []string{"TRASH"}},
	}
	for i := range spamEmails {
		n := i + 1
		letters = append(letters, seedEmail{
			fmt.Sprintf("s-%d", n), fmt.Sprintf("st-%d", n), fmt.Sprintf("Prize %d <win%d@spam.example>", n, n),
			fmt.Sprintf("You have won no. %d", n), "Click here at once.",
			[]string{"SPAM", "UNREAD"},
		})
	}
	begin := m.now().Add(-48 * time.Hour)
	for i, s := range letters {
		m.deliver(m.newEmail(s, begin.Add(time.Duration(i)*time.Minute)))
	}
	unfinished := seedEmail{"m-draft", "t-draft", "Ada <" + m.email + ">", "Ideas", "Unfinished.", []string{"DRAFT"}}
	m.drafts = append(m.drafts, &draft{id: "draft-1", email: m.newEmail(unfinished, begin)})
}

// newEmail returns an initial email. The two emails that are not plain text have their own bodies.
func (m *mailbox) newEmail(s seedEmail, at time.Time) *email {
	content := "Content-Type: text/plain; charset=utf-8\r\n\r\n" + s.body
	switch s.id {
	case "m-4":
		content = invoice
	case "m-6":
		content = digest
	}
	to := m.email
	if strings.Contains(s.from, m.email) {
		to = "grace@example.com"
	}
	raw := fmt.Sprintf("From: %s\r\nTo: %s\r\nSubject: %s\r\nDate: %s\r\nMessage-ID: <%s@mail.example.com>\r\n%s",
		s.from, to, s.subject, at.Format(time.RFC1123Z), s.id, content)
	l, err := m.parseEmail(s.id, []byte(raw), s.thread, s.labels...)
	if err != nil {
		return &email{id: s.id, thread: s.thread, labels: s.labels, payload: doc{}}
	}
	l.received = at
	return l
}

const invoice = "MIME-Version: 1.0\r\nReply-To: Buchhaltung <rechnung@example.com>\r\nContent-Type: multipart/mixed; boundary=b1\r\n\r\n" +
	"--b1\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nAnbei die Rechnung.\r\n" +
	"--b1\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename*=UTF-8''Rechnung%20M%C3%A4rz.pdf\r\n" +
	"Content-Transfer-Encoding: base64\r\n\r\nJVBERi0xLjQKJSBSZWNobnVuZwo=\r\n--b1--\r\n"

const digest = "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b1\r\n\r\n" +
	"--b1\r\nContent-Type: multipart/related; boundary=b2\r\n\r\n" +
	"--b2\r\nContent-Type: multipart/alternative; boundary=b3\r\n\r\n" +
	"--b3\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nThe digest as text.\r\n" +
	"--b3\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>The digest as <b>HTML</b>.</p>\r\n--b3--\r\n--b2--\r\n--b1--\r\n"

func (g *gmail) seed() {
	for _, id := range []string{
		"INBOX", "SENT", "DRAFT", "SPAM", "TRASH", "UNREAD", "STARRED", "IMPORTANT", "CHAT", "CATEGORY_PERSONAL",
		"CATEGORY_SOCIAL", "CATEGORY_PROMOTIONS", "CATEGORY_UPDATES", "CATEGORY_FORUMS",
	} {
		g.labels.add("", doc{"id": id, "name": id, "type": "system"})
	}
	g.labels.add("", doc{"id": "Label_1", "name": "Work", "type": "user"}, doc{"id": "Label_2", "name": "Travel/2026", "type": "user"})
	g.settings = map[string]doc{
		"vacation":   {"enableAutoReply": false, "responseSubject": "Away", "responseBodyHtml": "<p>Back soon.</p>", "restrictToContacts": true},
		"imap":       {"enabled": true, "autoExpunge": true, "expungeBehavior": "archive", "maxFolderSize": 0},
		"language":   {"displayLanguage": "en"},
		"forwarding": {"enabled": false},
	}
	g.filters.add("", doc{
		"id": "filter-1", "criteria": doc{"from": "noreply@airline.example"}, "action": doc{"addLabelIds": []any{"Label_2"}},
	})
	g.forwarding.add("", doc{"forwardingEmail": "backup@example.com", "verificationStatus": "accepted"})
	g.senders.add("", doc{
		"sendAsEmail": g.box.email, "displayName": "Ada", "isDefault": true, "isPrimary": true, "signature": "<b>Ada</b>",
	})
	g.delegates.add("", doc{"delegateEmail": "bob@example.com", "verificationStatus": "accepted"})
}

func (cal *calendar) seed() {
	cal.calendars.add("", doc{
		"kind": "calendar#calendarListEntry", "id": cal.email, "summary": cal.email, "timeZone": "Europe/Berlin",
		"accessRole": "owner", "primary": true,
	})
	cal.calendars.add("", doc{
		"kind": "calendar#calendarListEntry", "id": "calendar-team", "summary": "Team", "timeZone": "UTC", "accessRole": "writer",
	})
	day := cal.now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
	at := func(hours int) doc {
		return doc{"dateTime": day.Add(time.Duration(hours) * time.Hour).Format(time.RFC3339), "timeZone": "Europe/Berlin"}
	}
	events := []doc{
		{"id": "event-standup", "summary": "Stand-up", "start": at(9), "end": at(10), "recurrence": []any{"RRULE:FREQ=WEEKLY"}},
		{
			"id": "event-lunch", "summary": "Lunch with Bob", "location": "Trattoria", "start": at(12), "end": at(13),
			"attendees": []any{doc{"email": "bob@example.com", "responseStatus": "accepted"}, doc{"email": cal.email}},
		},
		{
			"id": "event-holiday", "summary": "Holiday", "start": doc{"date": day.AddDate(0, 0, 2).Format(time.DateOnly)},
			"end": doc{"date": day.AddDate(0, 0, 3).Format(time.DateOnly)},
		},
	}
	for _, e := range events {
		cal.completeEvent(nil, e)
		cal.events.add(cal.email, e)
	}
}

func (e *editors) seed() {
	notes := doc{"documentId": "doc-notes", "title": "Notes"}
	setText(notes, "Notes of the meeting\nAda writes them.\n")
	e.documents.add("", notes)
	slide := func(id, title string) doc {
		return doc{"objectId": id, "slideProperties": doc{"layoutObjectId": "layout-1"}, "pageElements": []any{doc{
			"objectId": id + "-title", "shape": doc{"shapeType": "TEXT_BOX", "text": doc{"textElements": []any{doc{"textRun": doc{"content": title + "\n"}}}}},
		}}}
	}
	e.presentations.add("", doc{
		"presentationId": "slides-pitch", "title": "Pitch", "slides": []any{slide("slide-1", "Why"), slide("slide-2", "How")},
	})
	form := doc{"formId": "form-survey", "info": doc{"title": "Survey", "description": "How was it?"}, "items": []any{doc{
		"itemId": "item-1", "title": "Rating", "questionItem": doc{"question": doc{
			"questionId": "question-1", "required": true,
			"choiceQuestion": doc{"type": "RADIO", "options": []any{doc{"value": "Good"}, doc{"value": "Bad"}}},
		}},
	}}}
	completeForm(nil, form)
	form["publishSettings"] = doc{"publishState": doc{"isPublished": true, "isAcceptingResponses": true}}
	e.forms.add("", form)
	for i, answer := range []string{"Good", "Bad"} {
		e.responses.add("form-survey", doc{
			"responseId": fmt.Sprintf("response-%d", i+1), "createTime": e.timestamp(), "lastSubmittedTime": e.timestamp(),
			"answers": doc{"question-1": doc{"questionId": "question-1", "textAnswers": doc{"answers": []any{doc{"value": answer}}}}},
		})
	}
}

func (s *sheets) seed() {
	budget := doc{"spreadsheetId": "sheet-budget", "properties": doc{"title": "Budget 2026", "timeZone": "Europe/Berlin"}, "sheets": []any{
		doc{"properties": doc{"title": "Budget"}}, doc{"properties": doc{"title": "Log"}},
	}}
	s.completeSpreadsheet(nil, budget)
	s.cells["sheet-budget"]["Budget"] = [][]any{{"Item", "Cost"}, {"Rent", "1200"}, {"Food", "400"}, {"Travel", "150"}}
	s.spreadsheets.add("", budget)
}

func (dr *drive) seed() {
	file := func(id, name, mime, parent string) doc {
		d := doc{
			"kind": "drive#file", "id": id, "name": name, "mimeType": mime, "parents": []any{parent}, "trashed": false,
			"createdTime": dr.timestamp(), "modifiedTime": dr.timestamp(), "webViewLink": "https://drive.google.com/file/d/" + id + "/view",
		}
		dr.own(d)
		dr.files.add("", d)
		return d
	}
	const apps = "application/vnd.google-apps."
	file("root", "My Drive", apps+"folder", "")
	file("folder-reports", "Reports", apps+"folder", "root")
	file("file-report", "report.pdf", "application/pdf", "folder-reports")["size"] = "20"
	file("doc-notes", "Notes", apps+"document", "root")
	file("sheet-budget", "Budget 2026", apps+"spreadsheet", "root")
	file("slides-pitch", "Pitch", apps+"presentation", "root")
	file("form-survey", "Survey", apps+"form", "root")
	shared := file("file-shared", "Bob's plan.txt", "text/plain", "root")
	shared["owners"] = []any{doc{"kind": "drive#user", "displayName": "Bob Builder", "emailAddress": "bob@example.com", "me": false}}
	shared["ownedByMe"], shared["shared"] = false, true
	// developers.google.com/workspace/drive/api/guides/shortcuts
	file("shortcut-report", "The report", apps+"shortcut", "folder-reports")["shortcutDetails"] = doc{"targetId": "file-report", "targetMimeType": "application/pdf"}
	dr.contents["file-report"] = rawResponse{"application/pdf", []byte("%PDF-1.4\n% Report 1\n")}
	dr.contents["file-shared"] = rawResponse{"text/plain", []byte("The plan.\n")}
	dr.permissions.add("file-shared", doc{"id": "permission-1", "type": "user", "role": "owner", "emailAddress": "bob@example.com", "displayName": "Bob Builder"})
}

func (b *addressBook) seed() {
	for i, p := range []struct{ given, family, email, phone string }{
		{"Bob", "Builder", "bob@example.com", "+1 555 0100"},
		{"Zoë", "Müller", "zoe@example.com", "+49 30 123456"},
		{"Grace", "Hopper", "grace@example.com", "+1 555 0199"},
	} {
		d := doc{
			"resourceName": fmt.Sprintf("people/c%d", i+1), "etag": fmt.Sprintf("etag%d", i+1),
			"names":          []any{doc{"givenName": p.given, "familyName": p.family}},
			"emailAddresses": []any{doc{"value": p.email, "type": "home"}, doc{"value": "work." + p.email, "type": "work"}},
			"phoneNumbers":   []any{doc{"value": p.phone, "type": "mobile"}},
			"organizations":  []any{doc{"name": "Example Ltd", "title": "Engineer"}},
		}
		setDisplayNames(d)
		b.people.add("", d)
	}
}

func (t *tasks) seed() {
	for _, l := range []doc{{"id": "list-home", "title": "Home"}, {"id": "list-work", "title": "Work"}} {
		l["kind"], l["updated"] = "tasks#taskList", t.timestamp()
		t.lists.add("", l)
	}
	for _, one := range []doc{
		{"id": "task-milk", "title": "Buy milk"},
		{"id": "task-rent", "title": "Pay the rent", "due": "2026-12-01T00:00:00.000Z", "notes": "By transfer"},
		{"id": "task-done", "title": "Call Bob", "status": "completed", "completed": t.timestamp()},
	} {
		if one["status"] == nil {
			one["status"] = "needsAction"
		}
		one["kind"], one["updated"] = "tasks#task", t.timestamp()
		t.tasks.add("list-home", one)
	}
	t.tasks.add("list-work", doc{"id": "task-report", "title": "Write the report", "status": "needsAction"})
}
