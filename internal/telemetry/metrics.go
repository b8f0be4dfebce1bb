package telemetry

import (
	"context"
	"errors"
	"math"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"oneclaw/agent"
	"oneclaw/bridge/queue"
	"oneclaw/internal/redact"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// maxLabelValues bounds the distinct models and groups; further ones count together.
const maxLabelValues = 64

// Metrics has the metrics. No label has the id of a chat, a user or a message.
type Metrics struct {
	registry *prometheus.Registry
	accepted *prometheus.CounterVec
	answers  *prometheus.CounterVec
	repeats  *prometheus.CounterVec
	sends    *prometheus.CounterVec
	asked    *prometheus.CounterVec
	decided  *prometheus.CounterVec
	calls    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	tokens   *prometheus.CounterVec
	tools    *prometheus.CounterVec
	feedback *prometheus.CounterVec
	budget   prometheus.Counter
	models   labels
	groups   labels
}

// NewMetrics returns the metrics of a version. Known secrets are masked in names that people
// choose.
func NewMetrics(version string, known *redact.Redactor) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), models: newLabels(known.Text), groups: newLabels(known.Text)}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "oneclaw_" + name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	m.accepted = counter("messages_accepted_total", "Messages, commands and button presses that were put on disk, without duplicates.", "platform")
	m.answers = counter("answers_total", "Answers that were delivered, or of which a part was given up.", "platform", "outcome")
	m.repeats = counter("repeats_total", "Parts of answers that were sent with the mark that they may have arrived before.", "platform")
	m.sends = counter("send_problems_total", "Tries to send that were refused, delayed by a rate limit, put off, or whose fate is unknown.", "platform", "outcome")
	m.asked = counter("approvals_asked_total", "Tool calls for which a person was asked.", "platform")
	m.decided = counter("approvals_decided_total", "Requests for approval whose turn went on, by what was decided.", "platform", "decision")
	m.feedback = counter("opinions_total", "What people said of answers with 👍 (good) and 👎 (bad), and how often they took it back.", "platform", "opinion")
	m.calls = counter("model_calls_total", "Calls of language models, by what became of them.", "model", "outcome")
	m.tokens = counter("model_tokens_total", "Tokens of model calls; those of kind cached are also part of input.", "model", "kind")
	m.tools = counter("tool_calls_total", "Tool calls that were run, by the group of the tool.", "group", "outcome")
	m.budget = prometheus.NewCounter(prometheus.CounterOpts{Name: "oneclaw_budget_refusals_total", Help: "Model calls that a budget did not allow."})
	m.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "oneclaw_model_call_duration_seconds", Help: "How long calls of language models took, with their retries.",
		Buckets: []float64{0.5, 1, 2, 5, 10, 30, 60, 120},
	}, []string{"model"})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "oneclaw_build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(m.budget, m.seconds, build)
	return m
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{DisableCompression: true, MaxRequestsInFlight: 4})
}

// measured are the metrics of a platform.
var measured = []queue.Metric{
	queue.MeasuredAccepted, queue.MeasuredDelivered, queue.MeasuredFailed, queue.MeasuredRepeat, queue.MeasuredRefused,
	queue.MeasuredDelayed, queue.MeasuredPutOff, queue.MeasuredUnknown, queue.MeasuredAsked, queue.MeasuredAllowed,
	queue.MeasuredDenied, queue.MeasuredExpired, queue.MeasuredGood, queue.MeasuredBad, queue.MeasuredWithdrawn,
}

// Measure implements bridge.Hooks.Measure.
func (m *Metrics) Measure(platform string, what queue.Metric) { m.count(platform, what, 1) }

// count adds n to the counter of a metric; 0 makes it appear.
func (m *Metrics) count(platform string, what queue.Metric, n float64) {
	switch what {
	case queue.MeasuredAccepted:
		m.accepted.WithLabelValues(platform).Add(n)
	case queue.MeasuredDelivered, queue.MeasuredFailed:
		m.answers.WithLabelValues(platform, string(what)).Add(n)
	case queue.MeasuredRepeat:
		m.repeats.WithLabelValues(platform).Add(n)
	case queue.MeasuredRefused, queue.MeasuredDelayed, queue.MeasuredPutOff, queue.MeasuredUnknown:
		m.sends.WithLabelValues(platform, strings.TrimPrefix(string(what), "send_")).Add(n)
	case queue.MeasuredAsked:
		m.asked.WithLabelValues(platform).Add(n)
	case queue.MeasuredAllowed, queue.MeasuredDenied, queue.MeasuredExpired:
		m.decided.WithLabelValues(platform, strings.TrimPrefix(string(what), "approval_")).Add(n)
	case queue.MeasuredGood, queue.MeasuredBad, queue.MeasuredWithdrawn:
		m.feedback.WithLabelValues(platform, strings.TrimPrefix(string(what), "feedback_")).Add(n)
	}
}

// Observe counts the refusals by budgets and the tool calls in the events of turns.
func (m *Metrics) Observe(tools *toolgroups.Registry, e agent.Event) {
	switch {
	case e.Reply != nil:
		var failure *agent.ModelError
		if errors.As(e.Reply.Err, &failure) && failure.Kind == agent.KindBudget {
			m.budget.Inc()
		}
	case e.ToolEnded != nil:
		m.tools.WithLabelValues(m.groups.labelFor(GroupOf(tools, e.ToolEnded.Tool)), string(e.ToolEnded.Status)).Inc()
	}
}

// GroupOf returns the label for a tool: its group, the group's source if that is not built in, or
// "core" for a tool without a group.
func GroupOf(tools *toolgroups.Registry, tool string) string {
	name, grouped := tools.GroupOf(tool)
	if !grouped {
		return "core"
	}
	if g, _ := tools.Group(name); g.Source != "" && g.Source != toolgroups.SourceBuiltin {
		return g.Source
	}
	return name
}

// Client is a model with a profile.
type Client interface {
	agent.Model
	// Profile returns what is known about the model.
	Profile() agent.Profile
}

// WrapModel returns a client whose calls are counted. A nil receiver counts nothing.
func (m *Metrics) WrapModel(client Client, name string) agent.Model {
	if m == nil {
		return client
	}
	return &measuredModel{Client: client, metrics: m, label: m.models.labelFor(name)}
}

type measuredModel struct {
	Client

	metrics *Metrics
	label   string
}

// Complete implements agent.Model.
func (c *measuredModel) Complete(ctx context.Context, req agent.Request, onDelta func(agent.Delta)) (agent.Reply, error) {
	began := time.Now()
	reply, err := c.Client.Complete(ctx, req, onDelta)
	c.metrics.recordCall(ctx, c.label, time.Since(began), reply.Usage, err)
	return reply, err
}

func (m *Metrics) recordCall(ctx context.Context, model string, took time.Duration, used agent.Usage, err error) {
	m.seconds.WithLabelValues(model).Observe(took.Seconds())
	m.calls.WithLabelValues(model, modelOutcome(ctx, err)).Inc()
	m.tokens.WithLabelValues(model, "input").Add(float64(max(used.Input, 0)))
	m.tokens.WithLabelValues(model, "cached").Add(float64(max(used.Cached, 0)))
	m.tokens.WithLabelValues(model, "output").Add(float64(max(used.Output, 0)))
}

func modelOutcome(ctx context.Context, err error) string {
	var failure *agent.ModelError
	switch {
	case err == nil:
		return "ok"
	case ctx.Err() != nil:
		return "canceled"
	case errors.As(err, &failure):
		return string(failure.Kind)
	}
	return "error"
}

// RegisterGauges adds gauges that are read on request, and the counters of the platforms at 0: Prometheus
// sees no increase in a series that appears with its first event.
func (m *Metrics) RegisterGauges(b Bridge, size func(context.Context) (int64, error), now func() time.Time) {
	gauge := func(name, help string, labels prometheus.Labels, value func() float64) {
		opts := prometheus.GaugeOpts{Name: "oneclaw_" + name, Help: help, ConstLabels: labels}
		m.registry.MustRegister(prometheus.NewGaugeFunc(opts, value))
	}
	gauge("jobs_open", "Jobs that are not closed: waiting, running or being delivered.", nil, func() float64 { return float64(b.QueueStats().Open) })
	gauge("jobs_waiting", "Jobs that wait in the queues of their chats.", nil, func() float64 { return float64(b.QueueStats().Waiting) })
	gauge("oldest_job_age_seconds", "How long ago the oldest open job was accepted; 0 without one.", nil, func() float64 {
		if oldest := b.QueueStats().Oldest; !oldest.IsZero() {
			return max(now().Sub(oldest).Seconds(), 0)
		}
		return 0
	})
	for name := range b.PlatformErrors() {
		for _, what := range measured {
			m.count(name, what, 0)
		}
		gauge("platform_ready", "1 where the platform receives, else 0.", prometheus.Labels{"platform": name}, func() float64 {
			if b.PlatformErrors()[name] != nil {
				return 0
			}
			return 1
		})
	}
	gauge("database_size_bytes", "Size of the database: of its file, or of its tables on a server.", nil, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), sizeTimeout)
		defer cancel()
		n, err := size(ctx)
		if err != nil {
			return math.NaN() // not known
		}
		return float64(n)
	})
}

// sizeTimeout bounds reading the size of a database.
const sizeTimeout = 2 * time.Second

// Replica is this process among those that share a store.
type Replica interface {
	// Replica returns the id under which this process has joined, if it has, and its number of leases.
	Replica() (id string, leases int)
}

// RegisterReplica adds the identity of this replica and the number of its leases.
func (m *Metrics) RegisterReplica(r Replica, host string) {
	m.registry.MustRegister(replica{
		Replica: r, host: host,
		info:   prometheus.NewDesc("oneclaw_replica_info", "Always 1; the labels say under which id this process has joined the others, and where it runs.", []string{"id", "host"}, nil),
		leases: prometheus.NewDesc("oneclaw_leases_held", "Shares of the chats and other leases that this process holds.", nil, nil),
	})
}

// replica implements prometheus.Collector, because the id of a process can change.
type replica struct {
	Replica

	host         string
	info, leases *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (r replica) Describe(to chan<- *prometheus.Desc) { to <- r.info; to <- r.leases }

// Collect implements prometheus.Collector.
func (r replica) Collect(to chan<- prometheus.Metric) {
	id, leases := r.Replica.Replica()
	to <- prometheus.MustNewConstMetric(r.leases, prometheus.GaugeValue, float64(leases))
	to <- prometheus.MustNewConstMetric(r.info, prometheus.GaugeValue, 1, id, r.host)
}

// RegisterProcess adds the resources of the process: goroutines, memory, descriptors.
func (m *Metrics) RegisterProcess() {
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// Bridge is the bridge, as far as gauges read it.
type Bridge interface {
	// QueueStats returns how much work there is.
	QueueStats() queue.Stats
	// PlatformErrors returns, per platform, why it receives no updates; nil for one that does.
	PlatformErrors() map[string]error
}

// labels are label values that people choose: without secrets, and bounded in number.
type labels struct {
	redact func(string) string
	mu     *sync.Mutex
	known  map[string]string
}

func newLabels(redact func(string) string) labels {
	return labels{redact: redact, mu: new(sync.Mutex), known: map[string]string{}}
}

// labelFor returns the label value for a name.
func (l labels) labelFor(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	value, ok := l.known[name]
	switch {
	case ok:
		return value
	case len(l.known) >= maxLabelValues:
		return "other"
	}
	value, _ = wording.SplitAt(strings.ToValidUTF8(l.redact(name), "?"), 80)
	l.known[name] = value
	return value
}
