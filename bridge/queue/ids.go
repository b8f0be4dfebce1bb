package queue

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Hash makes an id of what may be long or hold characters that ids must not.
func Hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// NewIncident returns an id under which the log says more than people are told.
func NewIncident() string {
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand)
	return strings.ToUpper(hex.EncodeToString(id[:]))
}
