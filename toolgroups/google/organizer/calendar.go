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
			"calendarListCalendars":  service.With(calendar.NewService, calendarListCalendars),
			"calendarListEvents":     service.With(calendar.NewService, calendarListEvents),
			"calendarGetEvent":       service.With(calendar.NewService, calendarGetEvent),
			"calendarCreateEvent":    service.With(calendar.NewService, calendarCreateEvent),
			"calendarUpdateEvent":    service.With(calendar.NewService, calendarUpdateEvent),
			"calendarDeleteEvent":    service.With(calendar.NewService, calendarDeleteEvent),
			"calendarSearchEvents":   service.With(calendar.NewService, calendarSearchEvents),
			"calendarQuickAdd":       service.With(calendar.NewService, calendarQuickAdd),
			"calendarGetFreeBusy":    service.With(calendar.NewService, calendarGetFreeBusy),
			"calendarCreateCalendar": service.With(calendar.NewService, calendarCreateCalendar),
			"calendarDeleteCalendar": service.With(calendar.NewService, calendarDeleteCalendar),
			"calendarRespond":        service.With(calendar.NewService, calendarRespond),
			"calendarListColors":     service.With(calendar.NewService, calendarListColors),
			"calendarInstances":      service.With(calendar.NewService, calendarInstances),
		},
	}
}

const (
	defaultEvents = 20
	// maxEvents is the largest page (developers.google.com/workspace/calendar/api/v3/reference/events/list).
	maxEvents    = 250
	maxCalendars = 1000
	// lookBack is how far back a search goes if nothing is ahead.
	lookBack = 365 * 24 * time.Hour
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
	Calendar    string   `json:"calendar_id"`
	Event       string   `json:"event_id"`
	From        string   `json:"time_min"`
	To          string   `json:"time_max"`
	MaxResults  int      `json:"max_results"`
	Query       string   `json:"query"`
	Calendars   []string `json:"calendar_ids"`
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

// window parses the bounds of a list.
func (in calendarArgs) window(c *service.Conn) (from, to string, err error) {
	if from, err = bound(c, "time_min", in.From); err != nil {
		return "", "", err
	}
	to, err = bound(c, "time_max", in.To)
	return from, to, err
}

func calendarListEvents(ctx context.Context, api *calendar.Service, c *service.Conn, in calendarArgs) (any, error) {
	from, to, err := in.window(c)
	if err != nil {
		return nil, err
	}
	if end, err := time.Parse(time.RFC3339, to); from == "" && (err != nil || end.After(c.Now())) {
		from = c.Now().Format(time.RFC3339) // not from the oldest event
	}
	events, next, err := listEvents(ctx, api, in.Calendar, from, to, in.Query, service.Bounded(in.MaxResults, defaultEvents, maxEvents))
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
	return service.Collect(limit, call, call.MaxResults, eventsOf)
}

func eventsOf(page *calendar.Events) ([]*calendar.Event, string) {
	return page.Items, page.NextPageToken
}

// calendarSearchEvents finds future events, then past ones, the newest first.
func calendarSearchEvents(ctx context.Context, api *calendar.Service, c *service.Conn, in calendarArgs) (any, error) {
	limit := service.Bounded(in.MaxResults, defaultEvents, maxEvents)
	id := cmp.Or(in.Calendar, "primary")
	now := c.Now()
	events, _, err := listEvents(ctx, api, id, now.Format(time.RFC3339), "", in.Query, limit)
	if err != nil || len(events) == limit {
		return service.Page("events", events, ""), err
	}
	past, _, err := listEvents(ctx, api, id, now.Add(-lookBack).Format(time.RFC3339), now.Format(time.RFC3339), in.Query, maxEvents)
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
	from, to, err := in.window(c)
	if err != nil {
		return nil, err
	}
	call := api.Events.Instances(in.Calendar, in.Event).Context(ctx)
	if from != "" {
		call.TimeMin(from)
	}
	if to != "" {
		call.TimeMax(to)
	}
	events, next, err := service.Collect(service.Bounded(in.MaxResults, defaultEvents, maxEvents), call, call.MaxResults, eventsOf)
	return service.Page("instances", events, next), err
}

func calendarGetEvent(ctx context.Context, api *calendar.Service, _ *service.Conn, in calendarArgs) (any, error) {
	return api.Events.Get(in.Calendar, in.Event).Context(ctx).Do()
}

func calendarDeleteEvent(ctx context.Context, api *calendar.Service, _ *service.Conn, in calendarArgs) (any, error) {
	return service.Done(), api.Events.Delete(in.Calendar, in.Event).Context(ctx).SendUpdates("all").Do()
}

func calendarQuickAdd(ctx context.Context, api *calendar.Service, _ *service.Conn, in calendarArgs) (any, error) {
	return api.Events.QuickAdd(in.Calendar, in.Text).Context(ctx).Do()
}

func calendarGetFreeBusy(ctx context.Context, api *calendar.Service, c *service.Conn, in calendarArgs) (any, error) {
	from, to, err := in.window(c)
	if err != nil {
		return nil, err
	}
	if len(in.Calendars) == 0 {
		return nil, service.Invalidf("'calendar_ids' is empty")
	}
	items := make([]*calendar.FreeBusyRequestItem, len(in.Calendars))
	for i, id := range in.Calendars {
		items[i] = &calendar.FreeBusyRequestItem{Id: id}
	}
	answer, err := api.Freebusy.Query(&calendar.FreeBusyRequest{TimeMin: from, TimeMax: to, Items: items}).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	for id, one := range answer.Calendars {
		one.ForceSendFields = []string{"Busy"} // an empty list matters too
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
	return service.Done(), api.Calendars.Delete(in.Calendar).Context(ctx).Do()
}

func calendarListColors(ctx context.Context, api *calendar.Service, _ *service.Conn, _ struct{}) (any, error) {
	return api.Colors.Get().Context(ctx).Fields("calendar,event").Do()
}
