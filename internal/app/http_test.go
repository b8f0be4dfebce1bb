package app

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// A request that does not arrive is ended, and those that wait for its connection are
// answered then.
//
// Slow requests leave the platforms their descriptors.
func TestASlowRequestIsEnded(t *testing.T) {
	t.Parallel()
	l, err := Listen(t.Context(), "127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	address := l.Addr().String()
	header, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = header.Close() }()
	body, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err == nil {
		defer func() { _ = body.Close() }()
		_, err = io.WriteString(body, "POST /slack/events HTTP/1.1\r\nHost: bot\r\nContent-Length: 1000\r\n\r\n{")
	}
	if err != nil {
		t.Fatal(err)
	}
	// What is sent is there before its time begins.
	go func() { served <- servePort(ctx, l, handler, 2, 3*time.Second) }()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	response, err := http.Get("http://" + address) //nolint:noctx // a third one, which waits for the others
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	for name, conn := range map[string]net.Conn{"headers": header, "body": body} {
		if _, err := io.Copy(io.Discard, bufio.NewReader(conn)); err != nil {
			t.Errorf("slow %s: %v", name, err)
		}
	}
}
