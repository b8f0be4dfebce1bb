package google

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
)

// minKey is the least length of a secret key in bytes.
const minKey = 16

// errUnreadable is what another secret key has encrypted, or what is damaged.
var errUnreadable = errors.New("it was encrypted with another secret key, or is damaged")

// sealer encrypts what lies in the store, bound to the key under which it lies.
type sealer struct{ aead cipher.AEAD }

func newSealer(secret []byte) (sealer, error) {
	if len(secret) < minKey {
		return sealer{}, fmt.Errorf("the secret key has %d bytes, at least %d are needed", len(secret), minKey)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "oneclaw google accounts v1", 32)
	if err != nil {
		return sealer{}, fmt.Errorf("derive the key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, fmt.Errorf("cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return sealer{}, fmt.Errorf("cipher: %w", err)
	}
	return sealer{aead: aead}, nil
}

func (s sealer) seal(place string, data []byte) []byte {
	return s.aead.Seal(nil, nil, data, []byte(place))
}

func (s sealer) open(place string, sealed []byte) ([]byte, error) {
	data, err := s.aead.Open(nil, nil, sealed, []byte(place))
	if err != nil {
		return nil, errUnreadable
	}
	return data, nil
}

// locks has a lock for each name that is in use.
type locks struct {
	mu   sync.Mutex
	held map[string]*lock
}

type lock struct {
	slot  chan struct{}
	users int
}

// lock waits for the lock of a name, but no longer than ctx.
func (l *locks) lock(ctx context.Context, name string) (unlock func(), err error) {
	l.mu.Lock()
	k := l.held[name]
	if k == nil {
		k = &lock{slot: make(chan struct{}, 1)}
		l.held[name] = k
	}
	k.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.users--; k.users == 0 {
			delete(l.held, name)
		}
	}
	select {
	case k.slot <- struct{}{}:
		return func() { <-k.slot; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
