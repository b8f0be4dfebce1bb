package redact

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
)

// MinSecret is the minimum length of the secret of a [Sealer], in bytes.
const MinSecret = 16

// ErrUnreadable is returned for data that was sealed with another secret, purpose or place, or
// is damaged. These cannot be distinguished.
var ErrUnreadable = errors.New("it was encrypted with another secret key or for another place, or is damaged")

// Sealer encrypts with AES-256-GCM and a random nonce, which is prepended. It may be used
// concurrently.
type Sealer struct{ aead cipher.AEAD }

// NewSealer makes a sealer. Its data can be opened only with the same secret and purpose, so
// that data sealed for one purpose is not accepted for another.
func NewSealer(secret []byte, purpose string) (*Sealer, error) {
	if len(secret) < MinSecret {
		return nil, fmt.Errorf("the secret key has %d bytes, at least %d are needed", len(secret), MinSecret)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, purpose, 32)
	if err != nil {
		return nil, fmt.Errorf("derive the key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("cipher: %w", err)
	}
	return &Sealer{aead: aead}, nil
}

// Seal encrypts data and binds it to a place, such as its key.
func (s *Sealer) Seal(place string, data []byte) []byte {
	return s.aead.Seal(nil, nil, data, []byte(place))
}

// Open decrypts data sealed for the same place. The error is [ErrUnreadable].
func (s *Sealer) Open(place string, sealed []byte) ([]byte, error) {
	data, err := s.aead.Open(nil, nil, sealed, []byte(place))
	if err != nil {
		return nil, ErrUnreadable
	}
	return data, nil
}
