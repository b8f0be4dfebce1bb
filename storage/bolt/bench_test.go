package bolt_test

import (
	"testing"

	"oneclaw/storage"
	"oneclaw/storage/storetest"
)

func BenchmarkStore(b *testing.B) {
	storetest.Benchmark(b, func(b *testing.B) storage.Store { return benchmarkStore(b, true) })
}
