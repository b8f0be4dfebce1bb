package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

// The benchmarks run the program as a process of its own, with every write on disk,
// against emulators in this one. Run them with
//
//	go test -run '^$' -bench . ./cmd/oneclaw
//
// The figures with names such as p50-ms are what they report; ns/op has no meaning.

// crowd is people who write one message after another, each once the former is answered.
type crowd struct {
	w      *harness
	bot    *process
	people []int64
	next   map[int64]chan struct{}
	// brain is the tool that is called when somebody writes "message 1"; nil for none.
	brain atomic.Pointer[openai.ToolCall]
}

// newCrowd starts a bot whose model takes latency for each answer.
func newCrowd(b *testing.B, size int, latency time.Duration) *crowd {
	b.Helper()
	c := gather(b, size, latency)
	c.bot = c.w.run()
	return c
}

// gather is newCrowd without a bot.
func gather(b *testing.B, size int, latency time.Duration) *crowd {
	b.Helper()
	c := &crowd{next: map[int64]chan struct{}{}}
	w := newHarness(b, openai.ResponderFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
		last := req.Messages[len(req.Messages)-1]
		if call := c.brain.Load(); call != nil && last.Role == "user" && last.Content == "message 1" {
			return openai.Reply{Calls: []openai.ToolCall{*call}}, nil
		}
		return openai.Reply{Text: "re: " + last.Content[:min(len(last.Content), 100)], Delay: latency}, nil
	}))
	c.w = w
	w.settings("approvals: [{tool: exec, policy: allow}]\n")
	for n := range size {
		who := w.person(fmt.Sprint("person ", n))
		c.people = append(c.people, who)
		c.next[who] = make(chan struct{}, 16)
	}
	events, cancel := w.telegram.Subscribe(100_000)
	b.Cleanup(cancel)
	go func() {
		for e := range events {
			if e.Kind == telegram.EventMessage && e.Snapshot != nil && e.Snapshot.FromBot {
				c.next[e.Chat] <- struct{}{}
			}
		}
	}()
	return c
}

// exchange has one person write once and returns how long the answer took.
func (c *crowd) exchange(b *testing.B, who int64, n int) time.Duration {
	begun := time.Now()
	if _, err := c.w.telegram.Say(who, who, fmt.Sprint("message ", n), nil); err != nil {
		b.Error(err)
	}
	select {
	case <-c.next[who]:
	case <-time.After(patience):
		b.Error("no answer")
	}
	return time.Since(begun)
}

// all has everybody write so many messages and returns all times, sorted.
func (c *crowd) all(b *testing.B, messages int) []time.Duration {
	var (
		mu    sync.Mutex
		times []time.Duration
		wg    sync.WaitGroup
	)
	for _, who := range c.people {
		wg.Go(func() {
			for n := range messages {
				took := c.exchange(b, who, n)
				mu.Lock()
				times = append(times, took)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(times)
	return times
}

func report(b *testing.B, times []time.Duration) {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(times[len(times)/2]), "p50-ms")
	b.ReportMetric(ms(times[len(times)*99/100]), "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// cpu is the processor time that the bot has used.
func (p *process) cpu(b *testing.B) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		b.Skip("processor time is read from /proc")
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // 100 ticks a second on Linux
}

// resident is the memory of the bot in bytes.
func (p *process) resident(b *testing.B) float64 { return p.status(b, "VmRSS") }

// status is what the system says of the memory of the bot in bytes: VmRSS, RssAnon, VmHWM.
func (p *process) status(b *testing.B, what string) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		b.Skip("memory is read from /proc")
	}
	_, rest, _ := strings.Cut(string(status), what+":")
	kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	return kib * 1024
}

func BenchmarkOneChatInstantModel(b *testing.B) {
	c := newCrowd(b, 1, 0)
	c.all(b, 50)
	const messages = 500
	for b.Loop() {
		before := c.bot.cpu(b)
		times := c.all(b, messages)
		report(b, times)
		b.ReportMetric(float64((c.bot.cpu(b)-before).Microseconds())/1000/messages, "cpu-ms/msg")
	}
}

func BenchmarkFiftyChats(b *testing.B) {
	c := newCrowd(b, 50, 50*time.Millisecond)
	c.all(b, 2)
	for b.Loop() {
		before := c.bot.cpu(b)
		report(b, c.all(b, 20))
		b.ReportMetric(float64((c.bot.cpu(b)-before).Microseconds())/1000/1000, "cpu-ms/msg")
	}
}

func BenchmarkFiveHundredChats(b *testing.B) {
	for b.Loop() {
		c := newCrowd(b, 500, 50*time.Millisecond)
		report(b, c.all(b, 4))
		b.ReportMetric(c.bot.resident(b)/(1<<20), "MiB")
		c.bot.kill(9)
	}
}

// BenchmarkLongChat compares the processor time of a message around the 2,000th of a
// chat with that around the 100th.
func BenchmarkLongChat(b *testing.B) {
	for b.Loop() {
		c := newCrowd(b, 1, 0)
		c.all(b, 50)
		early := c.bot.cpu(b)
		c.all(b, 200)
		early = c.bot.cpu(b) - early
		c.all(b, 1700)
		late := c.bot.cpu(b)
		c.all(b, 200)
		late = c.bot.cpu(b) - late
		b.ReportMetric(float64(early.Microseconds())/1000/200, "early-cpu-ms/msg")
		b.ReportMetric(float64(late.Microseconds())/1000/200, "late-cpu-ms/msg")
		b.ReportMetric(float64(late)/float64(early), "late/early")
		b.ReportMetric(0, "ns/op")
		c.bot.kill(9)
	}
}

// BenchmarkStart measures from the start of the process to its first poll, and what it
// holds in memory when it has nothing to do.
func BenchmarkStart(b *testing.B) {
	newHarness(b, openai.Offline{}).measureStart(b)
}

// runaways are calls of tools that would never end, or take everything, if nobody
// stopped them.
func runaways() map[string]openai.ToolCall {
	script := func(code string) openai.ToolCall {
		arguments, _ := json.Marshal(map[string]any{"code": code, "timeout_seconds": 2}) // strings and a number
		return openai.ToolCall{ID: "1", Name: "js_eval", Arguments: string(arguments)}
	}
	command := func(line string) openai.ToolCall {
		arguments, _ := json.Marshal(map[string]any{"command": line, "timeout_seconds": 2}) // strings and a number
		return openai.ToolCall{ID: "1", Name: "exec", Arguments: string(arguments)}
	}
	return map[string]openai.ToolCall{
		"EndlessLoop":       script("while (true) {}"),
		"EndlessAllocation": script("const all = []; while (true) all.push('x'.repeat(1 << 20))"),
		"ReDoS":             script("/^(a+)+$/.test('a'.repeat(40) + '!')"),
		"ForkBomb":          command(":(){ :|:& };:"),
	}
}

// BenchmarkRunaway lets one chat run a runaway tool again and again and measures what
// that costs another.
func BenchmarkRunaway(b *testing.B) {
	for name, call := range runaways() {
		b.Run(name, func(b *testing.B) {
			c := newCrowd(b, 2, 0)
			c.brain.Store(&call)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				c.exchange(b, c.people[0], 1)
			}()
			var times []time.Duration
			for b.Loop() {
				for running := true; running; {
					times = append(times, c.exchange(b, c.people[1], 0))
					select {
					case <-ended:
						running = false
					default:
					}
				}
			}
			slices.Sort(times)
			report(b, times)
		})
	}
}
