package schedule_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/schedule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ann = toolgroups.Scope{
	User: "fake:1", Role: toolgroups.RoleUser, Chat: "fake:1", Direct: true, Owner: "fake:1", Session: "fake:1/1",
}

// harness is a schedule with a clock that can be set and a place for what it submits,
// which knows the keys that it has seen.
type harness struct {
	*schedule.Schedule
	t     testing.TB
	cfg   schedule.Config
	store storage.Store
	stop  func()

	mu     sync.Mutex
	offset time.Duration
	zone   *time.Location
	runs   []schedule.Run
	twice  int
	refuse error
}

func newOffice(t testing.TB, zoneName string, change ...func(*schedule.Config)) *harness {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	o := &harness{t: t, store: store, zone: zone(t, zoneName), stop: func() {}}
	t.Cleanup(func() {
		o.stop()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	o.cfg = schedule.Config{
		Store: store, Submit: o.submit, Now: o.now, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Location: func() *time.Location {
			o.mu.Lock()
			defer o.mu.Unlock()
			return o.zone
		},
	}
	for _, c := range change {
		c(&o.cfg)
	}
	o.open()
	return o
}

func (o *harness) open() {
	o.t.Helper()
	s, err := schedule.New(o.cfg)
	if err != nil {
		o.t.Fatal(err)
	}
	o.Schedule = s
}

// start runs the clock until stop.
func (o *harness) start() {
	o.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	s := o.Schedule
	go func() { done <- s.Run(ctx) }()
	before := o.stop
	o.stop = sync.OnceFunc(func() {
		before()
		cancel()
		if err := <-done; err != nil {
			o.t.Error(err)
		}
	})
}

func (o *harness) submit(_ context.Context, run schedule.Run) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refuse != nil {
		return o.refuse
	}
	if slices.ContainsFunc(o.runs, func(r schedule.Run) bool { return r.Key == run.Key }) {
		o.twice++
		return nil
	}
	o.runs = append(o.runs, run)
	return nil
}

func (o *harness) now() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Now().Add(o.offset)
}

// jump sets the clock forward or back.
func (o *harness) jump(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.offset += d
}

func (o *harness) set(at string) { o.jump(instant(o.t, at).Sub(o.now())) }

func (o *harness) refuses(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refuse = err
}

// moment returns the second half of a run's key, without the version of its task.
func moment(r schedule.Run) string {
	_, suffix, _ := strings.Cut(r.Key, ".")
	when, _, _ := strings.Cut(suffix, "-")
	return when
}

// take returns the runs since the last take, as their moments and
// what their titles say of lateness.
func (o *harness) take() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	shown := []string{}
	for _, r := range o.runs {
		when := moment(r)
		if _, late, ok := strings.Cut(r.Title, " ("); ok {
			when += " (" + late
		}
		shown = append(shown, when)
	}
	o.runs = nil
	return shown
}

func (o *harness) expect(want ...string) {
	o.t.Helper()
	if got := o.take(); !slices.Equal(got, want) {
		o.t.Errorf("runs %q, want %q", got, want)
	}
}

// run dispatches a call as the agent does, with validation.
func (o *harness) run(scope toolgroups.Scope, tool, args string) (string, *toolgroups.Error) {
	o.t.Helper()
	for _, tl := range o.Group().Tools {
		if tl.Name == tool {
			res, err := toolgroups.Run(context.Background(), nil, tl, toolgroups.Call{Name: tool, Arguments: json.RawMessage(args), Scope: scope})
			return res.Text, err
		}
	}
	o.t.Fatalf("there is no tool %s", tool)
	return "", nil
}

func (o *harness) must(tool, args string) string {
	o.t.Helper()
	text, err := o.run(ann, tool, args)
	if err != nil {
		o.t.Fatalf("%s(%s): %s: %s", tool, args, err.Code, err.Message)
	}
	return text
}

// make creates a task and returns its id.
func (o *harness) make(args string) string {
	o.t.Helper()
	_, rest, _ := strings.Cut(o.must("schedule_task", args), "(id ")
	id, _, _ := strings.Cut(rest, ")")
	return id
}

func (o *harness) tasks(owner string) []schedule.Task {
	o.t.Helper()
	tasks, err := o.Tasks(context.Background(), owner)
	if err != nil {
		o.t.Fatal(err)
	}
	return tasks
}

func (o *harness) states() []string {
	o.t.Helper()
	var states []string
	for _, e := range o.tasks("fake:1")[0].History {
		states = append(states, string(e.State))
	}
	return states
}

// index returns the keys of the index.
func (o *harness) index() []string {
	o.t.Helper()
	keys := []string{}
	for entry, err := range o.store.List(context.Background(), storage.Range{Prefix: "schedule/due/"}) {
		if err != nil {
			o.t.Fatal(err)
		}
		keys = append(keys, strings.TrimPrefix(entry.Key, "schedule/due/"))
	}
	return keys
}

// pass lets time pass in a synctest bubble.
func pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
}

const day = 24 * time.Hour

const morning = `{"name":"News","prompt":"What is new?","schedule_type":"daily","hour":8,"minute":0}`

var errOut = errors.New("out of order")
