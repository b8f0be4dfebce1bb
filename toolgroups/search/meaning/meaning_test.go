package meaning

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
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
	source := os.Getenv("TEST_ONECLAW_VECTORS")
	if source == "" {
		return // Its source has 300 MB; with it the file is made again and compared.
	}
	f, err := os.Open(source)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var made bytes.Buffer
	if err := Generate(&made, f); err != nil || made.String() != vectorFile {
		t.Errorf("%s makes another file: %v", source, err)
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

// source writes words with vectors in the form of the package; those of a word and of its
// plural are about the same.
func source(words []string, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	vectors := map[string][]float64{}
	var all []string
	for _, w := range words {
		v := make([]float64, Size+2)
		for i := range v {
			v[i] = r.NormFloat64()
		}
		vectors[w], vectors[w+"s"] = v, v
		all = append(all, w, w+"s")
	}
	list, _ := json.Marshal(all)      // Strings always encode.
	table, _ := json.Marshal(vectors) // And so do numbers.
	return fmt.Sprintf(`{"precision":8,"words":%s,"vectors":%s,"unkVector":[0]}`, list, table)
}

func TestMake(t *testing.T) {
	var words []string
	for i := range 150 {
		words = append(words, "w"+string(rune('a'+i/26))+string(rune('a'+i%26))+"b")
	}
	var made, again bytes.Buffer
	for _, out := range []*bytes.Buffer{&made, &again} {
		if err := Generate(out, strings.NewReader(source(append([]string{"UPPER", "two words", ","}, words...), 7))); err != nil {
			t.Fatal(err)
		}
	}
	if made.String() != again.String() {
		t.Error("the same source makes two files")
	}
	for _, w := range words {
		if _, ok := vectorTable(made.String()).lookup(w); !ok {
			t.Errorf("%s has no vector", w)
		}
	}
	for _, w := range []string{"UPPER", "two words", ",", "wab"} {
		if _, ok := vectorTable(made.String()).lookup(w); ok {
			t.Errorf("%q has a vector", w)
		}
	}
}

func TestMakeRefuses(t *testing.T) {
	for _, in := range []string{"", "[]", "{}", `{"vectors":{}}`, `{"words":["a"],"vectors":{"a":["x"]}}`, `{"words":["a"],"vectors":`, source([]string{"few"}, 1)} {
		if err := Generate(new(bytes.Buffer), strings.NewReader(in)); err == nil {
			t.Errorf("%.60q is taken", in)
		}
	}
}
