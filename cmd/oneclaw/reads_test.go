package main

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"oneclaw/internal/app"
	"oneclaw/internal/budget"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/emulator/openai"
	"oneclaw/storage"
)

// readings counts the reads of a store by what they read.
type readings struct {
	storage.Store
	mu    sync.Mutex
	reads map[string]int
}

func (r *readings) count(what, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads[what+" "+strings.SplitAfterN(name, "/", 2)[0]]++
}

func (r *readings) Get(ctx context.Context, key string) (storage.Entry, error) {
	r.count("get", key)
	return r.Store.Get(ctx, key)
}

func (r *readings) List(ctx context.Context, of storage.Range) iter.Seq2[storage.Entry, error] {
	r.count("list", of.Prefix)
	return r.Store.List(ctx, of)
}

func (r *readings) Records(ctx context.Context, log string, q storage.Query) iter.Seq2[storage.Record, error] {
	r.count("records", log)
	return r.Store.Records(ctx, log, q)
}

// A plain message reads no setting from the store, and of the rest little: what can be
// changed by others, such as who may do what, is looked up each time.
func TestReadsOfAPlainMessage(t *testing.T) {
	w := newHarness(t, openai.Offline{})
	who := w.person("Ann")
	environment := os.Environ()
	for name, value := range w.env {
		environment = append(environment, name+"="+value)
	}
	cfg, err := config.Load("", environment)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	store, err := app.OpenStore(t.Context(), cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	counted := &readings{Store: store, reads: map[string]int{}}
	b, err := app.New(t.Context(), cfg, &database.Store{Store: counted}, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	w.ask(nil, who, "hello", nil)
	w.ask(nil, who, "hello again", nil)
	if _, err := b.Ledger().Report(ctx, budget.Payer{}); err != nil { // what was used so far is written
		t.Fatal(err)
	}
	counted.mu.Lock()
	clear(counted.reads)
	counted.mu.Unlock()
	const messages = 20
	for n := range messages {
		w.ask(nil, who, fmt.Sprint("message ", n), nil)
	}
	counted.mu.Lock()
	reads := maps.Clone(counted.reads)
	counted.mu.Unlock()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	all := 0
	for _, what := range slices.Sorted(maps.Keys(reads)) {
		all += reads[what]
		t.Logf("%d reads by %d messages: %s", reads[what], messages, what)
	}
	if n := reads["get settings/"] + reads["list settings/"]; n > 0 {
		t.Errorf("%d reads of settings by %d messages", n, messages)
	}
	if all > 8*messages {
		t.Errorf("%d reads by %d messages", all, messages)
	}
}
