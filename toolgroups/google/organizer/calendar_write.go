package organizer

import (
	"cmp"
	"context"
	"net/mail"
	"strings"
	"time"

	"google.golang.org/api/calendar/v3"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
)

// localTime is the format of a time without an offset.
const localTime = "2006-01-02T15:04:05"

// parsedTime is a time from the model: a day, a time with an offset, or a local time.
type parsedTime struct {
	text   string
	time   time.Time
	allDay bool
	local  bool
}

// parseTime parses a time from the model.
func parseTime(name, text string) (parsedTime, error) {
	text = strings.TrimSpace(text)
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return parsedTime{text: text, time: t, allDay: true}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return parsedTime{text: t.Format(time.RFC3339), time: t}, nil
	}
	for _, layout := range []string{localTime, "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, text); err == nil {
			return parsedTime{text: t.Format(localTime), time: t, local: true}, nil
		}
	}
	return parsedTime{}, service.Invalidf("'%s' must be like 2026-03-31T09:00:00+02:00, or a day like 2026-03-31, not %q", name, text)
}

// checkZone checks the name of a time zone; empty is allowed.
func checkZone(name string) error {
	if name == "" {
		return nil
	}
	if _, err := wording.LoadZone(name); err != nil {
		return service.Invalidf("there is no time zone %q; use a name like Europe/Berlin", name)
	}
	return nil
}

// parseBound parses a time bound of a list and adds the offset that Google requires.
func parseBound(c *service.Conn, name, text string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", nil
	}
	t, err := parseTime(name, text)
	if err != nil {
		return "", err
	}
	if !t.local && !t.allDay {
		return t.text, nil
	}
	return t.formatIn(c.Location), nil
}

// eventTime returns the start or end of an event for Google. It clears the fields of the other kind.
func (t parsedTime) eventTime(zone string) *calendar.EventDateTime {
	if t.allDay {
		return &calendar.EventDateTime{Date: t.time.Format(time.DateOnly), NullFields: []string{"DateTime", "TimeZone"}}
	}
	text := t.text
	if loc, err := time.LoadLocation(zone); t.local && zone != "" && err == nil {
		text = t.formatIn(loc)
	}
	return &calendar.EventDateTime{DateTime: text, TimeZone: zone, NullFields: []string{"Date"}}
}

// formatIn returns a local time in a zone, with its offset.
func (t parsedTime) formatIn(loc *time.Location) string {
	y, m, d := t.time.Date()
	h, min, s := t.time.Clock()
	return time.Date(y, m, d, h, min, s, 0, loc).Format(time.RFC3339)
}

func calendarCreateEvent(ctx context.Context, api *calendar.Service, _ *service.Conn, in calendarArgs) (any, error) {
	start, err := parseTime("start", in.Start)
	if err != nil {
		return nil, err
	}
	end, err := parseTime("end", in.End)
	if err != nil {
		return nil, err
	}
	start.allDay, end.allDay = start.allDay || in.AllDay, end.allDay || in.AllDay
	if end, err = checkOrder(start, end); err != nil {
		return nil, err
	}
	zone, err := eventZone(ctx, api, in.CalendarID, in.Zone, start, end)
	if err != nil {
		return nil, err
	}
	event := &calendar.Event{
		Summary: in.Summary, Description: in.Description, Location: in.Location,
		Start: start.eventTime(zone), End: end.eventTime(zone),
	}
	event.Start.NullFields, event.End.NullFields = nil, nil
	for _, guest := range in.Attendees {
		address, err := mail.ParseAddress(guest)
		if err != nil {
			return nil, service.Invalidf("%q in 'attendees' is no address", guest)
		}
		event.Attendees = append(event.Attendees, &calendar.EventAttendee{Email: address.Address, DisplayName: address.Name})
	}
	return api.Events.Insert(in.CalendarID, event).Context(ctx).SendUpdates("all").Do()
}

// checkOrder checks that the times are of the same kind and in order, and returns the end for Google,
// where an event of whole days ends on the day after the last. The same day twice means that day.
func checkOrder(start, end parsedTime) (parsedTime, error) {
	switch {
	case start.allDay != end.allDay:
		return end, service.Invalidf("'start' and 'end' must both be days or both be times")
	case start.allDay && end.time.Equal(start.time):
		end.time = end.time.AddDate(0, 0, 1)
	case start.local == end.local && !end.time.After(start.time):
		return end, service.Invalidf("'end' must be after 'start'")
	}
	return end, nil
}

// eventZone returns the zone of an event: the named zone or, for a time without an offset, the zone
// of the calendar.
func eventZone(ctx context.Context, api *calendar.Service, id, name string, times ...parsedTime) (string, error) {
	if err := checkZone(name); err != nil || name != "" {
		return name, err
	}
	for _, t := range times {
		if t.local {
			calendar, err := api.Calendars.Get(id).Context(ctx).Do()
			if err != nil {
				return "", err
			}
			return calendar.TimeZone, nil
		}
	}
	return "", nil
}

// changeEventArgs distinguishes empty fields from missing ones.
type changeEventArgs struct {
	calendarArgs
	Summary     *string `json:"summary"`
	Description *string `json:"description"`
	Location    *string `json:"location"`
}

func calendarUpdateEvent(ctx context.Context, api *calendar.Service, _ *service.Conn, in changeEventArgs) (any, error) {
	patch := &calendar.Event{}
	patchField(&patch.ForceSendFields, "Summary", &patch.Summary, in.Summary)
	patchField(&patch.ForceSendFields, "Description", &patch.Description, in.Description)
	patchField(&patch.ForceSendFields, "Location", &patch.Location, in.Location)
	retimed := in.Start != "" || in.End != ""
	if retimed {
		if err := setTimes(ctx, api, in, patch); err != nil {
			return nil, err
		}
	}
	if !retimed && len(patch.ForceSendFields) == 0 {
		return nil, service.Invalidf("nothing to change: give summary, description, location, start or end")
	}
	return api.Events.Patch(in.CalendarID, in.EventID, patch).Context(ctx).SendUpdates("all").Do()
}

// patchField sets a field of a patch, which is then sent even if it is empty.
func patchField(sent *[]string, name string, field, value *string) {
	if value != nil {
		*field = *value
		*sent = append(*sent, name)
	}
}

// setTimes puts new times into a patch. If only the start is new, the event keeps its length. If the
// times change between days and times of day, both change.
func setTimes(ctx context.Context, api *calendar.Service, in changeEventArgs, patch *calendar.Event) error {
	old, err := api.Events.Get(in.CalendarID, in.EventID).Context(ctx).Do()
	if err != nil {
		return err
	}
	oldStart, oldEnd := timeOf(old.Start), timeOf(old.End)
	start, end := oldStart, oldEnd
	if in.Start != "" {
		if start, err = parseTime("start", in.Start); err != nil {
			return err
		}
		end = shiftEnd(start, oldStart, oldEnd)
	}
	if in.End != "" {
		if end, err = parseTime("end", in.End); err != nil {
			return err
		}
	}
	if end, err = checkOrder(start, end); err != nil {
		return err
	}
	zone, err := eventZone(ctx, api, in.CalendarID, in.Zone, start, end)
	if err != nil {
		return err
	}
	if zone == "" && old.Start != nil {
		zone = old.Start.TimeZone
	}
	patch.Start, patch.End = start.eventTime(zone), end.eventTime(zone)
	return nil
}

// timeOf converts a time from Google.
func timeOf(t *calendar.EventDateTime) parsedTime {
	if t == nil {
		return parsedTime{}
	}
	out, err := parseTime("time", cmp.Or(t.DateTime, t.Date))
	if err != nil {
		return parsedTime{}
	}
	return out
}

// shiftEnd returns the end of an event that has a new start.
func shiftEnd(start, oldStart, oldEnd parsedTime) parsedTime {
	length := oldEnd.time.Sub(oldStart.time)
	switch {
	case start.allDay && !oldStart.allDay:
		length = 24 * time.Hour
	case !start.allDay && oldStart.allDay, length <= 0:
		length = time.Hour
	}
	end := start
	end.time = start.time.Add(length)
	if end.text = end.time.Format(time.RFC3339); start.local {
		end.text = end.time.Format(localTime)
	}
	return end
}

// calendarRespond answers an invitation as the guest with the account's address.
func calendarRespond(ctx context.Context, api *calendar.Service, _ *service.Conn, in calendarArgs) (any, error) {
	event, err := api.Events.Get(in.CalendarID, in.EventID).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	for _, guest := range event.Attendees {
		if guest.Self {
			guest.ResponseStatus = in.Response
			patch := &calendar.Event{Attendees: event.Attendees}
			return api.Events.Patch(in.CalendarID, in.EventID, patch).Context(ctx).SendUpdates("all").Do()
		}
	}
	return nil, toolgroups.Errorf(service.CodeConflict, "The account is not among the guests of this event, so there is nothing to answer.")
}
