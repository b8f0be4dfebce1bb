package organizer

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/api/calendar/v3"

	"oneclaw/toolgroups/google/service"
)

// Calendar returns the group of tools for calendars.
func Calendar() service.Group {
	return service.Group{
		Name:      "google_calendar",
		Scopes:    []string{calendar.CalendarScope},
		Manifests: manifests,
		Operations: service.Operations{
			"calendarListCalendars":  service.NewOperation(calendar.NewService, calendarListCalendars),
			"calendarListEvents":     service.NewOperation(calendar.NewService, calendarListEvents),
			"calendarGetEvent":       service.NewOperation(calendar.NewService, calendarGetEvent),
			"calendarCreateEvent":    service.NewOperation(calendar.NewService, calendarCreateEvent),
			"calendarUpdateEvent":    service.NewOperation(calendar.NewService, calendarUpdateEvent),
			"calendarDeleteEvent":    service.NewOperation(calendar.NewService, calendarDeleteEvent),
			"calendarSearchEvents":   service.NewOperation(calendar.NewService, calendarSearchEvents),
			"calendarQuickAdd":       service.NewOperation(calendar.NewService, calendarQuickAdd),
			"calendarGetFreeBusy":    service.NewOperation(calendar.NewService, calendarGetFreeBusy),
			"calendarCreateCalendar": service.NewOperation(calendar.NewService, calendarCreateCalendar),
			"calendarDeleteCalendar": service.NewOperation(calendar.NewService, calendarDeleteCalendar),
			"calendarRespond":        service.NewOperation(calendar.NewService, calendarRespond),
			"calendarListColors":     service.NewOperation(calendar.NewService, calendarListColors),
			"calendarInstances":      service.NewOperation(calendar.NewService, calendarInstances),
		},
		Resources: service.Resources{
			"calendar_id": describesCalendar(), "calendar_ids": describesCalendar(),
			"event_id": service.NewOperation(calendar.NewService, describeEvent),
			"start":    service.NewOperation(calendar.NewService, describeStart),
		},
	}
}

const (
	defaultEvents = 20
	// maxEvents bounds the events of a result.
	maxEvents    = 250
	maxCalendars = 1000
	// maxEventPage is the largest page (developers.google.com/workspace/calendar/api/v3/reference/events/list).
	maxEventPage = 2500
	// lookBack is how far back a search goes if it finds too few future events.
	lookBack = 365 * 24 * time.Hour
	// maxPastEvents bounds the past events that a search fetches. It fetches all of them, because Google
	// lists the oldest first.
	maxPastEvents = 10_000
)

func calendarListCalendars(ctx context.Context, api *calendar.Service, _ *service.Conn, _ struct{}) (any, error) {
	call := api.CalendarList.List().Context(ctx)
	size := func(n int64) *calendar.CalendarListListCall { return call.MaxResults(min(n, maxEvents)) }
	calendars, _, err := service.Collect(maxCalendars, call, size, func(page *calendar.CalendarList) ([]*calendar.CalendarListEntry, string) {
		return page.Items, page.NextPageToken
	})
	return map[string]any{"calendars": calendars}, err
}

type calendarArgs struct {
	CalendarID  string   `json:"calendar_id"`
	EventID     string   `json:"event_id"`
	TimeMin     string   `json:"time_min"`
	TimeMax     string   `json:"time_max"`
	MaxResults  int      `json:"max_results"`
	Query       string   `json:"query"`
	CalendarIDs []string `json:"calendar_ids"`
	Text        string   `json:"text"`
	Summary     string   `json:"summary"`
	Description string   `json:"description"`
	Location    string   `json:"location"`
	Start       string   `json:"start"`
	End         string   `json:"end"`
	Zone        string   `json:"timezone"`
	Attendees   []string `json:"attendees"`
	AllDay      bool     `json:"all_day"`
	Response    string   `json:"response"`
}

// parseTimeRange parses the time bounds of a list.
func (in calendarArgs) parseTimeRange(c *service.Conn) (from, to string, err error) {
	if from, err = parseBound(c, "time_min", in.TimeMin); err != nil {
		return "", "", err
	}
	to, err = parseBound(c, "time_max", in.TimeMax)
	return from, to, err
}

func calendarListEvents(ctx context.Context, api *calendar.Service, c *service.Conn, in calendarArgs) (any, error) {
	from, to, err := in.parseTimeRange(c)
	if err != nil {
		return nil, err
	}
	if end, err := time.Parse(time.RFC3339, to); from == "" && (err != nil || end.After(c.Now())) {
		from = c.Now().Format(time.RFC3339) // instead of the oldest event
	}
	events, next, err := listEvents(ctx, api, in.CalendarID, from, to, in.Query, service.ClampLimit(in.MaxResults, defaultEvents, maxEvents))
	return service.Page("events", events, next), err
}

func listEvents(ctx context.Context, api *calendar.Service, id, from, to, query string, limit int) ([]*calendar.Event, string, error) {
	call := api.Events.List(id).Context(ctx).SingleEvents(true).OrderBy("startTime")
	if from != "" {
		call.TimeMin(from)
	}
	if to != "" {
		call.TimeMax(to)
	}
	if query != "" {
		call.Q(query)
	}
	size := func(n int64) *calendar.EventsListCall { return call.MaxResults(min(n, maxEventPage)) }
	return service.Collect(limit, call, size, eventsOf)
}

func eventsOf(page *calendar.Events) ([]*calendar.Event, string) {
	return page.Items, page.NextPageToken
}

// calendarSearchEvents finds future events, then past ones, the newest first.
func calendarSearchEvents(ctx context.Context, api *calendar.Service, c *service.Conn, in calendarArgs) (any, error) {
	limit := service.ClampLimit(in.MaxResults, defaultEvents, maxEvents)
	id := cmp.Or(in.CalendarID, "primary")
	now := c.Now()
	events, _, err := listEvents(ctx, api, id, now.Format(time.RFC3339), "", in.Query, limit)
	if err != nil || len(events) == limit {
		return service.Page("events", events, ""), err
	}
	past, _, err := listEvents(ctx, api, id, now.Add(-lookBack).Format(time.RFC3339), now.Format(time.RFC3339), in.Query, maxPastEvents)
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(past) {
		known := slices.ContainsFunc(events, func(o *calendar.Event) bool { return o.Id == e.Id })
		if !known && len(events) < limit { // current events are in both
			events = append(events, e)
		}
	}
	return service.Page("events", events, ""), nil
}

func calendarInstances(ctx context.Context, api *calendar.Service, c *service.Conn, in calendarArgs) (any, error) {
	from, to, err := in.parseTimeRange(c)
	if err != nil {
		return nil, err
	}
	call := api.Events.Instances(in.CalendarID, in.EventID).Context(ctx)
	if from != "" {
		call.TimeMin(from)
	}
	if to != "" {
		call.TimeMax(to)
	}
	events, next, err := service.Collect(service.ClampLimit(in.MaxResults, defaultEvents, maxEvents), call, call.MaxResults, eventsOf)
	return service.Page("instances", events, next), err
}

func calendarGetEvent(ctx context.Context, api *calendar.Service, _ *service.Conn, in calendarArgs) (any, error) {
	return api.Events.Get(in.CalendarID, in.EventID).Context(ctx).Do()
}

func calendarDeleteEvent(ctx context.Context, api *calendar.Service, _ *service.Conn, in calendarArgs) (any, error) {
	return service.SuccessResult(), api.Events.Delete(in.CalendarID, in.EventID).Context(ctx).SendUpdates("all").Do()
}

func calendarQuickAdd(ctx context.Context, api *calendar.Service, _ *service.Conn, in calendarArgs) (any, error) {
	return api.Events.QuickAdd(in.CalendarID, in.Text).Context(ctx).Do()
}

func calendarGetFreeBusy(ctx context.Context, api *calendar.Service, c *service.Conn, in calendarArgs) (any, error) {
	from, to, err := in.parseTimeRange(c)
	if err != nil {
		return nil, err
	}
	if len(in.CalendarIDs) == 0 {
		return nil, service.Invalidf("'calendar_ids' is empty")
	}
	items := make([]*calendar.FreeBusyRequestItem, len(in.CalendarIDs))
	for i, id := range in.CalendarIDs {
		items[i] = &calendar.FreeBusyRequestItem{Id: id}
	}
	answer, err := api.Freebusy.Query(&calendar.FreeBusyRequest{TimeMin: from, TimeMax: to, Items: items}).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	for id, one := range answer.Calendars {
		one.ForceSendFields = []string{"Busy"} // keep an empty list in the result
		answer.Calendars[id] = one
	}
	return map[string]any{"calendars": answer.Calendars}, nil
}

func calendarCreateCalendar(ctx context.Context, api *calendar.Service, _ *service.Conn, in calendarArgs) (any, error) {
	if err := checkZone(in.Zone); err != nil {
		return nil, err
	}
	return api.Calendars.Insert(&calendar.Calendar{Summary: in.Summary, Description: in.Description, TimeZone: in.Zone}).Context(ctx).Do()
}

func calendarDeleteCalendar(ctx context.Context, api *calendar.Service, _ *service.Conn, in calendarArgs) (any, error) {
	return service.SuccessResult(), api.Calendars.Delete(in.CalendarID).Context(ctx).Do()
}

func calendarListColors(ctx context.Context, api *calendar.Service, _ *service.Conn, _ struct{}) (any, error) {
	return api.Colors.Get().Context(ctx).Fields("calendar,event").Do()
}
