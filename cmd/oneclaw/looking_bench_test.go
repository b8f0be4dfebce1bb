package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"oneclaw/internal/admin/filled"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/storage/postgres"
	"oneclaw/storage/postgres/pgtest"
)

const (
	// refresh is how often an open page asks for itself, as its script does.
	refresh = 4 * time.Second
	// window is how long each way of looking is measured in a round.
	window = 12 * time.Second
)

// BenchmarkLooking has people write while administrators look, over a store of so many receipts
// as TEST_ONECLAW_ADMIN_RECEIPTS says. Each iteration has all ways of looking once, in turns;
// what is reported is the mean of each, and how much more it is than with nobody, with twice its
// standard error.
func BenchmarkLooking(b *testing.B) {
	receipts, err := strconv.Atoi(os.Getenv("TEST_ONECLAW_ADMIN_RECEIPTS"))
	if err != nil {
		receipts = 20_000
	}
	for _, engine := range []string{"bolt", "postgres"} {
		b.Run(engine, func(b *testing.B) {
			c := watched(b, engine, receipts)
			for _, load := range []struct {
				name  string
				pause time.Duration
			}{{"steady", 500 * time.Millisecond}, {"full", 0}} {
				b.Run(load.name, func(b *testing.B) { c.compare(b, load.pause) })
			}
			b.Run("hourly", c.hourly)
		})
	}
}

// lookout is a crowd with administrators.
type lookout struct {
	*crowd

	visitors []*visitor
}

// watched starts a bot over a store with so many receipts, and waits until it has looked through
// them.
func watched(b *testing.B, engine string, receipts int) *lookout {
	b.Helper()
	c := &lookout{crowd: gather(b, 31, 50*time.Millisecond)}
	boss := c.people[30]
	c.people = c.people[:30]
	c.w.env["ONECLAW_ADMINS"], c.w.env["ONECLAW_LISTEN"] = fmt.Sprint("telegram:", boss), freeAddress(b)
	if engine == "postgres" {
		server := &pgtest.Server{Settings: []string{"fsync=on"}}
		c.w.env["ONECLAW_STORE"], c.w.env["ONECLAW_SECRET_KEY"] = server.Database(b), strings.Repeat("ab", 32)
		b.Cleanup(func() { _ = server.Stop() })
	}
	c.w.run().kill(syscall.SIGTERM)
	c.fill(b, receipts)
	c.bot = c.w.run()
	for range 4 {
		c.visitors = append(c.visitors, c.w.visit(c.bot, boss, ""))
		<-c.next[boss]
	}
	begun := time.Now()
	c.all(b, 10)
	for tick := time.NewTicker(time.Second); !strings.Contains(c.visitors[0].see("/admin/"), "counted until now"); {
		<-tick.C
	}
	b.Logf("%d receipts were looked through within %s", receipts, time.Since(begun).Round(time.Second))
	return c
}

// fill makes the store large that a bot has begun.
func (c *lookout) fill(b *testing.B, receipts int) {
	b.Helper()
	var store storage.Store
	var err error
	if url := c.w.env["ONECLAW_STORE"]; url != "" {
		store, err = postgres.Open(b.Context(), postgres.Config{URL: url})
	} else {
		store, err = bolt.Open(bolt.Config{Path: filepath.Join(c.w.env["ONECLAW_DATA_DIR"], databaseName), NoSync: true})
	}
	if err == nil {
		err = filled.WriteWeek(b.Context(), store, time.Now(), receipts)
	}
	if err == nil {
		err = store.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
}

// ways of looking, nobody first.
var ways = []struct {
	name string
	look func(ctx context.Context, all []*visitor)
}{
	{"nobody", func(context.Context, []*visitor) {}},
	{"one", func(ctx context.Context, all []*visitor) { all[0].stay(ctx, "/admin/") }},
	{"four", func(ctx context.Context, all []*visitor) {
		var group sync.WaitGroup
		for i, path := range []string{"/admin/", "/admin/messages", "/admin/conversations", "/admin/spending"} {
			group.Go(func() { all[i].stay(ctx, path) })
		}
		group.Wait()
	}},
	{"leafing", func(ctx context.Context, all []*visitor) { all[0].leaf(ctx) }},
}

// stay keeps a page open.
func (v *visitor) stay(ctx context.Context, path string) {
	r := v.request(http.MethodGet, path, nil)
	for tick := time.NewTicker(refresh); ; {
		if answer := v.ask(ctx, r.Clone(ctx)); answer.status != 0 {
			r.Header.Set("If-None-Match", answer.header.Get("ETag"))
			r.Header.Set("OneClaw-Live", "1")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

var nextPages = regexp.MustCompile(`href="([^"]+)" rel="next"`)

// leaf goes through a long list, a page a second, and takes each fifth as a file of 1,000 rows.
func (v *visitor) leaf(ctx context.Context) {
	path := "/admin/messages"
	tick := time.NewTicker(time.Second)
	for n := 1; ; n++ {
		if next := nextPages.FindStringSubmatch(v.ask(ctx, v.request(http.MethodGet, path, nil)).body); next != nil {
			path = strings.ReplaceAll(next[1], "&amp;", "&")
		}
		if n%5 == 0 {
			v.ask(ctx, v.request(http.MethodGet, strings.Replace(path, "?", "?csv=messages&", 1), nil))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// figures are what is measured in a window.
var figures = []string{"msg/s", "p50-ms", "p99-ms", "cpu-ms/msg", "KB/msg"}

// measure has everybody write for a window while some look.
func (c *lookout) measure(b *testing.B, pause time.Duration, look func(context.Context, []*visitor)) [5]float64 {
	ctx, cancel := context.WithTimeout(b.Context(), window)
	defer cancel()
	cpu, bytes := c.used()
	begun := time.Now()
	var looking, writing sync.WaitGroup
	looking.Go(func() { look(ctx, c.visitors) })
	times := make([][]time.Duration, len(c.people))
	for i, who := range c.people {
		writing.Go(func() {
			pace := rate.NewLimiter(rate.Every(pause), 1)
			for n := 2; pace.Wait(ctx) == nil; n++ {
				times[i] = append(times[i], c.exchange(b, who, n))
			}
		})
	}
	writing.Wait()
	looking.Wait()
	seconds := time.Since(begun).Seconds()
	cpuAfter, bytesAfter := c.used()
	all := slices.Concat(times...)
	slices.Sort(all)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	n := float64(len(all))
	return [5]float64{n / seconds, ms(all[len(all)/2]), ms(all[len(all)*99/100]), (cpuAfter - cpu) * 1000 / n, (bytesAfter - bytes) / 1000 / n}
}

var usage = regexp.MustCompile(`(?m)^(process_cpu_seconds_total|go_memstats_alloc_bytes_total) (\S+)$`)

// used is what the bot has used so far: processor time in seconds, and bytes allocated.
func (c *lookout) used() (cpu, bytes float64) {
	for _, m := range usage.FindAllStringSubmatch(c.visitors[0].see("/metrics"), -1) {
		value, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			c.w.t.Error(err)
		}
		if strings.HasPrefix(m[1], "process") {
			cpu = value
		} else {
			bytes = value
		}
	}
	return cpu, bytes
}

// compare measures all ways of looking in turns.
func (c *lookout) compare(b *testing.B, pause time.Duration) {
	names, got := make([]string, len(ways)), make([][][5]float64, len(ways))
	for b.Loop() {
		for _, i := range rand.Perm(len(ways)) {
			names[i], got[i] = ways[i].name, append(got[i], c.measure(b, pause, ways[i].look))
		}
	}
	differences(b, names, got)
}

// hourly has everybody write when the run that looks through all receipts is over, and while it
// goes on: it begins with the program.
func (c *lookout) hourly(b *testing.B) {
	got := make([][][5]float64, 2)
	for b.Loop() {
		c.bot.kill(syscall.SIGTERM)
		c.bot = c.w.run()
		for i := range got {
			c.all(b, 5)
			got[1-i] = append(got[1-i], c.measure(b, 500*time.Millisecond, ways[0].look))
			c.rests()
		}
	}
	differences(b, []string{"after", "meanwhile"}, got)
}

// rests returns once the bot uses next to no processor time.
func (c *lookout) rests() {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for before, _ := c.used(); ; {
		<-tick.C
		now, _ := c.used()
		if now-before < 0.02 {
			return
		}
		before = now
	}
}

// differences reports the figures of each, and how much more they are than those of the first.
func differences(b *testing.B, names []string, got [][][5]float64) {
	for i, name := range names {
		for k, figure := range figures {
			sum, more, squares, n := 0.0, 0.0, 0.0, float64(len(got[i]))
			for round := range got[i] {
				d := got[i][round][k] - got[0][round][k]
				sum, more, squares = sum+got[i][round][k], more+d, squares+d*d
			}
			b.ReportMetric(sum/n, name+":"+figure)
			if i > 0 {
				b.Logf("%-9s %-10s %8.2f, %s %8.2f: %+.2f ± %.2f", name, figure, sum/n, names[0], (sum-more)/n, more/n, 2*math.Sqrt(max(0, squares-more*more/n)/max(1, n-1)/n))
			}
		}
	}
	b.ReportMetric(0, "ns/op")
}
