// Package meaning has word vectors for English: 100 numbers for each of 41,160 stems, so that
// words of similar meaning have vectors of similar direction. The vectors are searched as
// embedded; nothing is decoded at the start. NOTICE names their source; the command in generate
// makes the file.
package meaning

import (
	_ "embed"
	"sort"

	"github.com/kljensen/snowball/english"
)

// Size is the dimension of a vector.
const Size = 100

// The file holds, for each length of stems from 1 to longest, their number in four bytes; then
// the stems, by length and alphabet; then the vectors in the same order, two numbers per byte.
const (
	longest = 24
	half    = Size / 2
)

//go:embed vectors.bin
var file string

// Vector is the meaning of a word. Its length is 1, but for rounding.
type Vector [Size]float32

// Of returns the vector of a stem.
func Of(stem string) (Vector, bool) { return table(file).of(stem) }

// table is a file of vectors.
type table string

func (t table) of(stem string) (Vector, bool) {
	if stem == "" || len(stem) > longest {
		return Vector{}, false
	}
	block, first, total := t.find(len(stem))
	n := len(block) / len(stem)
	at := func(i int) string { return string(block[i*len(stem) : (i+1)*len(stem)]) }
	i := sort.Search(n, func(i int) bool { return at(i) >= stem })
	if i == n || at(i) != stem {
		return Vector{}, false
	}
	end := len(t) - (total-first-i)*half
	return decode(t[end : end+half]), true
}

// find returns the stems of a length, how many stems are shorter, and how many there are.
func (t table) find(length int) (block table, shorter, total int) {
	from := 4 * longest
	for l := 1; l <= longest; l++ {
		n := t.number(4 * (l - 1))
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

func (t table) number(at int) int {
	return int(t[at])<<24 | int(t[at+1])<<16 | int(t[at+2])<<8 | int(t[at+3])
}

func decode(packed table) (v Vector) {
	for i := range half {
		v[2*i] = value(packed[i] >> 4)
		v[2*i+1] = value(packed[i] & 15)
	}
	return v
}

// Numbers lie between -bound and bound, in steps.
const (
	bound = 0.5
	steps = 15
)

func value(step byte) float32 { return float32(step)*(2*bound/steps) - bound }

// Stem reduces an English word in lower case to its stem; others stay unchanged.
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
