package schedule_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/schedule"
)

// The groups pdf, scheduled_tasks and js_tool_management have theirs.
func TestScheduledTasksHoldsFiveTools(t *testing.T) {
	group := newOffice(t, "UTC").Group()
	var got []string
	for _, tool := range group.Tools {
		got = append(got, fmt.Sprint(tool.Name, " ", tool.Effect, " ", tool.Timeout))
	}
	want := []string{
		fmt.Sprint("schedule_task ", toolgroups.Changes, " 10s"),
		fmt.Sprint("list_scheduled_tasks ", toolgroups.ReadOnly, " 10s"),
		fmt.Sprint("run_scheduled_task ", toolgroups.Changes, " 10s"),
		fmt.Sprint("update_scheduled_task ", toolgroups.Changes, " 10s"),
		fmt.Sprint("delete_scheduled_task ", toolgroups.Consequential, " 10s"),
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || group.Name != "scheduled_tasks" || group.DisplayName != "Scheduled Tasks" {
		t.Errorf("group %s (%s): %q", group.Name, group.DisplayName, got)
	}
}

func TestSchedulePhrases(t *testing.T) {
	at(t, "Europe/Berlin", "2026-06-10T05:00:00Z", func(_ *testing.T, o *harness) {
		for args, want := range map[string]string{
			morning: "daily, 08:00. Next run: 2026-06-10 08:00 (Europe/Berlin), epoch milliseconds 1781071200000.",
			`{"name":" a \n b ","prompt":"p","schedule_type":"weekly","day_of_week":"friday","hour":23,"minute":59}`:                        "'a b' (id ",
			`{"name":"n","prompt":"p","schedule_type":"weekly","day_of_week":"friday","hour":23,"minute":59,"date":"ignored"}`:              "every Friday, 23:59. Next run: 2026-06-12 23:59",
			`{"name":"n","prompt":"p","schedule_type":"one_time","date":"2026-06-11","hour":0,"minute":0}`:                                  "one-time on 2026-06-11, 00:00. Next run: 2026-06-11 00:00",
			`{"name":"n","prompt":"p","schedule_type":"daily","hour":7,"minute":0,"day_of_week":"monday","nonsense":true,"date":"ignored"}`: "daily, 07:00. Next run: 2026-06-11 07:00",
		} {
			if got := o.must("schedule_task", args); !strings.Contains(got, want) {
				o.t.Errorf("%s: %q, want %q in it", args, got, want)
			}
		}
	})
}

// failure is a call with the error it gets. %s in the arguments stands for the id of a
// task.
type failure struct{ tool, args, code, says string }

func failures() map[string]failure {
	task := func(fields string) string { return `{"name":"n","prompt":"p",` + fields + `}` }
	all := map[string]failure{
		"nothing given":           {"schedule_task", `{}`, "validation_error", "name"},
		"hour of the wrong type":  {"schedule_task", task(`"schedule_type":"daily","hour":"late","minute":0`), "validation_error", "hour"},
		"unknown type":            {"schedule_task", task(`"schedule_type":"hourly","hour":1,"minute":0`), "validation_error", "schedule_type"},
		"weekly without a day":    {"schedule_task", task(`"schedule_type":"weekly","hour":1,"minute":0`), "validation_error", "day_of_week"},
		"bad weekday":             {"schedule_task", task(`"schedule_type":"weekly","day_of_week":"Freitag","hour":1,"minute":0`), "validation_error", "day_of_week"},
		"one_time without date":   {"schedule_task", task(`"schedule_type":"one_time","hour":1,"minute":0`), "validation_error", "date"},
		"bad date":                {"schedule_task", task(`"schedule_type":"one_time","date":"31.12.2026","hour":1,"minute":0`), "validation_error", "date"},
		"no such date":            {"schedule_task", task(`"schedule_type":"one_time","date":"2026-02-30","hour":1,"minute":0`), "validation_error", "date"},
		"date in a far future":    {"schedule_task", task(`"schedule_type":"one_time","date":"9999-12-31","hour":1,"minute":0`), "validation_error", "date"},
		"past":                    {"schedule_task", task(`"schedule_type":"one_time","date":"2026-06-10","hour":5,"minute":0`), "creation_failed", "not in the future: it is 2026-06-10 05:00 (UTC)"},
		"daily without a time":    {"schedule_task", task(`"schedule_type":"daily","hour":1`), "validation_error", "needs 'hour' and 'minute'"},
		"cron without one":        {"schedule_task", task(`"schedule_type":"cron"`), "validation_error", "needs 'cron'"},
		"cron of four fields":     {"schedule_task", task(`"schedule_type":"cron","cron":"0 9 * *"`), "validation_error", "want minute, hour, day of month"},
		"cron of six fields":      {"schedule_task", task(`"schedule_type":"cron","cron":"0 0 9 * * 1"`), "validation_error", "want minute, hour, day of month"},
		"cron out of bounds":      {"schedule_task", task(`"schedule_type":"cron","cron":"61 9 * * *"`), "validation_error", "61"},
		"cron of the last Friday": {"schedule_task", task(`"schedule_type":"cron","cron":"0 9 * * 5L"`), "validation_error", "\"5L\" is no day of week, the last Friday of a month is FRI#L; want minute"},
		"cron of Jenkins":         {"schedule_task", task(`"schedule_type":"cron","cron":"H 9 * * *"`), "validation_error", "\"H\" is no minute, a number stands for H, such as 17; want minute"},
		"cron with a zone":        {"schedule_task", task(`"schedule_type":"cron","cron":"TZ=UTC 0 9 * * *"`), "validation_error", "time_zone"},
		"cron with seconds":       {"schedule_task", task(`"schedule_type":"cron","cron":"@every 1s"`), "validation_error", "every_minutes"},
		"cron that is no text":    {"schedule_task", task(`"schedule_type":"cron","cron":"` + strings.Repeat("1,", 100) + `"`), "validation_error", "more than 100"},
		"cron that never fires":   {"schedule_task", task(`"schedule_type":"cron","cron":"0 9 30 2 *"`), "validation_error", "'cron' is \"0 9 30 2 *\", which never fires"},
		"cron that cannot fire":   {"schedule_task", task(`"schedule_type":"cron","cron":"0 9 31 4,6,9,11 *"`), "validation_error", "never fires"},
		"interval without one":    {"schedule_task", task(`"schedule_type":"interval"`), "validation_error", "every_minutes"},
		"interval below a minute": {"schedule_task", task(`"schedule_type":"interval","every_minutes":-5`), "validation_error", "want 1 to"},
		"interval of ages":        {"schedule_task", task(`"schedule_type":"interval","every_minutes":9999999`), "validation_error", "want 1 to"},
		"no such zone":            {"schedule_task", task(`"schedule_type":"daily","hour":1,"minute":0,"time_zone":"Mars/Olympus"`), "validation_error", "Europe/Berlin"},
		"a zone that is a path":   {"schedule_task", task(`"schedule_type":"daily","hour":1,"minute":0,"time_zone":"../../etc/passwd"`), "validation_error", "Europe/Berlin"},
		"the host's zone":         {"schedule_task", task(`"schedule_type":"daily","hour":1,"minute":0,"time_zone":"Local"`), "validation_error", "Europe/Berlin"},
		"to cron that never is":   {"update_scheduled_task", `{"task_id":"%s","cron":"0 0 31 2 *"}`, "validation_error", "never fires"},
		"to no interval":          {"update_scheduled_task", `{"task_id":"%s","schedule_type":"interval"}`, "validation_error", "every_minutes"},
		"to no zone":              {"update_scheduled_task", `{"task_id":"%s","time_zone":"x"}`, "validation_error", "time_zone"},
		"blank name":              {"schedule_task", `{"name":" ","prompt":"p","schedule_type":"daily","hour":1,"minute":0}`, "creation_failed", "name"},
		"blank prompt":            {"schedule_task", `{"name":"n","prompt":"\n","schedule_type":"daily","hour":1,"minute":0}`, "creation_failed", "prompt"},
		"long name":               {"schedule_task", `{"name":"` + strings.Repeat("n", 101) + `","prompt":"p","schedule_type":"daily","hour":1,"minute":0}`, "creation_failed", "at most 100"},
		"blank new name":          {"update_scheduled_task", `{"task_id":"%s","name":""}`, "update_failed", "name"},
		"blank new prompt":        {"update_scheduled_task", `{"task_id":"%s","prompt":" "}`, "update_failed", "prompt"},
		"unknown new type":        {"update_scheduled_task", `{"task_id":"%s","schedule_type":"never"}`, "validation_error", "schedule_type"},
		"to weekly without day":   {"update_scheduled_task", `{"task_id":"%s","schedule_type":"weekly"}`, "validation_error", "day_of_week"},
		"bad new weekday":         {"update_scheduled_task", `{"task_id":"%s","schedule_type":"weekly","day_of_week":"x"}`, "validation_error", "day_of_week"},
		"to one_time, no date":    {"update_scheduled_task", `{"task_id":"%s","schedule_type":"one_time"}`, "validation_error", "date"},
		"bad new date":            {"update_scheduled_task", `{"task_id":"%s","schedule_type":"one_time","date":"x"}`, "validation_error", "date"},
		"a date for a daily task": {"update_scheduled_task", `{"task_id":"%s","date":"2026-07-01"}`, "update_failed", "has no 'date'"},
		"a weekday for one":       {"update_scheduled_task", `{"task_id":"%s","day_of_week":"monday"}`, "update_failed", "has no 'day_of_week'"},
		"into the past":           {"update_scheduled_task", `{"task_id":"%s","schedule_type":"one_time","date":"2026-06-09"}`, "update_failed", "not in the future"},
		"run of an unknown id":    {"run_scheduled_task", `{"task_id":"nope"}`, "run_failed", "nope"},
		"update of an unknown":    {"update_scheduled_task", `{"task_id":"nope","enabled":true}`, "not_found", "nope"},
		"deletion of an unknown":  {"delete_scheduled_task", `{"task_id":"nope"}`, "not_found", "nope"},
	}
	for _, tool := range []string{"run_scheduled_task", "update_scheduled_task", "delete_scheduled_task"} {
		all[tool+" without id"] = failure{tool, `{}`, "validation_error", "task_id"}
		all[tool+" with a blank id"] = failure{tool, `{"task_id":" "}`, "validation_error", "task_id"}
		all[tool+" with a path"] = failure{tool, `{"task_id":"../fake:2/x"}`, "validation_error", "task_id"}
	}
	return all
}

func TestErrorsOfTheContract(t *testing.T) {
	t.Parallel()
	for name, c := range failures() {
		t.Run(name, func(t *testing.T) {
			at(t, "UTC", "2026-06-10T05:00:00Z", func(_ *testing.T, o *harness) { checkFailure(o, c) })
		})
	}
}

func checkFailure(o *harness, c failure) {
	o.t.Helper()
	id := o.make(morning)
	before := fmt.Sprint(o.tasks("fake:1"), o.index())
	args := strings.ReplaceAll(c.args, "%s", id)
	text, err := o.run(ann, c.tool, args)
	if err == nil || err.Code != c.code || !strings.Contains(err.Message, c.says) {
		o.t.Errorf("%s(%s): %q, %+v, want %s with %q", c.tool, args, text, err, c.code, c.says)
	}
	if after := fmt.Sprint(o.tasks("fake:1"), o.index()); after != before {
		o.t.Errorf("%s(%s) failed and has changed %s to %s", c.tool, args, before, after)
	}
}

// Hour 24 and minute 60 are refused.
func TestHourAndMinuteHaveBounds(t *testing.T) {
	at(t, "UTC", "2026-06-10T05:00:00Z", func(_ *testing.T, o *harness) {
		for _, time := range []string{`"hour":24,"minute":0`, `"hour":-1,"minute":0`, `"hour":0,"minute":60`, `"hour":0,"minute":-1`} {
			checkFailure(o, failure{"schedule_task", `{"name":"n","prompt":"p","schedule_type":"daily",` + time + `}`, "validation_error", "want 0 to"})
			checkFailure(o, failure{"update_scheduled_task", `{"task_id":"%s",` + time + `}`, "validation_error", "want 0 to"})
		}
		for _, time := range []string{`"hour":0,"minute":0`, `"hour":23,"minute":59`} {
			o.must("schedule_task", `{"name":"n","prompt":"p","schedule_type":"daily",`+time+`}`)
		}
	})
}

func TestTasksHaveALimit(t *testing.T) {
	o := newOffice(t, "UTC", func(c *schedule.Config) { c.MaxTasks = 2 })
	o.make(morning)
	id := o.make(morning)
	_, err := o.run(ann, "schedule_task", morning)
	if err == nil || err.Code != "creation_failed" || !strings.Contains(err.Message, "limit") {
		t.Errorf("a third task: %+v", err)
	}
	o.must("delete_scheduled_task", `{"task_id":"`+id+`"}`)
	o.make(morning)
}

func TestListShowsEverything(t *testing.T) {
	at(t, "Europe/Berlin", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
		if got := o.must("list_scheduled_tasks", `{}`); got != "There are no scheduled tasks." {
			t.Errorf("listed as %q", got)
		}
		first := o.make(morning)
		pass(time.Second)
		second := o.make(`{"name":"Tea","prompt":"p","schedule_type":"one_time","date":"2026-06-11","hour":16,"minute":5}`)
		o.must("update_scheduled_task", `{"task_id":"`+second+`","enabled":false}`)
		o.start()
		pass(2 * time.Hour)
		want := `Scheduled tasks: 2. Times are those of Europe/Berlin, where it is 2026-06-10 09:00.
1. News
   id: ` + first + `
   schedule: daily, 08:00
   enabled: yes
   last run: 2026-06-10 08:00 queued
   next run: 2026-06-11 08:00
2. Tea
   id: ` + second + `
   schedule: one-time on 2026-06-11, 16:05
   enabled: no
   last run: Never
   next run: None
`
		if got := o.must("list_scheduled_tasks", `{}`); got != want {
			t.Errorf("listed as\n%s\nwant\n%s", got, want)
		}
	})
}

func TestUpdateNamesWhatHasChanged(t *testing.T) {
	at(t, "UTC", "2026-06-10T09:00:00Z", func(t *testing.T, o *harness) {
		id := o.make(morning)
		for _, c := range []struct{ fields, want, due string }{
			{`"name":"News"`, "Nothing to change", "20260611T080000Z"},
			{`"name":"Old news","prompt":"What was?"`, "name, prompt. Schedule: daily, 08:00.", "20260611T080000Z"},
			{`"hour":10,"minute":30`, "hour 8 -> 10, minute 0 -> 30. Schedule: daily, 10:30. Next run: 2026-06-10 10:30", "20260610T103000Z"},
			{`"schedule_type":"weekly","day_of_week":"monday"`, "schedule_type, day_of_week. Schedule: every Monday, 10:30.", "20260615T103000Z"},
			{`"enabled":false`, "enabled true -> false. Schedule: every Monday, 10:30. It is disabled", ""},
			{`"schedule_type":"one_time","date":"2026-07-01"`, "schedule_type, day_of_week, date. Schedule: one-time on 2026-07-01, 10:30. It is disabled", ""},
			{`"enabled":true`, "enabled false -> true.", "20260701T103000Z"},
		} {
			got := o.must("update_scheduled_task", `{"task_id":"`+id+`",`+c.fields+`}`)
			if !strings.Contains(got, c.want) {
				t.Errorf("%s: %q, want %q in it", c.fields, got, c.want)
			}
			if index := o.index(); c.due == "" && len(index) > 0 || c.due != "" && (len(index) != 1 || !strings.HasPrefix(index[0], c.due)) {
				t.Errorf("%s: index %q, want %q", c.fields, index, c.due)
			}
		}
	})
}

func TestATaskThatHasNoHourIsNotToldThatItHasTheHourAlready(t *testing.T) {
	o := newOffice(t, "UTC")
	id := o.make(`{"name":"n","prompt":"p","schedule_type":"cron","cron":"0 9 * * *"}`)
	for _, field := range []string{"hour", "minute"} {
		if text, err := o.run(ann, "update_scheduled_task", `{"task_id":"`+id+`","`+field+`":10}`); err == nil || !strings.Contains(err.Message, "cron has no '"+field+"'") {
			t.Errorf("%s: %q, %+v", field, text, err)
		}
	}
}

func TestATaskThatHasRunOnceMakesRoomForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "UTC", func(c *schedule.Config) { c.MaxTasks = 4 })
		o.set("2026-06-10T04:30:00Z")
		defer func() { o.stop() }()
		once := `{"name":"%s","prompt":"p","schedule_type":"one_time","date":"2026-06-10","hour":%d,"minute":0}`
		o.make(fmt.Sprintf(once, "early", 6))
		o.make(fmt.Sprintf(once, "late", 20))
		paused := o.make(fmt.Sprintf(once, "paused", 21))
		o.must("update_scheduled_task", `{"task_id":"`+paused+`","enabled":false}`)
		over := o.make(fmt.Sprintf(once, "paused until it was over", 5))
		o.must("update_scheduled_task", `{"task_id":"`+over+`","enabled":false}`)
		o.set("2026-06-10T05:30:00Z")
		if _, err := o.run(ann, "schedule_task", morning); err == nil || err.Code != "creation_failed" {
			t.Errorf("nothing has run yet, and a fifth task is made: %+v", err)
		}
		o.start()
		pass(2 * time.Hour)
		o.mu.Lock()
		key := o.runs[0].Key
		o.mu.Unlock()
		o.expect("20260610T0600")
		if _, err := o.run(ann, "schedule_task", morning); err == nil || err.Code != "creation_failed" {
			t.Errorf("the run has not ended yet, and a fifth task is made: %+v", err)
		}
		if err := o.RecordOutcome(t.Context(), schedule.Outcome{Owner: "fake:1", Key: key, MessageID: "1"}); err != nil {
			t.Fatal(err)
		}
		if got := o.must("schedule_task", morning); !strings.Contains(got, "was deleted: 'early'.") {
			t.Errorf("the answer does not say what was deleted: %q", got)
		}
		var names []string
		for _, task := range o.tasks("fake:1") {
			names = append(names, task.Name)
		}
		if slices.Sort(names); !slices.Equal(names, []string{"News", "late", "paused", "paused until it was over"}) {
			t.Errorf("tasks %q", names)
		}
	})
}

// A new schedule takes no other member's away, and what it takes away is announced: it might yet get a new date.
func TestMakingRoomRemovesNoScheduleOfAnotherUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "UTC", func(c *schedule.Config) { c.MaxTasks = 1 })
		o.set("2026-06-10T05:00:00Z")
		defer func() { o.stop() }()
		anna, bob := shared("fake:1", toolgroups.RoleUser), shared("fake:2", toolgroups.RoleUser)
		o.announced(anna, "schedule_task", `{"name":"Anna's","prompt":"p","schedule_type":"one_time","date":"2026-06-10","hour":6,"minute":0}`)
		o.start()
		pass(2 * time.Hour)
		if _, err := o.run(bob, "schedule_task", morning); err == nil || err.Code != "creation_failed" || o.tasks("fake:g")[0].User != "fake:1" {
			t.Errorf("Bob's call: %+v, tasks %+v", err, o.tasks("fake:g"))
		}
		if err := o.RecordOutcome(t.Context(), schedule.Outcome{Owner: "fake:g", Key: o.runs[0].Key, MessageID: "1"}); err != nil {
			t.Fatal(err)
		}
		create := o.Group().Tools[slices.IndexFunc(o.Group().Tools, func(one toolgroups.Tool) bool { return one.Name == "schedule_task" })]
		res, err := toolgroups.Run(t.Context(), nil, create, toolgroups.Call{Name: create.Name, Arguments: json.RawMessage(morning), Scope: anna})
		if err != nil || len(res.Announced) != 2 || !strings.Contains(res.Announced[0].Text, "I removed the schedule “Anna's”") {
			t.Fatalf("Anna's call: %+v, %v", res, err)
		}
		if err := errors.Join(o.undo(anna, res.Announced[1]), o.undo(anna, res.Announced[0])); err != nil || o.tasks("fake:g")[0].Name != "Anna's" {
			t.Errorf("after the undo: %+v, %v", o.tasks("fake:g"), err)
		}
	})
}

func TestAOneTimeTaskThatHasRunIsEnabledOnlyWithANewTime(t *testing.T) {
	at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
		id := o.make(`{"name":"n","prompt":"p","schedule_type":"one_time","date":"2026-06-10","hour":6,"minute":0}`)
		o.start()
		pass(2 * time.Hour)
		o.expect("20260610T0600")
		if _, err := o.run(ann, "update_scheduled_task", `{"task_id":"`+id+`","enabled":true}`); err == nil || err.Code != "update_failed" {
			t.Errorf("enabled as it is: %+v", err)
		}
		o.must("update_scheduled_task", `{"task_id":"`+id+`","name":"still fine"}`)
		o.must("update_scheduled_task", `{"task_id":"`+id+`","enabled":true,"hour":8}`)
		pass(2 * time.Hour)
		o.expect("20260610T0800")
	})
}

func TestRunNowChangesNeitherSwitchNorSchedule(t *testing.T) {
	at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
		id := o.make(morning)
		o.must("update_scheduled_task", `{"task_id":"`+id+`","enabled":false}`)
		run := `{"task_id":"` + id + `"}`
		if got := o.must("run_scheduled_task", run); !strings.Contains(got, "queued and runs in the background") {
			t.Errorf("told %q", got)
		}
		if got := o.must("run_scheduled_task", run); !strings.Contains(got, "already") {
			t.Errorf("told %q of a second run", got)
		}
		if task := o.tasks("fake:1")[0]; task.Enabled || !task.Due.IsZero() || len(task.History) != 1 || !task.History[0].Manual {
			t.Errorf("task %+v", task)
		}
		if len(o.runs) != 1 || o.runs[0].Title != "News" || o.runs[0].Prompt != "What is new?" {
			t.Fatalf("submitted %+v", o.runs)
		}
		if err := o.RecordOutcome(t.Context(), schedule.Outcome{Owner: "fake:1", Key: o.runs[0].Key, MessageID: "1"}); err != nil {
			t.Fatal(err)
		}
		o.refuses(errOut)
		if _, err := o.run(ann, "run_scheduled_task", run); err == nil || err.Code != "run_failed" || strings.Contains(err.Message, errOut.Error()) {
			t.Errorf("with nobody to take it: %+v", err)
		}
		if got := strings.Join(o.states(), " "); got != "delivered failed" {
			t.Errorf("history %q", got)
		}
	})
}

func TestNobodySeesOrChangesTasksOfOthers(t *testing.T) {
	o := newOffice(t, "UTC")
	id := o.make(morning)
	bob, group := ann, ann
	bob.User, bob.Owner, bob.Chat = "fake:2", "fake:2", "fake:2"
	group.Owner, group.Chat, group.Direct = "fake:1x", "fake:1x", false
	for _, scope := range []toolgroups.Scope{bob, group} {
		if text, err := o.run(scope, "list_scheduled_tasks", `{}`); err != nil || strings.Contains(text, id) {
			t.Errorf("%s sees %q, %v", scope.Owner, text, err)
		}
		for _, tool := range []string{"run_scheduled_task", "update_scheduled_task", "delete_scheduled_task"} {
			if _, err := o.run(scope, tool, `{"task_id":"`+id+`","name":"mine"}`); err == nil || !strings.Contains(err.Message, "There is no scheduled task") {
				t.Errorf("%s of %s: %+v", tool, scope.Owner, err)
			}
		}
	}
	if tasks := o.tasks("fake:1"); len(tasks) != 1 || tasks[0].Name != "News" || len(o.runs) != 0 {
		t.Errorf("left are %+v and runs %v", tasks, o.runs)
	}
}

func TestWhoWritesThePromptAnswersForIt(t *testing.T) {
	o := newOffice(t, "UTC")
	admin := toolgroups.Scope{User: "fake:1", Role: toolgroups.RoleAdmin, Chat: "fake:g:7", Owner: "fake:g"}
	guest := toolgroups.Scope{User: "fake:2", Role: toolgroups.RoleUser, Chat: "fake:g:8", Owner: "fake:g"}
	if _, err := o.run(guest, "schedule_task", morning); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ fields, user string }{{`"hour":9`, "fake:2"}, {`"prompt":"Delete all files"`, "fake:1"}} {
		if _, err := o.run(admin, "update_scheduled_task", `{"task_id":"`+o.tasks("fake:g")[0].ID+`",`+c.fields+`}`); err != nil {
			t.Fatal(err)
		}
		if task := o.tasks("fake:g")[0]; task.User != c.user || task.Chat != "fake:g:8" {
			t.Errorf("after %s it is a task of %s in %s", c.fields, task.User, task.Chat)
		}
	}
}

func TestAScheduledRunBreedsNoTasks(t *testing.T) {
	o := newOffice(t, "UTC")
	id := o.make(morning)
	alone := ann
	alone.Unasked = true
	for tool, args := range map[string]string{
		"schedule_task": morning, "run_scheduled_task": `{"task_id":"` + id + `"}`,
		"update_scheduled_task": `{"task_id":"` + id + `","enabled":false,"hour":9}`,
	} {
		if _, err := o.run(alone, tool, args); err == nil || err.Code != toolgroups.CodeDenied {
			t.Errorf("%s: %+v", tool, err)
		}
	}
	for _, tool := range []string{"list_scheduled_tasks", "update_scheduled_task", "delete_scheduled_task"} {
		if _, err := o.run(alone, tool, `{"task_id":"`+id+`","enabled":false}`); err != nil {
			t.Errorf("%s: %+v", tool, err)
		}
	}
}

// FuzzSchedule gives the tools any arguments, and the clock any records: nothing
// panics, what is accepted is due in the future, and what is refused says why.
func FuzzSchedule(f *testing.F) {
	for _, c := range failures() {
		f.Add(c.args, "schedule/due/20260610T050000Z/fake:1/x", c.args)
	}
	f.Add(morning, "schedule/task/fake:1/x", `{"id":"x","owner":"fake:1","enabled":true,"plan":{"kind":"weekly"},"due":"2026-01-01T00:00:00Z"}`)
	f.Fuzz(func(t *testing.T, args, key, value string) {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t, "Europe/Berlin")
			if len(key) < storage.MaxKey {
				if _, err := o.store.Put(context.Background(), "schedule/"+strings.TrimPrefix(key, "schedule/"), []byte(value), storage.Any); err != nil {
					t.Fatal(err)
				}
			}
			for _, tool := range o.Group().Tools {
				if text, err := o.run(ann, tool.Name, args); err == nil && text == "" || err != nil && (err.Code == "" || err.Message == "") {
					t.Errorf("%s: %q, %+v", tool.Name, text, err)
				}
			}
			for _, task := range o.tasks("fake:1") {
				if task.ID != "x" && task.Enabled && !task.Due.After(o.now()) {
					t.Errorf("task %+v is not due in the future", task)
				}
			}
			o.start()
			pass(time.Minute)
			o.stop()
		})
	})
}
