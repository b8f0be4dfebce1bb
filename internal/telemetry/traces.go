package telemetry

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"oneclaw/internal/cache"
	"oneclaw/internal/redact"
)

const (
	// flushTimeout bounds the wait for a collector at the end of the program.
	flushTimeout = 3 * time.Second
	// maxKnown bounds the jobs whose log lines get their trace id.
	maxKnown = 4096
)

// TracesConfig configures a [Tracer].
type TracesConfig struct {
	// Version is the version of the program.
	Version string
	// IncludeTexts adds messages to spans of model calls, with secrets masked.
	IncludeTexts bool
	// Group returns the group of a tool, "core" without one, or the group's source if that is not
	// built in.
	Group func(tool string) string
	// Redact masks secrets.
	Redact *redact.Redactor
	// Now is the clock, Logger the operator's log.
	Now    func() time.Time
	Logger *slog.Logger
}

// Tracer traces jobs. A nil Tracer, which [NewTraces] returns without a collector, traces none.
type Tracer struct {
	cfg        TracesConfig
	provider   *sdk.TracerProvider
	tracer     trace.Tracer
	spansByJob *cache.Cache[string, jobSpans]
}

// NewTraces returns a tracer, or nil if the environment names no collector, disables traces or has
// invalid variables. It logs these: they are no reason not to answer.
func NewTraces(cfg TracesConfig) *Tracer {
	endpoint := otlpEnv("ENDPOINT")
	if endpoint == "" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil
	}
	maskSecrets(cfg.Redact, endpoint)
	if err := checkEndpoint(endpoint); err != nil {
		cfg.Logger.Warn("traces are not exported", "err", err)
		return nil
	}
	faults := &faultLog{log: cfg.Logger, now: cfg.Now, redact: cfg.Redact.Error}
	otel.SetLogger(logr.FromSlogHandler(cfg.Logger.Handler()))
	otel.SetErrorHandler(faults)
	sender, err := otlptracehttp.New(context.Background())
	if err != nil {
		cfg.Logger.Warn("traces are not exported", "err", cfg.Redact.Error(err))
		return nil
	}
	about, err := resource.New(context.Background(),
		resource.WithService(), resource.WithHost(), resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "oneclaw"), attribute.String("service.version", cfg.Version)), resource.WithFromEnv())
	if err != nil {
		cfg.Logger.Warn("OTEL_RESOURCE_ATTRIBUTES cannot be read in full", "err", cfg.Redact.Error(err))
	}
	return newTracer(cfg, sdk.WithBatcher(&exporter{sender, faults}), sdk.WithResource(about))
}

func newTracer(cfg TracesConfig, options ...sdk.TracerProviderOption) *Tracer {
	provider := sdk.NewTracerProvider(options...)
	return &Tracer{cfg: cfg, provider: provider, tracer: provider.Tracer("oneclaw"), spansByJob: cache.New[string, jobSpans](maxKnown)}
}

// otlpEnv returns the variable for traces, else the one for all signals.
func otlpEnv(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

// checkEndpoint reports invalid settings that the exporter would ignore.
func checkEndpoint(endpoint string) error {
	if kind := os.Getenv("OTEL_TRACES_EXPORTER"); kind != "" && kind != "otlp" {
		return errors.New("OTEL_TRACES_EXPORTER has to be otlp or none")
	}
	if protocol := otlpEnv("PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return errors.New("OTEL_EXPORTER_OTLP_PROTOCOL has to be http/protobuf, which collectors take on port 4318")
	}
	if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("OTEL_EXPORTER_OTLP_ENDPOINT has to be an address that begins with http:// or https://")
	}
	return nil
}

// secretHeader matches headers whose values are secrets.
var secretHeader = regexp.MustCompile(`(?i)auth|key|token|secret|pass|cookie|credential`)

// maskSecrets masks the secrets of an address and of headers wherever they appear.
func maskSecrets(known *redact.Redactor, endpoint string) {
	if known == nil {
		return
	}
	if u, err := url.Parse(endpoint); err == nil {
		password, _ := u.User.Password()
		known.Add(password)
		for _, values := range u.Query() {
			known.Add(values...)
		}
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		for pair := range strings.SplitSeq(os.Getenv(name), ",") {
			header, value, ok := strings.Cut(pair, "=")
			if !ok {
				value = pair // the exporter reports the invalid pair, and shows it
			} else if !secretHeader.MatchString(header) {
				continue // a tenant or a stage: words that answers may contain, too
			}
			plain, err := url.PathUnescape(value)
			if err != nil {
				plain = value
			}
			_, key, _ := strings.Cut(strings.TrimSpace(plain), " ") // after Bearer or Basic
			known.Add(strings.TrimSpace(value), strings.TrimSpace(plain), strings.TrimSpace(key))
		}
	}
}

// Close sends the remaining spans, as far as the collector accepts them at once.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.cfg.Logger.Warn("some traces were not exported", "err", t.cfg.Redact.Error(err))
	}
}
