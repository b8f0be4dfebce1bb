package meaning

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

// checksum is that of the file that the command makes of the package that NOTICE names.
const (
	checksum = "01044aec5e4768954bad3b0d3a6f92ebd241f6cacbff59ddec5390eef219a39d"
	stems    = 41_160
)

func TestTheFileIsTheOneThatWasMade(t *testing.T) {
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(vectorFile))); got != checksum {
		t.Errorf("vectors.bin has the SHA-256 %s, not %s", got, checksum)
	}
	if _, _, total := vectorTable(vectorFile).stemsOfLength(1); total != stems {
		t.Errorf("it has %d stems, not %d", total, stems)
	}
}

func TestLikeWordsAreNear(t *testing.T) {
	for _, c := range []struct{ word, near, far string }{
		{"email", "mail", "weather"}, {"rain", "snow", "invoice"}, {"hotel", "restaurant", "algorithm"}, {"buy", "sell", "galaxy"},
	} {
		if near, far := cosine(t, c.word, c.near), cosine(t, c.word, c.far); near < far+0.2 {
			t.Errorf("%s is as near to %s (%.2f) as to %s (%.2f)", c.word, c.far, far, c.near, near)
		}
	}
	for _, word := range []string{"", "zzqxv", "天气", "the word", strings.Repeat("a", 99)} {
		if _, ok := Lookup(word); ok {
			t.Errorf("%q has a vector", word)
		}
	}
}

func cosine(t *testing.T, a, b string) (sum float32) {
	t.Helper()
	v, ok := Lookup(Stem(a))
	w, also := Lookup(Stem(b))
	if !ok || !also {
		t.Fatalf("%s or %s has no vector", a, b)
	}
	for i := range v {
		sum += v[i] * w[i]
	}
	return sum
}
