// Package telemetry tells operators what the bot does: [Metrics] for Prometheus, [Tracer] for a
// collector of OpenTelemetry, and [Incidents], the last warnings and errors of the log.
package telemetry
