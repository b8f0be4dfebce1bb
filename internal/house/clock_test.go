package house

import (
	"go/ast"
	"path"
)

// clocks are where the program may look at the clock by itself, with what for. All other
// places are given one by their Config, and internal/app passes it in: what is stored and
// compared after a restart, what expires and what is due has to be tried with a clock
// that jumps. The monotonic clock, by which differences of two such times are taken, does
// not jump. The first line that fits counts.
var clocks = []struct{ file, reason string }{
	{"internal/emulator/*/*.go", "stand-ins for services have clocks of their own"},
	{"internal/emulator/*/*/*.go", "stand-ins for services have clocks of their own"},
	{"agent/provider/transport.go", "a date that a server has sent"},
	{"bridge/turn/additions.go", "how soon a person added to a question, which no restart keeps"},
	{"bridge/outbox/breaker.go", "pauses of an outage, which no restart keeps"},
	{"bridge/conversation/history.go", "how old a copy is, which no restart keeps"},
	{"bridge/platformtest/streams.go", "how soon people see an answer that grows"},
	{"internal/database/backup.go", "names of copies"},
	{"internal/lab/scale/*.go", "durations of a simulation"},
	{"internal/database/examine.go", "how long a write takes, and how far a server's clock is off"},
	{"internal/database/format.go", "how long a migration took"},
	{"internal/database/database.go", "how long it took, and names of copies"},
	{"internal/cache/cache.go", "ages of values, which no restart keeps"},
	{"internal/workspace/scan.go", "whether a file was changed just now, by the clock of its disk"},
	{"internal/telemetry/metrics.go", "how long a model took"},
	{"internal/sandbox/child.go", "timers of a script"},
	{"storage/bolt/open.go", "how long a look takes"},
	{"storage/replicas/*.go", "differences of the monotonic clock, and when a replica joined, for people"},
	{"internal/retry/*.go", "when requests may go out, which no restart keeps"},
	{"slack/*.go", "pace, patience and caches, which no restart keeps; what is kept is in the time of Slack's answers"},
	{"slack/surface/status.go", "when a status is set again, and which answer cleared it; no restart keeps them"},
	{"slack/shared/clock.go", "the monotonic clock since Slack told the time"},
	{"telegram/*.go", "pace, patience and caches, which no restart keeps"},
	{"toolgroups/core/watch.go", "how often a command is looked at"},
	{"toolgroups/mcp/stdio.go", "deadlines of pipes"},
	{"toolgroups/pdf/text.go", "what is left of the time of a call"},
	{"toolgroups/search/eval.go", "how long a search took"},
}

// checkClock finds those who look at the clock although nobody gave it to them. To name
// time.Now as the default of a Config is no look.
func checkClock(m *module) []finding {
	var found []finding
	for s := range m.program {
		if clockAllowed(s.name) {
			continue
		}
		ast.Inspect(s.File, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			for _, name := range []string{"Now", "Since", "Until"} {
				if s.selects(call.Fun, "time", name) {
					found = append(found, m.at(call.Pos(), "", "time.%s: take the clock from the Config, or add the file to clocks in internal/house with the reason", name))
				}
			}
			return true
		})
	}
	return found
}

func clockAllowed(name string) bool {
	for _, c := range clocks {
		if ok, _ := path.Match(c.file, name); ok && c.reason != "" {
			return true
		}
	}
	return false
}
