package schedule_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/schedule"
)

// TestATaskHasTheZoneOfItsUser: that of the call, else the user's, else the bot's, which the first line names.
func TestATaskHasTheZoneOfItsUser(t *testing.T) {
	t.Parallel()
	const assumed = " (Europe/Berlin; if you live in another time zone, tell me your city)"
	for name, tt := range map[string]struct{ personal, call, plan, first string }{
		"unknown":          {"", "", "daily, 09:00", assumed},
		"as the bot":       {"Europe/Berlin", "", "daily, 09:00", " (Europe/Berlin)"},
		"elsewhere":        {"America/New_York", "", "daily, 09:00 (America/New_York)", ""},
		"named in a call":  {"America/New_York", "Asia/Tokyo", "daily, 09:00 (Asia/Tokyo)", ""},
		"named, unknown":   {"", "Asia/Tokyo", "daily, 09:00 (Asia/Tokyo)", ""},
		"named as the bot": {"America/New_York", "Europe/Berlin", "daily, 09:00 (Europe/Berlin)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, "Europe/Berlin", func(cfg *schedule.Config) {
				cfg.ZoneOf = func(context.Context, toolgroups.Scope) string { return tt.personal }
			})
			args := fmt.Sprintf(`{"name": "tea", "prompt": "Make tea", "schedule_type": "daily", "hour": 9, "minute": 0, "time_zone": %q}`, tt.call)
			first, second := o.announced(ann, "schedule_task", args).Text, o.announced(ann, "schedule_task", args).Text
			const line = "Scheduled “tea”: %s. It says: “Make tea”"
			if want := fmt.Sprintf(line, tt.plan+tt.first); first != want {
				t.Errorf("the first line is %q, want %q", first, want)
			}
			if want := fmt.Sprintf(line, tt.plan); second != want {
				t.Errorf("the second line is %q, want %q", second, want)
			}
			interval := o.announced(ann, "schedule_task", `{"name": "hourly", "prompt": "x", "schedule_type": "interval", "every_minutes": 60}`).Text
			if !strings.Contains(interval, "every 60 minutes. ") {
				t.Errorf("an interval has a zone: %q", interval)
			}
		})
	}
}

// TestATaskOfAUserKeepsItsHour through the change to summer time in the user's zone, which is not that of the bot.
func TestATaskOfAUserKeepsItsHour(t *testing.T) {
	t.Parallel()
	lisbon := zone(t, "Europe/Lisbon")
	for _, now := range []time.Time{time.Date(2027, 3, 27, 12, 0, 0, 0, lisbon), time.Date(2027, 3, 28, 12, 0, 0, 0, lisbon), time.Date(2027, 10, 30, 12, 0, 0, 0, lisbon), time.Date(2027, 10, 31, 12, 0, 0, 0, lisbon)} {
		o := newOffice(t, "UTC", func(cfg *schedule.Config) {
			cfg.Now = func() time.Time { return now.UTC() }
			cfg.ZoneOf = func(context.Context, toolgroups.Scope) string { return "Europe/Lisbon" }
		})
		o.announced(ann, "schedule_task", `{"name": "tea", "prompt": "Make tea", "schedule_type": "daily", "hour": 9, "minute": 0}`)
		due := o.tasks(ann.Owner)[0].Due.In(lisbon)
		if want := now.AddDate(0, 0, 1).Format("2006-01-02") + " 09:00"; due.Format("2006-01-02 15:04") != want {
			t.Errorf("at %s it is due %s, want %s", now, due, want)
		}
	}
}
