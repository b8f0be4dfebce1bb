package organizer

import (
	"cmp"
	"context"
	"fmt"

	"google.golang.org/api/calendar/v3"
	"google.golang.org/api/people/v1"
	"google.golang.org/api/tasks/v1"

	"oneclaw/toolgroups/google/service"
)

// describesCalendar returns the operation that says what a calendar is, and whether it is the user's own. A
// calendar of another person need not be in the user's list.
func describesCalendar() service.Operation {
	return service.NewOperation(calendar.NewService, describeCalendar).Or(service.NewOperation(calendar.NewService, describeForeignCalendar))
}

func describeCalendar(ctx context.Context, api *calendar.Service, c *service.Conn, in service.Resource) (any, error) {
	if in.ID == "primary" && !c.Direct {
		return "the main one of the account", nil // its name need not be read for that
	}
	entry, err := api.CalendarList.Get(in.ID).Context(ctx).Fields("summary,summaryOverride,accessRole,primary").Do()
	if err != nil {
		return nil, err
	}
	text := service.Quoted(entry.Summary)
	if entry.SummaryOverride != "" {
		text = fmt.Sprintf("%s (%s)", service.Quoted(entry.SummaryOverride), text)
	}
	if entry.Primary {
		return text + ", the main one of the account", nil
	}
	return fmt.Sprintf("%s, the account's role: %s", text, service.Quoted(entry.AccessRole)), nil
}

func describeForeignCalendar(ctx context.Context, api *calendar.Service, _ *service.Conn, in service.Resource) (any, error) {
	c, err := api.Calendars.Get(in.ID).Context(ctx).Fields("summary").Do()
	if err != nil {
		return nil, err
	}
	return service.Quoted(c.Summary) + ", not among the account's calendars", nil
}

// describeStart says in which zone a time without one is: the calendar has it, and it may change before the call runs.
func describeStart(ctx context.Context, api *calendar.Service, _ *service.Conn, in calendarArgs) (any, error) {
	start, err := parseTime("start", in.Start)
	if err != nil || !start.local || in.AllDay || in.Zone != "" {
		return "", nil // the call fails, or its arguments say all
	}
	zone, err := eventZone(ctx, api, in.CalendarID, "", start)
	if err != nil {
		return nil, err
	}
	return "in the calendar's time zone, " + service.Quoted(zone), nil
}

type eventArgs struct {
	service.Resource
	CalendarID string `json:"calendar_id"`
}

// describeEvent says what an event is, whose it is and who hears of a change. It leaves out the guests'
// answers, which may change while a card waits.
func describeEvent(ctx context.Context, api *calendar.Service, _ *service.Conn, in eventArgs) (any, error) {
	e, err := api.Events.Get(in.CalendarID, in.ID).Context(ctx).
		Fields("summary,start,organizer,attendees(email,displayName),recurrence,recurringEventId").Do()
	if err != nil {
		return nil, err
	}
	series := ""
	switch {
	case len(e.Recurrence) > 0:
		series = ", with all its repetitions"
	case e.RecurringEventId != "":
		series = ", one of its repetitions"
	}
	start := cmp.Or(e.Start, &calendar.EventDateTime{})
	organizer := "unknown"
	if o := e.Organizer; o != nil {
		if organizer = service.Person(o.DisplayName, o.Email); o.Self {
			organizer = "you"
		}
	}
	guests := []string{}
	for _, a := range e.Attendees {
		guests = append(guests, service.Quoted(cmp.Or(a.Email, a.DisplayName)))
	}
	return fmt.Sprintf("%s, starts %s%s, organizer: %s, guests: %s", service.Quoted(e.Summary), cmp.Or(start.DateTime, start.Date), series,
		organizer, cmp.Or(service.List(guests), "none")), nil
}

func describeContact(ctx context.Context, api *people.Service, _ *service.Conn, in service.Resource) (any, error) {
	name, err := contactArgs{ResourceName: in.ID}.resourceName()
	if err != nil {
		return nil, err
	}
	p, err := api.People.Get(name).Context(ctx).PersonFields(contactsFields).Do()
	if err != nil {
		return nil, err
	}
	c := newContact(p)
	return service.Person(c.Name, cmp.Or(c.Email, c.Phone)), nil
}

func describeTasklist(ctx context.Context, api *tasks.Service, _ *service.Conn, in service.Resource) (any, error) {
	list, err := api.Tasklists.Get(in.ID).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	return service.Quoted(list.Title), nil
}

type taskOfArgs struct {
	service.Resource
	TasklistID string `json:"tasklist_id"`
}

func describeTask(ctx context.Context, api *tasks.Service, _ *service.Conn, in taskOfArgs) (any, error) {
	t, err := api.Tasks.Get(in.TasklistID, in.ID).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	return service.Quoted(t.Title), nil
}
