#!/usr/bin/env bash
# go-sdk for MCP, v1.8.0 (github.com/modelcontextprotocol/go-sdk), client of the HTTP+SSE transport (mcp.SSEClientTransport).
#
# Seen: an event without a data line ends the session, although the stream stays open and the server goes on answering.
#       Here it comes before the answer to the first request that the client sends, so that no session begins.
# Valid: the HTML standard, "Server-sent events", 9.2.6: at the blank line "If the data buffer is an empty string, set
#       the data buffer and the event type buffer to the empty string and return", so nothing is dispatched. Servers and
#       proxies send such events, and lines "event: ping", to keep a stream open.
# Best guess: the reader hands every event to the JSON decoder, also one with no data; what does not decode ends the
#       connection.
# The same stream with a comment (": ping") in its place, and with the event's data set, is read to the end.
#
# Needs Go and the module proxy. Prints "as found" and exits 0 while it behaves so; exits 1 if that changes.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir" && rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'GO'
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// try connects to a server that sends between before each answer to any request but initialize, and says whether two
// pings are answered.
func try(between string) string {
	answers := make(chan string, 10)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sse", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: endpoint\ndata: /post\n\n")
		w.(http.Flusher).Flush()
		for {
			select {
			case answer := <-answers:
				fmt.Fprint(w, answer)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	mux.HandleFunc("POST /post", func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		_ = json.NewDecoder(r.Body).Decode(&req)
		switch {
		case req.ID == nil:
		case req.Method == "initialize":
			answers <- "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":" + string(req.ID) + `,"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}` + "\n\n"
		default:
			answers <- between + "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":" + string(req.ID) + ",\"result\":{}}\n\n"
		}
		w.WriteHeader(http.StatusAccepted)
	})
	server := httptest.NewServer(mux)
	defer server.CloseClientConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(ctx, &mcp.SSEClientTransport{Endpoint: server.URL + "/sse"}, nil)
	if err != nil {
		return "session ended: " + err.Error()
	}
	for range 2 {
		if err := session.Ping(ctx, nil); err != nil {
			return "session ended: " + err.Error()
		}
	}
	return "answered"
}

func main() {
	fmt.Println("nothing:", try(""))
	fmt.Println("comment:", try(": ping\n\n"))
	fmt.Println("event without data:", try("event: ping\n\n"))
}
GO
{
	go mod init example.com/finding
	go get github.com/modelcontextprotocol/go-sdk@v1.8.0
	go mod tidy
} >/dev/null 2>&1
seen=$(go run . 2>/dev/null)
printf '%s\n' "$seen"
want='nothing: answered
comment: answered
event without data: session ended: connection closed: calling "initialize": client is closing: unmarshaling jsonrpc message: EOF'
[ "$seen" = "$want" ] || { echo "no longer as found"; exit 1; }
echo "as found"
