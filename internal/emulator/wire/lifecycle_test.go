package wire_test

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"oneclaw/internal/emulator/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errEnded = errors.New("test emulator: closed")

func lifecycle() (*wire.Lifecycle, *sync.Mutex) {
	mu := &sync.Mutex{}
	return wire.NewLifecycle("test emulator", errEnded, mu, slog.New(slog.DiscardHandler)), mu
}

func TestLifecycleEndsWhatHangs(t *testing.T) {
	l, _ := lifecycle()
	inside := make(chan struct{})
	base, err := l.Start(t.Context(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(inside)
		l.Sleep(r.Context(), 0)
		panic(http.ErrAbortHandler)
	}))
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base, http.NoBody)
		if err == nil {
			var resp *http.Response
			if resp, err = http.DefaultClient.Do(req); err == nil {
				err = errors.Join(errors.New("answered"), resp.Body.Close())
				asked <- err
				return
			}
		}
		asked <- nil
	}()
	<-inside
	stops := 0
	for range 2 {
		if err := l.Close(func() { stops++ }); err != nil {
			t.Error(err)
		}
	}
	if err := <-asked; err != nil {
		t.Error(err)
	}
	if stops != 1 {
		t.Errorf("stopped %d times", stops)
	}
	if _, err := l.Start(t.Context(), http.NotFoundHandler()); !errors.Is(err, errEnded) {
		t.Errorf("serving after the end: %v", err)
	}
}

func TestLifecycleGoesDownAndUp(t *testing.T) {
	l, _ := lifecycle()
	base, err := l.Start(t.Context(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func() error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	for range 2 {
		if err := ask(); err != nil {
			t.Errorf("up: %v", err)
		}
		if err := l.Suspend(); err != nil {
			t.Error(err)
		}
		if ask() == nil {
			t.Error("somebody answers")
		}
		if err := l.Resume(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := l.Close(nil); err != nil {
		t.Error(err)
	}
}
