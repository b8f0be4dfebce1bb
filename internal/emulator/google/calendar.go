package google

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// calendar emulates the calendars of an account and their events.
type calendar struct {
	*account
	calendars, events *store
}

func newCalendar(o *account) implementation {
	cal := &calendar{o, newStore("id"), newStore("id")}
	cal.seed()
	entry := collection{store: cal.calendars, idParam: "calendarId", listField: "items", idPrefix: "calendar"}
	full := entry
	full.onCreate, full.hideFields = completeCalendar, asCalendar
	return implementation{map[string]handler{
		"calendar.events.list":      cal.listEvents,
		"calendar.events.instances": cal.listInstances,
		"calendar.events.quickAdd":  cal.quickAddEvent,
		"calendar.freebusy.query":   cal.queryFreeBusy,
	}, map[string]collection{
		"calendar.calendarList": entry,
		"calendar.calendars":    full,
		"calendar.events": {
			store: cal.events, idParam: "eventId", parentParam: "calendarId", parents: cal.calendars, listField: "items", idPrefix: "event",
			check: checkEvent, onCreate: cal.completeEvent,
		},
	}}
}

func completeCalendar(_ *call, d doc) {
	if d["timeZone"] == nil {
		d["timeZone"] = "UTC"
	}
	d["kind"], d["accessRole"] = "calendar#calendarListEntry", "owner"
}

// asCalendar turns an entry of the calendar list into a calendar, which has no access rights.
func asCalendar(d doc) {
	d["kind"] = "calendar#calendar"
	delete(d, "accessRole")
	delete(d, "primary")
}

// completeEvent fills in the fields of a new event that the server sets.
func (cal *calendar) completeEvent(_ *call, d doc) {
	d["kind"], d["status"], d["created"] = "calendar#event", "confirmed", cal.timestamp()
	d["htmlLink"] = fmt.Sprintf("https://www.google.com/calendar/event?eid=%v", d["id"])
	d["organizer"] = doc{"email": cal.email, "self": true}
	for _, a := range asList(d["attendees"]) {
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

// parseTime returns the time of an event's start or end, or the zero time if it is invalid.
func parseTime(v any) time.Time {
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

// checkEvent refuses an event with inconsistent times.
func checkEvent(d doc) *rejection {
	start, _ := d["start"].(doc)
	end, _ := d["end"].(doc)
	if start == nil || end == nil {
		return invalidArgument("Missing end time.")
	}
	if (start["date"] != nil) != (end["date"] != nil) || start["date"] != nil && start["dateTime"] != nil || end["date"] != nil && end["dateTime"] != nil {
		return invalidArgument("Invalid start time.")
	}
	if parseTime(end).Before(parseTime(start)) {
		return &rejection{status: 400, message: "The specified time range is empty.", reason: "timeRangeEmpty"}
	}
	return nil
}

// timeFilter returns a filter for the events that overlap the time from timeMin to timeMax.
func (c *call) timeFilter() func(doc) bool {
	from, fromErr := time.Parse(time.RFC3339, c.query.Get("timeMin"))
	to, toErr := time.Parse(time.RFC3339, c.query.Get("timeMax"))
	return func(d doc) bool {
		return (fromErr != nil || parseTime(d["end"]).After(from)) && (toErr != nil || parseTime(d["start"]).Before(to))
	}
}

// Sizes of a page of events (developers.google.com/workspace/calendar/api/v3/reference/events/list).
const (
	defaultEvents = 250
	maxEvents     = 2500
)

func (cal *calendar) listEvents(c *call) (any, *rejection) {
	id := cal.resolveAlias("calendarId", c.vars["calendarId"])
	calendar, ok := cal.calendars.find("", id)
	if !ok {
		return nil, notFound(id)
	}
	if c.query.Get("orderBy") == "startTime" && c.query.Get("singleEvents") != "true" {
		return nil, invalidArgument("The requested ordering is not available for the particular query.")
	}
	within := c.timeFilter()
	var hits []doc
	for _, e := range cal.events.docs[id] {
		text := strings.ToLower(fmt.Sprint(e["summary"], e["description"], e["location"], e["attendees"]))
		if within(e) && strings.Contains(text, strings.ToLower(c.query.Get("q"))) {
			hits = append(hits, e)
		}
	}
	slices.SortStableFunc(hits, func(a, b doc) int { return parseTime(a["start"]).Compare(parseTime(b["start"])) })
	if n, err := strconv.Atoi(c.query.Get("maxResults")); err != nil || n > maxEvents {
		c.query.Set("maxResults", strconv.Itoa(cmp.Or(min(n, maxEvents), defaultEvents)))
	}
	answer, rej := c.page("items", hits)
	if d, ok := answer.(doc); ok {
		d["kind"], d["summary"], d["timeZone"] = "calendar#events", calendar["summary"], calendar["timeZone"]
	}
	return answer, rej
}

// listInstances lists ten instances of a recurring event, as if every event recurred weekly.
func (cal *calendar) listInstances(c *call) (any, *rejection) {
	id := cal.resolveAlias("calendarId", c.vars["calendarId"])
	event, ok := cal.events.find(id, c.vars["eventId"])
	if !ok {
		return nil, notFound(c.vars["eventId"])
	}
	within := c.timeFilter()
	var hits []doc
	for i := range 10 {
		one := clone(event)
		delete(one, "recurrence")
		at := parseTime(event["start"]).AddDate(0, 0, 7*i)
		one["start"] = doc{"dateTime": at.Format(time.RFC3339)}
		one["end"] = doc{"dateTime": parseTime(event["end"]).AddDate(0, 0, 7*i).Format(time.RFC3339)}
		one["id"] = fmt.Sprintf("%v_%s", event["id"], at.UTC().Format("20060102T150405Z"))
		one["recurringEventId"] = event["id"]
		if within(one) {
			hits = append(hits, one)
		}
	}
	return c.page("items", hits)
}

// quickAddEvent uses the whole text as the title, and tomorrow at nine as the time.
func (cal *calendar) quickAddEvent(c *call) (any, *rejection) {
	id := cal.resolveAlias("calendarId", c.vars["calendarId"])
	if _, ok := cal.calendars.find("", id); !ok {
		return nil, notFound(id)
	}
	at := cal.now().UTC().Truncate(24 * time.Hour).Add(33 * time.Hour)
	d := doc{
		"id": cal.newID("event"), "summary": c.query.Get("text"),
		"start": doc{"dateTime": at.Format(time.RFC3339)}, "end": doc{"dateTime": at.Add(time.Hour).Format(time.RFC3339)},
	}
	cal.completeEvent(c, d)
	cal.events.add(id, d)
	return clone(d), nil
}

func (cal *calendar) queryFreeBusy(c *call) (any, *rejection) {
	from, err := time.Parse(time.RFC3339, fmt.Sprint(c.body["timeMin"]))
	to, err2 := time.Parse(time.RFC3339, fmt.Sprint(c.body["timeMax"]))
	if err != nil || err2 != nil || !from.Before(to) {
		return nil, invalidArgument("The specified time range is empty.")
	}
	calendars := doc{}
	for _, item := range asList(c.body["items"]) {
		name := fmt.Sprint(item.(doc)["id"])
		id := cal.resolveAlias("calendarId", name)
		if _, ok := cal.calendars.find("", id); !ok {
			calendars[name] = doc{"errors": []any{doc{"domain": "global", "reason": "notFound"}}, "busy": []any{}}
			continue
		}
		busy := []any{}
		for _, e := range cal.events.docs[id] {
			if parseTime(e["end"]).After(from) && parseTime(e["start"]).Before(to) {
				busy = append(busy, doc{
					"start": parseTime(e["start"]).UTC().Format(time.RFC3339), "end": parseTime(e["end"]).UTC().Format(time.RFC3339),
				})
			}
		}
		calendars[name] = doc{"busy": busy}
	}
	return doc{"kind": "calendar#freeBusy", "timeMin": c.body["timeMin"], "timeMax": c.body["timeMax"], "calendars": calendars}, nil
}
