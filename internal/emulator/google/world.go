package google

import (
	"maps"
	"strconv"
	"time"
)

// account has what the services of an account share: its address, the clock and the id counter.
type account struct {
	email  string
	now    func() time.Time
	lastID int
}

// newID returns a new id that begins with kind.
func (o *account) newID(kind string) string {
	o.lastID++
	return kind + strconv.Itoa(o.lastID)
}

// timestamp returns the current time in the services' format.
func (o *account) timestamp() string { return o.now().UTC().Format(time.RFC3339) }

// resolveAlias returns the id that an alias such as "primary" stands for, and other ids unchanged.
func (o *account) resolveAlias(key, id string) string {
	switch {
	case key == "calendarId" && id == "primary":
		return o.email
	case key == "tasklist" && id == "@default":
		return "list-home"
	}
	return id
}

// getUserinfo returns the user to whom the token belongs.
func (o *account) getUserinfo(*call) (any, *rejection) {
	return doc{"id": "1", "email": o.email, "verified_email": true, "name": o.email}, nil
}

// handler answers a request for one method.
type handler = func(*call) (any, *rejection)

// implementation is the implemented part of a service, by the ids of the contract: single methods, and
// collections with the usual verbs.
type implementation struct {
	methods     map[string]handler
	collections map[string]collection
}

// accountServices has the services of an account with their data. It is guarded by the lock of [Server].
type accountServices struct {
	account *account
	mail    *mailbox
	implementation
}

// newAccountServices returns the initial data of an account.
func newAccountServices(email string, now func() time.Time) *accountServices {
	o := &account{email: email, now: now, lastID: 100}
	mail, documents := newMailbox(o), newStore("documentId")
	all := &accountServices{o, mail, implementation{map[string]handler{"oauth2.userinfo.get": o.getUserinfo}, map[string]collection{}}}
	for _, service := range []implementation{
		newGmail(mail), newCalendar(o), newEditors(o, documents), newSheets(o), newDrive(o, documents), newAddressBook(o), newTasks(o),
	} {
		maps.Copy(all.methods, service.methods)
		maps.Copy(all.collections, service.collections)
	}
	return all
}

// run runs a call. Methods that are not implemented return a sample.
func (a *accountServices) run(c *call) (any, *rejection) {
	if f := a.methods[c.id]; f != nil {
		return f(c)
	}
	resource, verb, _ := cutLast(c.id, ".")
	if k, ok := a.collections[resource]; ok {
		if answer, rej, done := k.runVerb(a.account, c, verb); done {
			return answer, rej
		}
	}
	return c.sampleAnswer(), nil
}
