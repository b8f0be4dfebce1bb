package google

import (
	"maps"
	"strconv"
	"time"
)

// owner is what the services of an account share: the address, the clock and the id counter.
type owner struct {
	email string
	now   func() time.Time
	next  int
}

// mint makes a new id.
func (o *owner) mint(kind string) string {
	o.next++
	return kind + strconv.Itoa(o.next)
}

// stamp returns the current time in the services' format.
func (o *owner) stamp() string { return o.now().UTC().Format(time.RFC3339) }

// alias resolves names that stand for an id.
func (o *owner) alias(key, id string) string {
	switch {
	case key == "calendarId" && id == "primary":
		return o.email
	case key == "tasklist" && id == "@default":
		return "list-home"
	}
	return id
}

// userinfo returns the owner of the token.
func (o *owner) userinfo(*call) (any, *rejection) {
	return doc{"id": "1", "email": o.email, "verified_email": true, "name": o.email}, nil
}

// handler answers a request to one method.
type handler = func(*call) (any, *rejection)

// offer is what a service implements, by the contract's ids: methods of its own, and collections
// with the usual verbs.
type offer struct {
	methods     map[string]handler
	collections map[string]collection
}

// world has the services of an account with their data, guarded by the server's lock.
type world struct {
	owner *owner
	mail  *mailbox
	offer
}

// newWorld makes the initial data of an account.
func newWorld(email string, now func() time.Time) *world {
	o := &owner{email: email, now: now, next: 100}
	mail, documents := newMailbox(o), newShelf("documentId")
	w := &world{o, mail, offer{map[string]handler{"oauth2.userinfo.get": o.userinfo}, map[string]collection{}}}
	for _, service := range []offer{
		newGmail(mail), newCalendar(o), newEditors(o, documents), newSheets(o), newDrive(o, documents), newAddressBook(o), newTasks(o),
	} {
		maps.Copy(w.methods, service.methods)
		maps.Copy(w.collections, service.collections)
	}
	return w
}

// answer runs a request.
func (w *world) answer(c *call) (any, *rejection) {
	if f := w.methods[c.id]; f != nil {
		return f(c)
	}
	resource, verb, _ := cutLast(c.id, ".")
	if k, ok := w.collections[resource]; ok {
		if answer, rej, done := k.answer(w.owner, c, verb); done {
			return answer, rej
		}
	}
	return c.sample(), nil
}
