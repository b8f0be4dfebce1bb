package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oneclaw/storage/postgres/pgtest"
)

// engines are what the benchmarks compare: how many programs share a server; 0 is one with
// a file.
var engines = []struct {
	name     string
	programs int
}{{"bolt", 0}, {"postgres", 1}, {"three", 3}}

// serve starts the programs of a crowd.
func (c *crowd) serve(b *testing.B, programs int) (bots []*process) {
	b.Helper()
	if programs == 0 {
		c.bot = c.w.run()
		return []*process{c.bot}
	}
	server := &pgtest.Server{Settings: []string{"fsync=on"}}
	c.w.env["ONECLAW_STORE"] = server.Database(b)
	c.w.env["ONECLAW_SECRET_KEY"] = strings.Repeat("ab", 32)
	b.Cleanup(func() { _ = server.Stop() })
	for range programs {
		c.w.env["ONECLAW_DATA_DIR"] = b.TempDir()
		bot := start(b, c.w.env, "run")
		bot.out.await(b, startedLine)
		bots = append(bots, bot)
	}
	return bots
}

// BenchmarkEngines has the same loads on each engine.
func BenchmarkEngines(b *testing.B) {
	loads := []struct {
		chats, messages int
		latency         time.Duration
	}{{1, 300, 0}, {50, 20, 50 * time.Millisecond}, {500, 4, 50 * time.Millisecond}}
	for _, load := range loads {
		for _, engine := range engines {
			b.Run(fmt.Sprintf("%d/%s", load.chats, engine.name), func(b *testing.B) {
				for b.Loop() {
					c := gather(b, load.chats, load.latency)
					bots := c.serve(b, engine.programs)
					if load.chats < 500 {
						c.all(b, 20) // warm
					}
					var used time.Duration
					for _, bot := range bots {
						used -= bot.cpu(b)
					}
					report(b, c.all(b, load.messages))
					for _, bot := range bots {
						used += bot.cpu(b)
						defer bot.kill(9)
					}
					b.ReportMetric(float64(used.Microseconds())/1000/float64(load.chats*load.messages), "cpu-ms/msg")
				}
			})
		}
	}
}
