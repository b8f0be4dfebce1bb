package mcp

import (
	"bufio"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
)

// PrivateRanges is privateRanges.
func PrivateRanges(host string, allowed bool) []netip.Prefix { return privateRanges(host, allowed) }

// LastLines is what is shown of a program's error output.
func LastLines(text string) string { return lastLines(text) }

// Parameters is what is offered of a server's schema.
func Parameters(raw json.RawMessage) (json.RawMessage, error) {
	own, err := ownSchema(raw)
	if err != nil {
		return nil, err
	}
	return offeredSchema(own)
}

// Accepts is what the arguments of a call are checked against.
func Accepts(raw json.RawMessage) (json.RawMessage, error) { return ownSchema(raw) }

// Events is what the library reads of a stream of events.
func Events(r io.Reader, limit int) io.Reader {
	return &eventReader{
		in: bufio.NewReaderSize(r, 16), messages: &messages{log: slog.New(slog.DiscardHandler)}, maxMessage: limit, fault: &messageFault{},
	}
}

// BeginEvents is how the stream of a server's events is requested.
func BeginEvents(next func(*http.Request) (*http.Response, error)) http.RoundTripper {
	return beginEvents(roundTripper(next))
}

// Messages is what of a server's output is taken for messages.
func Messages(r io.Reader, limit int) io.Reader {
	return &lineReader{in: bufio.NewReaderSize(r, 16), maxLine: limit, messages: &messages{log: slog.New(slog.DiscardHandler)}}
}
