package queue

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Hash returns an id that is derived from parts, which may be long and contain any characters.
func Hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// NewIncident returns an id that connects a notice to a user with the cause in the log.
func NewIncident() string {
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand)
	return strings.ToUpper(hex.EncodeToString(id[:]))
}
