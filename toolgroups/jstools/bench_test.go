package jstools_test

import (
	"fmt"
	"testing"
)

// BenchmarkJsEval is a call of js_eval from the arguments to the result.
func BenchmarkJsEval(b *testing.B) {
	h := newHouse(b)
	for b.Loop() {
		h.js(b, "1 + 1")
	}
}

// BenchmarkRescan is a look at a folder of 50 tools in which nothing has changed:
// what the bot does every two seconds.
func BenchmarkRescan(b *testing.B) {
	h := newHouse(b)
	for i := range 50 {
		name := fmt.Sprintf("tool_%02d", i)
		h.put(b, map[string]string{name + ".json": `{"name":"` + name + `","description":"d"}`, name + ".js": ""})
	}
	for b.Loop() {
		if err := h.Reload(); err != nil {
			b.Fatal(err)
		}
	}
}
