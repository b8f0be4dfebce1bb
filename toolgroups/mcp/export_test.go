package mcp

import (
	"bufio"
	"encoding/json"
	"io"
	"log/slog"
	"net/netip"
)

// PrivateRanges is privateRanges.
func PrivateRanges(host string, allowed bool) []netip.Prefix { return privateRanges(host, allowed) }

// Parameters is parameters.
func Parameters(raw json.RawMessage) (json.RawMessage, error) { return normalizeSchema(raw) }

// Messages is what of a server's output is taken for messages.
func Messages(r io.Reader, limit int) io.Reader {
	return &lineReader{in: bufio.NewReaderSize(r, 16), maxLine: limit, log: slog.New(slog.DiscardHandler)}
}
