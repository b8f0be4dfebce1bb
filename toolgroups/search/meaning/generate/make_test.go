package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"oneclaw/toolgroups/search/meaning"
)

// The source of the vectors has 300 MB. Where it is named, the file is made again and compared.
func TestTheSourceMakesTheFile(t *testing.T) {
	source := os.Getenv("TEST_ONECLAW_VECTORS")
	if source == "" {
		t.Skip("TEST_ONECLAW_VECTORS names no source")
	}
	f, err := os.Open(source)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	want, err := os.ReadFile("../vectors.bin")
	if err != nil {
		t.Fatal(err)
	}
	var made bytes.Buffer
	if err := generate(&made, f); err != nil || !bytes.Equal(made.Bytes(), want) {
		t.Errorf("%s makes another file: %v", source, err)
	}
}

// source writes words with vectors in the form of the package; those of a word and of its
// plural are about the same.
func source(words []string, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	vectors := map[string][]float64{}
	var all []string
	for _, w := range words {
		v := make([]float64, meaning.Size+2)
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
		if err := generate(out, strings.NewReader(source(append([]string{"UPPER", "two words", ","}, words...), 7))); err != nil {
			t.Fatal(err)
		}
	}
	if made.String() != again.String() {
		t.Error("the same source makes two files")
	}
	stems := map[string]bool{}
	for _, w := range words {
		stems[meaning.Stem(w)], stems[meaning.Stem(w+"s")] = true, true
	}
	total := 0
	for length := range meaning.MaxStemLength {
		total += int(binary.BigEndian.Uint32(made.Bytes()[4*length:]))
	}
	if total != len(stems) {
		t.Errorf("%d stems are made, want %d", total, len(stems))
	}
}

func TestMakeRefuses(t *testing.T) {
	for _, in := range []string{"", "[]", "{}", `{"vectors":{}}`, `{"words":["a"],"vectors":{"a":["x"]}}`, `{"words":["a"],"vectors":`, source([]string{"few"}, 1)} {
		if err := generate(new(bytes.Buffer), strings.NewReader(in)); err == nil {
			t.Errorf("%.60q is taken", in)
		}
	}
}
