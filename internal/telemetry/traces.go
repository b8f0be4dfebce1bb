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
	// flushPatience bounds what the end of the program waits for a collector.
	flushPatience = 3 * time.Second
	// maxKnown bounds the jobs whose log lines are given their trace.
	maxKnown = 4096
)

// TracesConfig is what a [Tracer] is made of.
type TracesConfig struct {
	// Version is the program's.
	Version string
	// Texts has spans of model calls hold what was said, with secrets masked.
	Texts bool
	// Group names the group of a tool, "core" where it has none, and where it is not one of
	// the program's own, where it comes from.
	Group func(tool string) string
	// Redact masks secrets.
	Redact *redact.Redactor
	// Now is the clock, Logger for the operator.
	Now    func() time.Time
	Logger *slog.Logger
}

// Tracer follows jobs. A nil one, which [NewTraces] returns where no collector is named, follows none.
type Tracer struct {
	cfg      TracesConfig
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	known    *cache.Cache[string, roots]
}

// NewTraces returns a tracer, nil where the environment names no collector or does not want one. What
// is wrong with its variables is logged: it is no reason not to answer.
func NewTraces(cfg TracesConfig) *Tracer {
	endpoint := setting("ENDPOINT")
	if endpoint == "" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil
	}
	hide(cfg.Redact, endpoint)
	if err := usable(endpoint); err != nil {
		cfg.Logger.Warn("traces are not exported", "err", err)
		return nil
	}
	faults := &faults{log: cfg.Logger, now: cfg.Now, redact: cfg.Redact.Error}
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
	provider := sdk.NewTracerProvider(append(options, sdk.WithIDGenerator(idsOfContext{}))...)
	return &Tracer{cfg: cfg, provider: provider, tracer: provider.Tracer("oneclaw"), known: cache.New[string, roots](maxKnown)}
}

// setting is that of traces, else that of everything that is exported.
func setting(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

// usable says what is wrong with the settings, of those that the exporter would pass over.
func usable(endpoint string) error {
	if kind := os.Getenv("OTEL_TRACES_EXPORTER"); kind != "" && kind != "otlp" {
		return errors.New("OTEL_TRACES_EXPORTER has to be otlp or none")
	}
	if protocol := setting("PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return errors.New("OTEL_EXPORTER_OTLP_PROTOCOL has to be http/protobuf, which collectors take on port 4318")
	}
	if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("OTEL_EXPORTER_OTLP_ENDPOINT has to be an address that begins with http:// or https://")
	}
	return nil
}

// secretive are the headers whose values are secrets.
var secretive = regexp.MustCompile(`(?i)auth|key|token|secret|pass|cookie|credential`)

// hide has the secrets of an address and of headers masked wherever they turn up.
func hide(known *redact.Redactor, endpoint string) {
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
				value = pair // the exporter complains of it, and shows it
			} else if !secretive.MatchString(header) {
				continue // a tenant, a stage: words that answers are to have, too
			}
			plain, err := url.PathUnescape(value)
			if err != nil {
				plain = value
			}
			_, key, _ := strings.Cut(strings.TrimSpace(plain), " ") // behind Bearer or Basic
			known.Add(strings.TrimSpace(value), strings.TrimSpace(plain), strings.TrimSpace(key))
		}
	}
}

// Close sends what is left, as far as the collector takes it at once.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushPatience)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.cfg.Logger.Warn("some traces were not exported", "err", t.cfg.Redact.Error(err))
	}
}
