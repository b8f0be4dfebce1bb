package bridge_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oneclaw/bridge"
)

// receiver is a server that tells when the first byte of a body has come, when the
// second has, and how the body ended.
type receiver struct {
	*httptest.Server
	first  chan struct{}
	second func()
	ended  chan error
}

func newReceiver(t *testing.T, second func()) *receiver {
	t.Helper()
	r := &receiver{first: make(chan struct{}, 1), second: second, ended: make(chan error, 1)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		one := make([]byte, 1)
		if _, err := io.ReadFull(req.Body, one); err != nil {
			r.ended <- err
			return
		}
		r.first <- struct{}{}
		if _, err := io.ReadFull(req.Body, one); err != nil {
			r.ended <- err
			return
		}
		r.second()
		_, err := io.Copy(io.Discard, req.Body)
		r.ended <- err
	}))
	t.Cleanup(r.Close)
	return r
}

// post sends a body of a few bytes that is committed on the way.
func (r *receiver) post(t *testing.T, commit func() error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, strings.NewReader("a few bytes"))
	if err != nil {
		t.Fatal(err)
	}
	bridge.CommitOnWrite(req, commit)
	res, err := r.Client().Do(req)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

func TestCommitRunsInTheMiddleOfTheRequest(t *testing.T) {
	var committed atomic.Int32
	r := newReceiver(t, func() {
		if committed.Load() != 1 {
			t.Error("the second byte came before the commit")
		}
	})
	gate := bridge.NewCommitGate(func() error {
		select {
		case <-r.first:
		case <-time.After(time.Minute):
			t.Error("the first byte has not come when the commit runs")
		}
		committed.Add(1)
		return nil
	})
	if err := r.post(t, gate.Open); err != nil {
		t.Fatal(err)
	}
	if err := <-r.ended; err != nil {
		t.Errorf("the body did not arrive whole: %v", err)
	}
	if err := gate.Open(); err != nil {
		t.Errorf("opened again: %v", err)
	}
	if n := committed.Load(); n != 1 {
		t.Errorf("%d commits, want 1", n)
	}
	if begun, err := gate.Close(); !begun || err != nil {
		t.Errorf("closed: %v, %v; want begun", begun, err)
	}
}

func TestFailingCommitBreaksTheRequestOff(t *testing.T) {
	full := errors.New("the disk is full")
	r := newReceiver(t, func() { t.Error("more than the first byte was sent") })
	commits := 0
	gate := bridge.NewCommitGate(func() error { commits++; return full })
	if err := r.post(t, gate.Open); !errors.Is(err, full) {
		t.Errorf("got %v, want the error of the commit", err)
	}
	if err := <-r.ended; err == nil {
		t.Error("the server saw a whole request")
	}
	if err := gate.Open(); !errors.Is(err, full) || commits != 1 {
		t.Errorf("opened again: %v after %d commits, want the first error after 1", err, commits)
	}
	if begun, err := gate.Close(); !begun || !errors.Is(err, full) {
		t.Errorf("closed: %v, %v; want begun and the error of the commit", begun, err)
	}
}

func TestNothingIsCommittedAfterTheEnd(t *testing.T) {
	r := newReceiver(t, func() { t.Error("more than the first byte was sent") })
	gate := bridge.NewCommitGate(func() error { t.Error("committed"); return nil })
	if begun, err := gate.Close(); begun || err != nil {
		t.Errorf("closed: %v, %v; want not begun", begun, err)
	}
	if err := r.post(t, gate.Open); err == nil {
		t.Error("a request was made after the end of its send")
	}
	if err := <-r.ended; err == nil {
		t.Error("the server saw a whole request")
	}
}

func TestEndWaitsForTheCommitThatRuns(t *testing.T) {
	late := errors.New("late")
	running, release, opened := make(chan struct{}), make(chan struct{}), make(chan error)
	gate := bridge.NewCommitGate(func() error {
		close(running)
		<-release
		return late
	})
	go func() { opened <- gate.Open() }()
	<-running
	go close(release)
	if begun, err := gate.Close(); !begun || !errors.Is(err, late) {
		t.Errorf("closed: %v, %v; want begun and what the commit returned", begun, err)
	}
	if err := <-opened; !errors.Is(err, late) {
		t.Errorf("opened: %v", err)
	}
}

func TestRequestWithoutBodyOrCommitStaysAsItIs(t *testing.T) {
	for name, c := range map[string]struct {
		body   io.Reader
		commit func() error
		length int64
	}{
		"no body":   {nil, func() error { return errors.New("committed") }, 0},
		"no commit": {strings.NewReader("text"), nil, 4},
	} {
		t.Run(name, func(t *testing.T) {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", c.body)
			if c.body == nil {
				req.Body = nil
			}
			bridge.CommitOnWrite(req, c.commit)
			if req.ContentLength != c.length {
				t.Errorf("content length %d, want %d", req.ContentLength, c.length)
			}
		})
	}
}
