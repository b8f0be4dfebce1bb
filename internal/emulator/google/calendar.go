package google

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// calendar emulates the calendars of an account and their events.
type calendar struct {
	*owner
	calendars, events *shelf
}

func newCalendar(o *owner) offer {
	cal := &calendar{o, newShelf("id"), newShelf("id")}
	cal.seed()
	entry := collection{shelf: cal.calendars, key: "calendarId", list: "items", mint: "calendar"}
	full := entry
	full.made, full.shown = madeCalendar, showCalendar
	return offer{map[string]handler{
		"calendar.events.list":      cal.listEvents,
		"calendar.events.instances": cal.listInstances,
		"calendar.events.quickAdd":  cal.quickAdd,
		"calendar.freebusy.query":   cal.freeBusy,
	}, map[string]collection{
		"calendar.calendarList": entry,
		"calendar.calendars":    full,
		"calendar.events": {
			shelf: cal.events, key: "eventId", parent: "calendarId", in: cal.calendars, list: "items", mint: "event",
			check: checkEvent, made: cal.made,
		},
	}}
}

func madeCalendar(_ *call, d doc) {
	if d["timeZone"] == nil {
		d["timeZone"] = "UTC"
	}
	d["kind"], d["accessRole"] = "calendar#calendarListEntry", "owner"
}

// showCalendar turns a list entry into a calendar: access rights belong to the entry.
func showCalendar(d doc) {
	d["kind"] = "calendar#calendar"
	delete(d, "accessRole")
	delete(d, "primary")
}

// made completes a new event.
func (cal *calendar) made(_ *call, d doc) {
	d["kind"], d["status"], d["created"] = "calendar#event", "confirmed", cal.stamp()
	d["htmlLink"] = fmt.Sprintf("https://www.google.com/calendar/event?eid=%v", d["id"])
	d["organizer"] = doc{"email": cal.email, "self": true}
	for _, a := range list(d["attendees"]) {
		guest, ok := a.(doc)
		if !ok {
			continue
		}
		if guest["responseStatus"] == nil {
			guest["responseStatus"] = "needsAction"
		}
		if guest["email"] == cal.email {
			guest["self"] = true
		}
	}
}

// moment returns the time of a start or an end.
func moment(v any) time.Time {
	d, _ := v.(doc)
	if t, err := time.Parse(time.RFC3339, fmt.Sprint(d["dateTime"])); err == nil {
		return t
	}
	t, err := time.Parse(time.DateOnly, fmt.Sprint(d["date"]))
	if err != nil {
		return time.Time{}
	}
	return t
}

// checkEvent refuses inconsistent times.
func checkEvent(d doc) *rejection {
	start, _ := d["start"].(doc)
	end, _ := d["end"].(doc)
	if start == nil || end == nil {
		return invalid("Missing end time.")
	}
	if (start["date"] != nil) != (end["date"] != nil) || start["date"] != nil && start["dateTime"] != nil || end["date"] != nil && end["dateTime"] != nil {
		return invalid("Invalid start time.")
	}
	if moment(end).Before(moment(start)) {
		return &rejection{status: 400, message: "The specified time range is empty.", reason: "timeRangeEmpty"}
	}
	return nil
}

// window parses the bounds of a list.
func (c *call) window() func(doc) bool {
	from, fromErr := time.Parse(time.RFC3339, c.query.Get("timeMin"))
	to, toErr := time.Parse(time.RFC3339, c.query.Get("timeMax"))
	return func(d doc) bool {
		return (fromErr != nil || moment(d["end"]).After(from)) && (toErr != nil || moment(d["start"]).Before(to))
	}
}

func (cal *calendar) listEvents(c *call) (any, *rejection) {
	id := cal.alias("calendarId", c.vars["calendarId"])
	calendar, ok := cal.calendars.find("", id)
	if !ok {
		return nil, missing(id)
	}
	if c.query.Get("orderBy") == "startTime" && c.query.Get("singleEvents") != "true" {
		return nil, invalid("The requested ordering is not available for the particular query.")
	}
	within := c.window()
	var hits []doc
	for _, e := range cal.events.docs[id] {
		text := strings.ToLower(fmt.Sprint(e["summary"], e["description"], e["location"], e["attendees"]))
		if within(e) && strings.Contains(text, strings.ToLower(c.query.Get("q"))) {
			hits = append(hits, e)
		}
	}
	slices.SortStableFunc(hits, func(a, b doc) int { return moment(a["start"]).Compare(moment(b["start"])) })
	answer, rej := c.page("items", hits)
	if d, ok := answer.(doc); ok {
		d["kind"], d["summary"], d["timeZone"] = "calendar#events", calendar["summary"], calendar["timeZone"]
	}
	return answer, rej
}

// listInstances repeats a recurring event weekly.
func (cal *calendar) listInstances(c *call) (any, *rejection) {
	id := cal.alias("calendarId", c.vars["calendarId"])
	event, ok := cal.events.find(id, c.vars["eventId"])
	if !ok {
		return nil, missing(c.vars["eventId"])
	}
	within := c.window()
	var hits []doc
	for i := range 10 {
		one := clone(event)
		delete(one, "recurrence")
		at := moment(event["start"]).AddDate(0, 0, 7*i)
		one["start"] = doc{"dateTime": at.Format(time.RFC3339)}
		one["end"] = doc{"dateTime": moment(event["end"]).AddDate(0, 0, 7*i).Format(time.RFC3339)}
		one["id"] = fmt.Sprintf("%v_%s", event["id"], at.UTC().Format("20060102T150405Z"))
		one["recurringEventId"] = event["id"]
		if within(one) {
			hits = append(hits, one)
		}
	}
	return c.page("items", hits)
}

// quickAdd uses the whole text as title, and tomorrow at nine as time.
func (cal *calendar) quickAdd(c *call) (any, *rejection) {
	id := cal.alias("calendarId", c.vars["calendarId"])
	if _, ok := cal.calendars.find("", id); !ok {
		return nil, missing(id)
	}
	at := cal.now().UTC().Truncate(24 * time.Hour).Add(33 * time.Hour)
	d := doc{
		"id": cal.mint("event"), "summary": c.query.Get("text"),
		"start": doc{"dateTime": at.Format(time.RFC3339)}, "end": doc{"dateTime": at.Add(time.Hour).Format(time.RFC3339)},
	}
	cal.made(c, d)
	cal.events.put(id, d)
	return clone(d), nil
}

func (cal *calendar) freeBusy(c *call) (any, *rejection) {
	from, err := time.Parse(time.RFC3339, fmt.Sprint(c.body["timeMin"]))
	to, err2 := time.Parse(time.RFC3339, fmt.Sprint(c.body["timeMax"]))
	if err != nil || err2 != nil || !from.Before(to) {
		return nil, invalid("The specified time range is empty.")
	}
	calendars := doc{}
	for _, item := range list(c.body["items"]) {
		name := fmt.Sprint(item.(doc)["id"])
		id := cal.alias("calendarId", name)
		if _, ok := cal.calendars.find("", id); !ok {
			calendars[name] = doc{"errors": []any{doc{"domain": "global", "reason": "notFound"}}, "busy": []any{}}
			continue
		}
		busy := []any{}
		for _, e := range cal.events.docs[id] {
			if moment(e["end"]).After(from) && moment(e["start"]).Before(to) {
				busy = append(busy, doc{
					"start": moment(e["start"]).UTC().Format(time.RFC3339), "end": moment(e["end"]).UTC().Format(time.RFC3339),
				})
			}
		}
		calendars[name] = doc{"busy": busy}
	}
	return doc{"kind": "calendar#freeBusy", "timeMin": c.body["timeMin"], "timeMax": c.body["timeMax"], "calendars": calendars}, nil
}
