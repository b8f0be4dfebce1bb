// Package meaning has word vectors for English: 100 numbers for each of 41,160 stems, so that
// words of similar meaning have vectors of similar direction. Lookups read the embedded file
// directly; nothing is decoded at startup. NOTICE names the source of the vectors; the command in
// generate makes the file.
package meaning

import (
	_ "embed"
	"sort"

	"github.com/kljensen/snowball/english"
)

// Size is the dimension of a vector.
const Size = 100

// The file holds, for each length of stems from 1 to MaxStemLength, their number in four bytes; then
// the stems, by length and alphabet; then the vectors in the same order, two numbers per byte. The command
// in generate writes it.
const (
	MaxStemLength = 24
	vectorBytes   = Size / 2
)

//go:embed vectors.bin
var vectorFile string

// Vector is the word vector of a stem. Its length is 1, except for rounding.
type Vector [Size]float32

// Lookup returns the vector of a stem.
func Lookup(stem string) (Vector, bool) { return vectorTable(vectorFile).lookup(stem) }

// vectorTable is a file of vectors.
type vectorTable string

func (t vectorTable) lookup(stem string) (Vector, bool) {
	if stem == "" || len(stem) > MaxStemLength {
		return Vector{}, false
	}
	block, first, total := t.stemsOfLength(len(stem))
	n := len(block) / len(stem)
	at := func(i int) string { return string(block[i*len(stem) : (i+1)*len(stem)]) }
	i := sort.Search(n, func(i int) bool { return at(i) >= stem })
	if i == n || at(i) != stem {
		return Vector{}, false
	}
	end := len(t) - (total-first-i)*vectorBytes
	return decodeVector(t[end : end+vectorBytes]), true
}

// stemsOfLength returns the stems of a length, the number of shorter stems, and the number of all stems.
func (t vectorTable) stemsOfLength(length int) (block vectorTable, shorter, total int) {
	from := 4 * MaxStemLength
	for l := 1; l <= MaxStemLength; l++ {
		n := t.readCount(4 * (l - 1))
		if l < length {
			shorter += n
			from += n * l
		}
		if l == length {
			block = t[from : from+n*l]
		}
		total += n
	}
	return block, shorter, total
}

func (t vectorTable) readCount(at int) int {
	return int(t[at])<<24 | int(t[at+1])<<16 | int(t[at+2])<<8 | int(t[at+3])
}

func decodeVector(packed vectorTable) (v Vector) {
	for i := range vectorBytes {
		v[2*i] = dequantize(packed[i] >> 4)
		v[2*i+1] = dequantize(packed[i] & 15)
	}
	return v
}

// Components lie between -MaxComponent and MaxComponent. They are stored in QuantizationSteps+1 values at
// equal distances.
const (
	MaxComponent      = 0.5
	QuantizationSteps = 15
)

func dequantize(step byte) float32 {
	return float32(step)*(2*MaxComponent/QuantizationSteps) - MaxComponent
}

// Stem reduces an English word in lower case to its stem. A word with other characters than a to z, or
// with less than three, stays unchanged.
func Stem(word string) string {
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	if len(word) < 3 {
		return word
	}
	return english.Stem(word, true)
}
