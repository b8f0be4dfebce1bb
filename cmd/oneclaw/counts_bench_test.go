package main

import (
	"bufio"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkCounts reports what a message costs in counts, which do not depend on what else the machine
// does: allocations and bytes, processor time, and waits for the disk where strace may count them.
// To compare two builds, run it in both, one right after the other.
func BenchmarkCounts(b *testing.B) {
	for _, load := range []struct {
		chats, messages int
		latency         time.Duration
	}{{1, 200, 0}, {50, 20, 50 * time.Millisecond}, {2000, 4, 50 * time.Millisecond}} {
		b.Run(fmt.Sprint(load.chats), func(b *testing.B) {
			for b.Loop() {
				c := gather(b, load.chats, load.latency)
				c.w.env["ONECLAW_LISTEN"] = freeAddress(b)
				c.bot = c.w.run()
				c.all(b, max(50/load.chats, 2)) // warm
				messages := float64(load.chats * load.messages)
				objects, bytes, used := c.counter(b, "go_memstats_mallocs_total"), c.counter(b, "go_memstats_alloc_bytes_total"), c.bot.cpu(b)
				c.all(b, load.messages)
				b.ReportMetric((c.counter(b, "go_memstats_mallocs_total")-objects)/messages, "allocs/msg")
				b.ReportMetric((c.counter(b, "go_memstats_alloc_bytes_total")-bytes)/messages/1024, "KiB/msg")
				b.ReportMetric(float64((c.bot.cpu(b)-used).Microseconds())/1000/messages, "cpu-ms/msg")
				waits := diskWaits(b, c.bot)
				c.all(b, load.messages)
				b.ReportMetric(waits()/messages, "fdatasync/msg")
				b.ReportMetric(0, "ns/op")
				c.bot.kill(syscall.SIGKILL)
			}
		})
	}
}

// counter reads a number from the metrics of the bot.
func (c *crowd) counter(b *testing.B, name string) float64 {
	b.Helper()
	for line := range strings.Lines(get(b, "http://"+c.w.env["ONECLAW_LISTEN"]+"/metrics")) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
	}
	b.Fatalf("/metrics has no %s", name)
	return 0
}

// diskWaits counts the calls of fdatasync of a bot from now on, until it is asked how many there were.
func diskWaits(b *testing.B, bot *process) (count func() float64) {
	b.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		b.Skip("strace is not installed")
	}
	cmd := exec.CommandContext(b.Context(), strace, "-f", "-e", "trace=fdatasync", "-p", fmt.Sprint(bot.cmd.Process.Pid))
	said, err := cmd.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "attached") {
			break
		}
	}
	counted := make(chan float64, 1)
	go func() {
		n := 0.0
		for lines.Scan() {
			if strings.Contains(lines.Text(), "fdatasync(") {
				n++
			}
		}
		counted <- n
	}()
	return func() float64 {
		_ = cmd.Process.Signal(syscall.SIGINT)
		n := <-counted
		_ = cmd.Wait() // it ends by the signal
		return n
	}
}
