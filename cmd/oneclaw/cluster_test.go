package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
	"oneclaw/storage"
	"oneclaw/storage/postgres"
	"oneclaw/storage/postgres/pgtest"
	"oneclaw/storage/replicas"
)

// cluster is some programs on one database, which serve the same bot on both platforms.
type cluster struct {
	t *testing.T
	*harness
	ttl time.Duration // of the replicas
	// base is the URL of the database on the server that the test began with.
	base             string
	primary, standby *pgtest.Server
	replicas         []*replica
	// formats is how many formats more the newest program knows.
	formats int

	slack  *slack.Server
	people []int64
	rooms  []*room
	said   int
	posted *postbox
	hooks  *poster
}

// room is a thread of Slack in which one person writes.
type room struct {
	channel, who, root string
	// sent are the envelopes of each message, free says that those of the message before
	// it were acknowledged when it was written.
	sent [][]string
	free []bool
}

// replica is one program, with lines of its own to both servers and with a clock of its own.
type replica struct {
	*harness
	name  string
	lines [2]*line
	clock *offClock
	bot   *process
}

// postbox is a service with an effect: it counts how often each text was posted to it.
type postbox struct {
	*httptest.Server
	mu    sync.Mutex
	times map[string]int
}

func newPostbox(t *testing.T) *postbox {
	p := &postbox{times: map[string]int{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the program was ended in the middle; it has begun all the same
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.times[string(body)]++
	}))
	t.Cleanup(p.Close)
	return p
}

// call is an effect that posts a text.
func (p *postbox) call(text string) openai.ToolCall {
	return openai.ToolCall{ID: "call_1", Name: "http_request", Arguments: fmt.Sprintf(`{"url":%q,"method":"POST","body":%q}`, p.URL, text)}
}

// flooded is a model like repeating which posts every fourth message to a service.
func flooded(service *postbox) openai.Responder {
	return openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		last := req.Messages[len(req.Messages)-1]
		if n, ok := numberOf(last.Content); last.Role != "user" || !ok || !isPosted(n) {
			return repeating(ctx, req)
		}
		return openai.Reply{Calls: []openai.ToolCall{service.call(last.Content)}}, nil
	})
}

func isPosted(message int) bool { return message%4 == 0 }

// newCluster starts a server, one that follows it, and so many programs on them, with the
// settings of env besides those of all.
func newCluster(t *testing.T, size int, ttl time.Duration, env ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, ttl: ttl, primary: &pgtest.Server{}, posted: newPostbox(t)}
	c.base = c.primary.Database(t)
	t.Cleanup(func() { _ = c.primary.Stop() })
	c.standby = c.primary.Standby(t)
	c.harness = newHarness(t, hooking(employing(c.posted.call, flooded(c.posted))))
	c.moveIn(ttl)
	for _, setting := range env {
		name, value, _ := strings.Cut(setting, "=")
		c.env[name] = value
	}
	for n := range size {
		c.replicas = append(c.replicas, c.newReplica(fmt.Sprint("replica ", n)))
	}
	var starting sync.WaitGroup
	for _, r := range c.replicas {
		r.launch()
	}
	for _, r := range c.replicas {
		starting.Go(r.awaitStart)
	}
	starting.Wait()
	var addresses []string
	for _, r := range c.replicas {
		addresses = append(addresses, r.env["ONECLAW_LISTEN"])
	}
	c.hooks = newPoster(c.harness, c.replicas[0].bot, addresses...)
	return c
}

// startedLine is in the log of a program that serves.
const startedLine = `"msg":"started"`

// moveIn adds people on both platforms and the settings that all replicas share.
func (c *cluster) moveIn(ttl time.Duration) {
	var err error
	token := c.env["TELEGRAM_BOT_TOKEN"]
	c.slack, _, _ = c.withSlackThatWaits(c.t, time.Second)
	maps.Copy(c.env, map[string]string{
		"TELEGRAM_BOT_TOKEN": token, "ONECLAW_ALLOW": "*", "ONECLAW_SECRET_KEY": strings.Repeat("ab", 32),
		"ONECLAW_TOOLS_ALLOW_PRIVATE": "127.0.0.0/8", "ONECLAW_PUBLIC_URL": hookAddress, ttlVariable: ttl.String(),
		"ONECLAW_MAX_UNATTENDED_RUNS": floodOfRuns,
	})
	for n := range 6 {
		c.people = append(c.people, c.person(fmt.Sprint("person ", n)))
	}
	for _, name := range []string{"ann", "bob", "cleo"} {
		r := &room{who: c.slack.AddUser(slack.User{Name: name, RealName: name}).ID}
		if r.channel, err = c.slack.AddChannel(slack.ChannelSpec{Name: "room-" + name, Members: []string{r.who}}); err != nil {
			c.t.Fatal(err)
		}
		c.rooms = append(c.rooms, r)
	}
}

func (c *cluster) newReplica(name string) *replica {
	w := *c.harness
	w.env = maps.Clone(c.env)
	w.env["ONECLAW_DATA_DIR"], w.env["ONECLAW_LISTEN"] = c.t.TempDir(), freeAddress(c.t)
	r := &replica{harness: &w, name: name, clock: newOffClock(c.t, &w)}
	r.settings("approvals:\n- {tool: http_request, policy: allow}" + lastingRules)
	for n, server := range []*pgtest.Server{c.primary, c.standby} {
		r.lines[n] = newLine(c.t, server.Address())
	}
	u, err := url.Parse(c.base)
	if err != nil {
		c.t.Fatal(err)
	}
	u.Host = r.lines[0].address() + "," + r.lines[1].address()
	q := u.Query()
	q.Set("connect_timeout", "2")
	u.RawQuery = q.Encode()
	r.env["ONECLAW_STORE"] = u.String()
	return r
}

// launch starts the program without waiting for it.
func (r *replica) launch() { r.bot = start(r.t, r.env, "run") }

func (r *replica) restart() {
	r.launch()
	r.awaitStart()
}

// awaitStart waits until the program serves. One that ended because its database did not answer in time
// is started again, as a service manager does.
func (r *replica) awaitStart() {
	r.t.Helper()
	for begun := time.Now(); !r.bot.out.awaitUnless(r.t, startedLine, r.bot.done); r.launch() {
		if !strings.Contains(r.bot.out.String(), "cannot be reached") || time.Since(begun) > patience {
			r.t.Fatalf("%s ended during its start: %s", r.name, tail(r.bot.out.String(), 4000))
		}
	}
}

func (r *replica) signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.bot.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

// read opens the database as it is now on the server that takes writes.
func (c *cluster) read(look func(*postgres.Store)) {
	c.t.Helper()
	c.readIn(c.t.Context(), look)
}

func (c *cluster) readIn(ctx context.Context, look func(*postgres.Store)) {
	c.t.Helper()
	u, err := url.Parse(c.base)
	if err != nil {
		c.t.Fatal(err)
	}
	u.Host = c.primary.Address()
	store, err := postgres.Open(ctx, postgres.Config{URL: u.String(), MaxConns: 2})
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	look(store)
}

// dumpVariable names a folder that gets what the programs of a failed test have printed, with
// all their goroutines.
const dumpVariable = "TEST_ONECLAW_DUMP"

// explain shows what is left in the database where a test has failed.
func (c *cluster) explain() {
	if !c.t.Failed() {
		return
	}
	ctx := context.WithoutCancel(c.t.Context())
	dir := os.Getenv(dumpVariable)
	if dir == "" {
		dir = c.t.TempDir()
	}
	for _, r := range c.replicas {
		_ = r.bot.cmd.Process.Signal(syscall.SIGCONT) // it may have ended
		r.bot.kill(syscall.SIGQUIT)
		if err := os.WriteFile(filepath.Join(dir, r.name), []byte(r.bot.out.String()), 0o600); err != nil {
			c.t.Error(err)
		}
	}
	for _, r := range c.rooms {
		answers := strings.Join(c.answersIn(r), "\n") + "\n"
		for n, sent := range r.sent {
			if text := fmt.Sprint(" ", n+1, "\n"); !strings.Contains(answers, text) {
				c.slack.View(func(s slack.State) {
					for _, id := range sent {
						e, _ := s.Envelope(id)
						c.t.Logf("message %d of %s is not answered: %+v", n+1, r.who, e)
					}
				})
			}
		}
	}
	c.readIn(ctx, func(store *postgres.Store) {
		members, err := replicas.List(ctx, store)
		c.t.Logf("%+v, %v", members, err)
		for entry, err := range store.List(ctx, storage.Range{Prefix: queue.OpenPrefix}) {
			c.t.Logf("%d %s %s, %v", entry.Revision, entry.Key, entry.Value, err)
		}
		var all strings.Builder
		for entry, err := range store.List(ctx, storage.Range{Prefix: receipts.Prefix}) {
			fmt.Fprintf(&all, "%d %s %s, %v\n", entry.Revision, entry.Key, entry.Value, err)
		}
		for log, err := range store.Logs(ctx, storage.Range{}) {
			fmt.Fprintln(&all, log, err)
			for record, err := range store.Records(ctx, log, storage.Query{}) {
				fmt.Fprintf(&all, "%d %s %v\n", record.Pos, record.Data, err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "store"), []byte(all.String()), 0o600); err != nil {
			c.t.Error(err)
		}
	})
}
