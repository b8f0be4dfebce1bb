package workspace_test

import (
	"fmt"
	"testing"
)

// BenchmarkStore says what an owner with so many small files costs: a look before the first
// call of a turn, and one after a call that has changed none of them, or one.
func BenchmarkStore(b *testing.B) {
	for _, n := range []int{10, 1000} {
		r := newReplica(b, openStore(b))
		r.prepare()
		for i := range n {
			r.write(fmt.Sprintf("folder%d/file%d", i%10, i), fmt.Sprint(i))
		}
		r.keep()
		b.Run(fmt.Sprintf("%d files/prepare", n), func(b *testing.B) {
			for b.Loop() {
				r.prepare()
			}
		})
		b.Run(fmt.Sprintf("%d files/keep none", n), func(b *testing.B) {
			for b.Loop() {
				r.keep()
			}
		})
		b.Run(fmt.Sprintf("%d files/keep one", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				r.write("folder0/file0", fmt.Sprint("new ", i))
				r.keep()
			}
		})
	}
}
