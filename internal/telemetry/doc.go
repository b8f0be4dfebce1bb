// Package telemetry reports to operators what the bot does: [Metrics] for Prometheus, [Tracer]
// for OpenTelemetry, and [Ring], the last warnings and errors of the log.
package telemetry
