package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"oneclaw/storage"
)

// Benchmark measures the program's most frequent calls, so that engines can be compared: a write with
// compare-and-set, an append of two records, a read, and jobs of five writes and three reads by
// concurrent workers. open returns a new, empty store.
func Benchmark(b *testing.B, open func(b *testing.B) storage.Store) {
	value := make([]byte, 300)
	b.Run("CompareAndSet", func(b *testing.B) {
		s, rev := open(b), storage.Absent
		measureCalls(b, 1, func(ctx context.Context, _ int) (err error) {
			rev, err = s.Put(ctx, "key", value, rev)
			return err
		})
	})
	b.Run("AppendTwo", func(b *testing.B) {
		s, pos := open(b), storage.Position(0)
		measureCalls(b, 1, func(ctx context.Context, _ int) (err error) {
			pos, err = s.Append(ctx, "log", pos, storage.Record{Data: value}, storage.Record{Label: "l", Data: value})
			return err
		})
	})
	b.Run("Get", func(b *testing.B) {
		s := open(b)
		mustPut(b, s, "key", string(value), storage.Absent)
		measureCalls(b, 1, func(ctx context.Context, _ int) error {
			_, err := s.Get(ctx, "key")
			return err
		})
	})
	for _, workers := range []int{1, 16, 64} {
		b.Run(fmt.Sprint("Jobs/workers=", workers), func(b *testing.B) {
			s := open(b)
			measureCalls(b, workers, func(ctx context.Context, n int) error { return runJob(ctx, s, n, value) })
		})
	}
}

// measureCalls calls f with consecutive numbers, in as many goroutines as there are workers, and reports
// the rate and the duration of the calls.
func measureCalls(b *testing.B, workers int, f func(ctx context.Context, n int) error) {
	b.Helper()
	var next atomic.Int64
	took := make([]time.Duration, b.N)
	g, ctx := errgroup.WithContext(b.Context())
	b.ResetTimer()
	for range workers {
		g.Go(func() error {
			for n := int(next.Add(1)) - 1; n < b.N; n = int(next.Add(1)) - 1 {
				began := b.Elapsed()
				if err := f(ctx, n); err != nil {
					return err
				}
				took[n] = b.Elapsed() - began
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	slices.Sort(took)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "/s")
	b.ReportMetric(float64(took[b.N/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[b.N*99/100].Microseconds())/1000, "p99-ms")
}

// runJob accepts a message, answers it with records in its own log, and leaves a receipt.
func runJob(ctx context.Context, s storage.Store, n int, value []byte) error {
	open, done, log := fmt.Sprint("job/open/", n), fmt.Sprint("job/done/", n), fmt.Sprint("log/", n)
	rev, err := s.Put(ctx, open, value, storage.Absent)
	if err != nil {
		return err
	}
	if _, err := s.Get(ctx, open); err != nil {
		return err
	}
	for _, err := range s.Records(ctx, log, storage.Query{Backward: true, Limit: 20}) {
		if err != nil {
			return err
		}
	}
	two := []storage.Record{{Label: "l", Data: value}, {Data: value}}
	if _, err := s.Append(ctx, log, 0, two...); err != nil {
		return err
	}
	if rev, err = s.Put(ctx, open, value, rev); err != nil {
		return err
	}
	if rev, err = s.Write(ctx, storage.Put(open, value, rev), storage.Append(log, 2, two...)); err != nil {
		return err
	}
	if _, err := s.Get(ctx, open); err != nil {
		return err
	}
	_, err = s.Write(ctx, storage.Put(done, value, storage.Absent), storage.Delete(open, rev))
	return err
}
