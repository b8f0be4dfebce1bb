package google

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// world is what an account has. The server's lock guards it.
type world struct {
	email string
	now   func() time.Time
	next  int
	// kept are the documents of each collection, by the id of their parent.
	kept map[string]map[string][]doc
	// single are the documents of which there is one.
	single map[string]doc
	mail   *mailbox
	files  map[string]raw // contents of files in the drive
	cells  map[string]map[string][][]any
}

// collection is a resource of an API whose documents are kept.
type collection struct {
	// key is the parameter that names a document, id the field that has its name.
	key, id string
	// parent is the parameter that names what the documents belong to, if anything,
	// and in the collection of that parent.
	parent, in string
	// list is the field of the documents in the answer to list.
	list string
	// mint begins the ids of new documents.
	mint string
	// shared is the name under which the documents are kept, the resource's if empty.
	shared string
	// check refuses a document that does not hold together.
	check func(d doc) *rejection
	// made completes a new document.
	made func(w *world, c *call, d doc)
}

// collections are the resources that are kept as they are written.
var collections = map[string]collection{
	"tasks.tasklists":                          {key: "tasklist", id: "id", list: "items", mint: "list"},
	"tasks.tasks":                              {key: "task", id: "id", parent: "tasklist", in: "tasks.tasklists", list: "items", mint: "task", made: madeTask},
	"calendar.calendarList":                    {key: "calendarId", id: "id", list: "items", mint: "calendar", shared: "calendars"},
	"calendar.calendars":                       {key: "calendarId", id: "id", list: "items", mint: "calendar", shared: "calendars", made: madeCalendar},
	"calendar.events":                          {key: "eventId", id: "id", parent: "calendarId", in: "calendars", list: "items", mint: "event", check: checkEvent, made: madeEvent},
	"gmail.users.labels":                       {key: "id", id: "id", list: "labels", mint: "Label_", made: madeLabel},
	"gmail.users.settings.filters":             {key: "id", id: "id", list: "filter", mint: "filter"},
	"gmail.users.settings.forwardingAddresses": {key: "forwardingEmail", id: "forwardingEmail", list: "forwardingAddresses", made: madeForwarding},
	"gmail.users.settings.sendAs":              {key: "sendAsEmail", id: "sendAsEmail", list: "sendAs"},
	"gmail.users.settings.delegates":           {key: "delegateEmail", id: "delegateEmail", list: "delegates"},
	"drive.files":                              {key: "fileId", id: "id", list: "files", mint: "file", made: madeFile},
	"drive.permissions":                        {key: "permissionId", id: "id", parent: "fileId", in: "drive.files", list: "permissions", mint: "permission", made: madePermission},
	"docs.documents":                           {key: "documentId", id: "documentId", mint: "doc", made: madeDocument},
	"slides.presentations":                     {key: "presentationId", id: "presentationId", mint: "slides", made: madePresentation},
	"sheets.spreadsheets":                      {key: "spreadsheetId", id: "spreadsheetId", mint: "sheet", made: madeSpreadsheet},
	"forms.forms":                              {key: "formId", id: "formId", mint: "form", made: madeForm},
	"forms.forms.responses":                    {key: "responseId", id: "responseId", parent: "formId", in: "forms.forms", list: "responses"},
}

// singles are the methods that read and write a document of which there is one.
var singles = map[string]string{
	"gmail.users.settings.getVacation": "vacation", "gmail.users.settings.updateVacation": "vacation",
	"gmail.users.settings.getImap": "imap", "gmail.users.settings.updateImap": "imap",
	"gmail.users.settings.getLanguage": "language", "gmail.users.settings.updateLanguage": "language",
	"gmail.users.settings.getAutoForwarding": "forwarding", "gmail.users.settings.updateAutoForwarding": "forwarding",
}

// special are the methods that do more than keep a document.
var special = map[string]func(*world, *call) (any, *rejection){
	"gmail.users.messages.list":            (*world).listMessages,
	"gmail.users.messages.get":             (*world).getMessage,
	"gmail.users.messages.modify":          (*world).modifyMessage,
	"gmail.users.messages.trash":           (*world).trashMessage,
	"gmail.users.messages.untrash":         (*world).untrashMessage,
	"gmail.users.messages.batchModify":     (*world).batchModify,
	"gmail.users.messages.send":            (*world).sendMessage,
	"gmail.users.messages.attachments.get": (*world).getAttachment,
	"gmail.users.threads.list":             (*world).listThreads,
	"gmail.users.threads.get":              (*world).getThread,
	"gmail.users.threads.modify":           (*world).modifyThread,
	"gmail.users.drafts.list":              (*world).listDrafts,
	"gmail.users.drafts.get":               (*world).getDraft,
	"gmail.users.drafts.create":            (*world).createDraft,
	"gmail.users.drafts.delete":            (*world).deleteDraft,
	"gmail.users.drafts.send":              (*world).sendDraft,
	"gmail.users.history.list":             (*world).history,
	"gmail.users.getProfile":               (*world).profile,
	"calendar.events.list":                 (*world).listEvents,
	"calendar.events.instances":            (*world).listInstances,
	"calendar.events.quickAdd":             (*world).quickAdd,
	"calendar.freebusy.query":              (*world).freeBusy,
	"sheets.spreadsheets.values.get":       (*world).readCells,
	"sheets.spreadsheets.values.update":    (*world).writeCells,
	"sheets.spreadsheets.values.append":    (*world).appendCells,
	"sheets.spreadsheets.values.clear":     (*world).clearCells,
	"sheets.spreadsheets.batchUpdate":      (*world).updateSpreadsheet,
	"docs.documents.batchUpdate":           (*world).updateDocument,
	"slides.presentations.batchUpdate":     (*world).updatePresentation,
	"forms.forms.batchUpdate":              (*world).updateForm,
	"drive.files.list":                     (*world).listFiles,
	"drive.files.get":                      (*world).getFile,
	"drive.files.copy":                     (*world).copyFile,
	"drive.files.export":                   (*world).exportFile,
	"people.people.connections.list":       (*world).listContacts,
	"people.people.searchContacts":         (*world).searchContacts,
	"people.people.searchDirectoryPeople":  (*world).searchDirectory,
	"people.people.get":                    (*world).getContact,
	"people.people.createContact":          (*world).createContact,
	"people.people.updateContact":          (*world).updateContact,
	"people.people.deleteContact":          (*world).deleteContact,
	"oauth2.userinfo.get":                  (*world).userinfo,
}

// answer carries out a request.
func (w *world) answer(c *call) (any, *rejection) {
	if f := special[c.id]; f != nil {
		return f(w, c)
	}
	if name, ok := singles[c.id]; ok {
		if c.method.HTTP == "PUT" {
			w.single[name] = clone(c.body)
		}
		return clone(w.single[name]), nil
	}
	resource, verb, ok := cutLast(c.id, ".")
	if kept, known := collections[resource]; ok && known {
		if kept.shared != "" {
			resource = kept.shared
		}
		if answer, rej, done := w.keep(c, resource, kept, verb); done {
			return answer, rej
		}
	}
	return c.sample(), nil
}

// mint makes a new id.
func (w *world) mint(kind string) string {
	w.next++
	return kind + strconv.Itoa(w.next)
}

// keep carries out the usual verbs of a collection.
func (w *world) keep(c *call, resource string, k collection, verb string) (any, *rejection, bool) {
	parent := w.alias(k.parent, c.vars[k.parent])
	if k.parent != "" {
		if _, ok := w.find(k.in, "", parent); !ok {
			return nil, missing(parent), true
		}
	}
	id := w.alias(k.key, c.vars[k.key])
	old, found := w.find(resource, parent, id)
	switch verb {
	case "list":
		answer, rej := c.page(k.list, w.kept[resource][parent])
		return answer, rej, true
	case "insert", "create":
		d, rej := w.insert(c, resource, parent, k)
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
		c.move(old)
	case http.MethodPut:
		fresh := clone(c.body)
		fresh[k.id] = old[k.id]
		maps.DeleteFunc(old, func(string, any) bool { return true })
		maps.Copy(old, fresh)
	case http.MethodDelete:
		w.remove(resource, parent, id)
		return c.nothing(), nil, true
	}
	return clone(old), nil, true
}

// move puts a file of the drive into other folders.
func (c *call) move(file doc) {
	if c.id != "drive.files.update" {
		return
	}
	parents := slices.DeleteFunc(slices.Clone(list(file["parents"])), func(p any) bool {
		return slices.Contains(strings.Split(c.query.Get("removeParents"), ","), fmt.Sprint(p))
	})
	for p := range strings.SplitSeq(c.query.Get("addParents"), ",") {
		if p != "" {
			parents = append(parents, p)
		}
	}
	file["parents"] = parents
}

// nothing is the answer to a deletion: an empty body, or an empty object.
func (c *call) nothing() any {
	if c.method.Answer == "" {
		return nil
	}
	return doc{}
}

func (w *world) insert(c *call, resource, parent string, k collection) (any, *rejection) {
	d := clone(c.body)
	if d[k.id] == nil || k.mint != "" {
		d[k.id] = w.mint(k.mint)
	}
	id := fmt.Sprint(d[k.id])
	if _, taken := w.find(resource, parent, id); taken {
		return nil, &rejection{status: 409, message: "The requested identifier already exists: " + id, reason: "duplicate"}
	}
	if k.check != nil {
		if rej := k.check(d); rej != nil {
			return nil, rej
		}
	}
	if k.made != nil {
		k.made(w, c, d)
	}
	w.put(resource, parent, d)
	return clone(d), nil
}

func (w *world) put(resource, parent string, d doc) {
	if w.kept[resource] == nil {
		w.kept[resource] = map[string][]doc{}
	}
	w.kept[resource][parent] = append(w.kept[resource][parent], d)
}

// idOf is the field with the name of a document of a resource.
func idOf(resource string) string {
	for name, k := range collections {
		if name == resource || k.shared == resource {
			return k.id
		}
	}
	return "id"
}

func (w *world) find(resource, parent, id string) (doc, bool) {
	field := idOf(resource)
	for _, d := range w.kept[resource][parent] {
		if d[field] == id {
			return d, true
		}
	}
	return nil, false
}

func (w *world) remove(resource, parent, id string) {
	field := idOf(resource)
	w.kept[resource][parent] = slices.DeleteFunc(w.kept[resource][parent], func(d doc) bool { return d[field] == id })
}

// alias resolves the names that stand for an id.
func (w *world) alias(key, id string) string {
	switch {
	case key == "calendarId" && id == "primary":
		return w.email
	case key == "tasklist" && id == "@default":
		return "list-home"
	case key == "fileId" && id == "root":
		return "root"
	}
	return id
}

// merge changes a document by RFC 7396: what is null goes.
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

// page is one page of a list, as the request wants it.
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
		delete(answer, field) // Google leaves out what is empty.
	}
	if end < len(all) {
		answer["nextPageToken"] = strconv.Itoa(end)
	}
	return answer, nil
}
