package google

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/calendar/v3"
)

func (r *harness) event(t *testing.T, tool, args string) (*calendar.Event, string) {
	t.Helper()
	res, fault := r.run(t.Context(), ada, t.TempDir(), tool, json.RawMessage(args))
	if fault != nil {
		return nil, fault.Code
	}
	var e calendar.Event
	if err := json.Unmarshal([]byte(res.Text), &e); err != nil {
		t.Fatal(err)
	}
	return &e, ""
}

// days lists the days of the events that a tool finds.
func (r *harness) days(t *testing.T, tool, args string) (days []string) {
	t.Helper()
	res, fault := r.run(t.Context(), ada, t.TempDir(), tool, json.RawMessage(args))
	var found struct {
		Events []*calendar.Event `json:"events"`
	}
	if fault != nil || json.Unmarshal([]byte(res.Text), &found) != nil {
		t.Fatal(fault, res.Text)
	}
	for _, e := range found.Events {
		days = append(days, e.Start.Date)
	}
	return days
}

// span is when an event is.
func span(e *calendar.Event) string {
	if e == nil {
		return ""
	}
	return e.Start.DateTime + e.Start.Date + " to " + e.End.DateTime + e.End.Date
}

// Times are of one kind, in the zone that is meant, and in order.
func TestEventTimes(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "calendar")
	for _, tc := range []struct{ name, fields, want, code string }{
		{"with an offset", `"start":"2027-03-31T10:00:00+02:00","end":"2027-03-31T11:00:00+02:00"`, "2027-03-31T10:00:00+02:00 to 2027-03-31T11:00:00+02:00", ""},
		{"in the zone of the calendar", `"start":"2027-07-01T10:00","end":"2027-07-01T11:30:00"`, "2027-07-01T10:00:00+02:00 to 2027-07-01T11:30:00+02:00", ""},
		{"in a zone", `"start":"2027-01-01 10:00","end":"2027-01-01 11:00","timezone":"America/New_York"`, "2027-01-01T10:00:00-05:00 to 2027-01-01T11:00:00-05:00", ""},
		{"one day", `"start":"2027-01-01","end":"2027-01-01"`, "2027-01-01 to 2027-01-02", ""},
		{"five days", `"start":"2027-06-01","end":"2027-06-06"`, "2027-06-01 to 2027-06-06", ""},
		{"said to be whole days", `"start":"2027-01-01T00:00:00","end":"2027-01-03T00:00:00","all_day":true`, "2027-01-01 to 2027-01-03", ""},
		{"day and time", `"start":"2027-01-01","end":"2027-01-01T10:00:00Z"`, "", "validation_error"},
		{"backwards", `"start":"2027-01-02T10:00:00Z","end":"2027-01-01T10:00:00Z"`, "", "validation_error"},
		{"words", `"start":"tomorrow","end":"later"`, "", "validation_error"},
		{"zone that is a path", `"start":"2027-01-01T10:00","end":"2027-01-01T11:00","timezone":"Europe` + strings.Repeat("/", 1500) + `Berlin"`, "", "validation_error"},
		{"zone that is none", `"start":"2027-01-01T10:00","end":"2027-01-01T11:00","timezone":"Mars/Base"`, "", "validation_error"},
		{"guest that is none", `"start":"2027-01-01","end":"2027-01-01","attendees":["Bob"]`, "", "validation_error"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e, code := r.event(t, "calendar_create_event", `{"calendar_id":"primary","summary":"x",`+tc.fields+`}`)
			if span(e) != tc.want || code != tc.code {
				t.Errorf("%s %s, want %s %s", span(e), code, tc.want, tc.code)
			}
		})
	}
}

// A new start alone keeps the length; a change between days and times changes both.
func TestUpdateEventKeepsItsForm(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, old, change, want, code string }{
		{"start of a time", "T10:00:00Z T11:30:00Z", `"start":"2027-05-01T08:00:00Z"`, "2027-05-01T08:00:00Z to 2027-05-01T09:30:00Z", ""},
		{"end of a time", "T10:00:00Z T11:30:00Z", `"end":"2027-01-01T12:00:00Z"`, "2027-01-01T10:00:00Z to 2027-01-01T12:00:00Z", ""},
		{"start of a day", " ", `"start":"2027-05-01"`, "2027-05-01 to 2027-05-02", ""},
		{"a day becomes a time", " ", `"start":"2027-05-01T08:00:00Z"`, "2027-05-01T08:00:00Z to 2027-05-01T09:00:00Z", ""},
		{"a time becomes a day", "T10:00:00Z T11:30:00Z", `"start":"2027-05-01"`, "2027-05-01 to 2027-05-02", ""},
		{"local time in the event's zone", "T10:00:00Z T11:30:00Z", `"start":"2027-07-01T08:00"`, "2027-07-01T08:00:00+02:00 to 2027-07-01T09:30:00+02:00", ""},
		{"end of another kind", "T10:00:00Z T11:30:00Z", `"end":"2027-05-01"`, "", "validation_error"},
		{"nothing", " ", `"timezone":"UTC"`, "", "validation_error"},
		{"title alone", " ", `"summary":""`, "2027-01-01 to 2027-01-02", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, Config{})
			r.connect(t, ada, adaMail, "calendar")
			from, to, _ := strings.Cut(tc.old, " ")
			old, _ := r.event(t, "calendar_create_event", fmt.Sprintf(`{"calendar_id":"primary","summary":"x","start":"2027-01-01%s","end":"2027-01-01%s"}`, from, to))
			e, code := r.event(t, "calendar_update_event", fmt.Sprintf(`{"calendar_id":"primary","event_id":%q,%s}`, old.Id, tc.change))
			if span(e) != tc.want || code != tc.code {
				t.Errorf("%s %s, want %s %s", span(e), code, tc.want, tc.code)
			}
		})
	}
}

// Lists begin now, searches with what is ahead; guests are told.
func TestCalendarQueries(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 3, 31, 9, 0, 0, 0, time.UTC)
	r := newRig(t, Config{Location: func(context.Context, toolgroups.Scope) *time.Location { return time.FixedZone("", 3600) }, Now: func() time.Time { return now }})
	r.connect(t, ada, adaMail, "calendar")
	for _, start := range []string{"2026-12-01", "2027-01-01", "2027-06-01"} {
		r.event(t, "calendar_create_event", fmt.Sprintf(`{"calendar_id":"primary","summary":"Review","start":%q,"end":%q}`, start, start))
	}
	for _, tc := range []struct {
		tool, args string
		want       []string
	}{
		{"calendar_list_events", `{"calendar_id":"primary","query":"Review"}`, []string{"2027-06-01"}},
		{"calendar_list_events", `{"calendar_id":"primary","query":"Review","time_min":"2026-12-20","time_max":"2027-02-01T00:00"}`, []string{"2027-01-01"}},
		{"calendar_list_events", `{"calendar_id":"primary","query":"Review","time_max":"2027-12-31"}`, []string{"2027-06-01"}},
		{"calendar_list_events", `{"calendar_id":"primary","query":"Review","time_max":"2027-01-02"}`, []string{"2026-12-01", "2027-01-01"}},
		{"calendar_search_events", `{"query":"Review"}`, []string{"2027-06-01", "2027-01-01", "2026-12-01"}},
		{"calendar_search_events", `{"query":"Review","max_results":2}`, []string{"2027-06-01", "2027-01-01"}},
	} {
		if diff := cmp.Diff(tc.want, r.days(t, tc.tool, tc.args)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tc.tool, tc.args, diff)
		}
	}
	// Of a daily series that has ended, more than a page of results, the last ones come first.
	for day := range 260 {
		on := now.AddDate(0, 0, day-270).Format(time.DateOnly)
		r.event(t, "calendar_create_event", fmt.Sprintf(`{"calendar_id":"primary","summary":"Daily","start":%q,"end":%q}`, on, on))
	}
	last := r.days(t, "calendar_search_events", `{"query":"Daily","max_results":2}`)
	if diff := cmp.Diff([]string{"2027-03-20", "2027-03-19"}, last); diff != "" {
		t.Errorf("the last of a series (-want +got):\n%s", diff)
	}
	e, code := r.event(t, "calendar_respond", `{"calendar_id":"primary","event_id":"event-lunch","response":"declined"}`)
	if code != "" || e.Attendees[1].ResponseStatus != "declined" || e.Attendees[0].ResponseStatus != "accepted" {
		t.Errorf("%s %+v", code, e)
	}
	if _, code := r.event(t, "calendar_respond", `{"calendar_id":"primary","event_id":"event-standup","response":"accepted"}`); code != service.CodeConflict {
		t.Errorf("not a guest: %s", code)
	}
	for _, request := range r.em.Requests() {
		if strings.HasSuffix(request.Method, "insert") || strings.HasSuffix(request.Method, "patch") {
			if request.Query.Get("sendUpdates") != "all" {
				t.Errorf("%s tells nobody", request.Method)
			}
		}
	}
}
