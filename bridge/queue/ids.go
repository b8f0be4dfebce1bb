package queue

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Hash returns an id for parts that may be long or contain characters that ids must not.
func Hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// NewIncident returns an id under which the log says more than users are told.
func NewIncident() string {
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand)
	return strings.ToUpper(hex.EncodeToString(id[:]))
}
