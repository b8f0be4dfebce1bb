package database

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"oneclaw/storage"
)

// SecretName is the file in the data directory with the key that encrypts tokens.
const SecretName = "secret.key"

// CheckSecret refuses unusable settings of the secret key.
func (p Place) CheckSecret() error {
	switch {
	case p.Secret == "" && p.Address.Shared():
		return errors.New("setting secret_key (ONECLAW_SECRET_KEY): a database on a server needs it, the same for all bots that share it: " +
			"what secret.key in the former data directory holds if the database was moved, else 16 random characters or more, such as 'openssl rand -hex 32' prints")
	case p.Secret != "" && len(p.Secret) < 16:
		return errors.New("setting secret_key (ONECLAW_SECRET_KEY): want at least 16 characters")
	}
	return nil
}

// SecretKey returns the key that encrypts tokens at rest: the setting, or the file in the data
// directory, which is created at the first start. On a shared server it has to be the key with
// which the database was begun.
func (p Place) SecretKey(ctx context.Context, kv storage.KV) ([]byte, error) {
	if err := p.CheckSecret(); err != nil {
		return nil, err
	}
	if !p.Address.Shared() {
		key, err := p.localKey()
		if errors.Is(err, fs.ErrNotExist) {
			return newSecretKey(filepath.Join(p.Dir, SecretName))
		}
		return key, err
	}
	return []byte(p.Secret), checkKey(ctx, kv, []byte(p.Secret))
}

// secretRecord is the record of the key's fingerprint on a server.
const secretRecord = "secret"

// checkKey compares a key with the one with which a database was begun, or records it.
func checkKey(ctx context.Context, kv storage.KV, key []byte) error {
	hash := hmac.New(sha256.New, key)
	_, _ = hash.Write([]byte("oneclaw: fingerprint of the secret key")) // never fails
	fingerprint := hex.AppendEncode(nil, hash.Sum(nil)[:8])
	_, err := kv.Put(ctx, secretRecord, fingerprint, storage.Absent)
	if !errors.Is(err, storage.ErrConflict) {
		return err
	}
	entry, err := kv.Get(ctx, secretRecord)
	if err != nil {
		return fmt.Errorf("compare the secret key: %w", err)
	}
	if !hmac.Equal(entry.Value, fingerprint) {
		return errors.New("setting secret_key (ONECLAW_SECRET_KEY): it is not the key with which this database was begun, and without that the stored keys and accounts cannot be read: set the same for all bots")
	}
	return nil
}

// localKey returns the setting, or the content of the file in the data directory.
func (p Place) localKey() ([]byte, error) {
	if p.Secret != "" {
		return []byte(p.Secret), nil
	}
	path := filepath.Join(p.Dir, SecretName)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the secret key: %w", err)
	}
	key := strings.TrimSpace(string(data))
	if len(key) < 16 {
		return nil, fmt.Errorf("secret key in %s is damaged: restore it from a backup; without it stored keys and tokens cannot be read", path)
	}
	return []byte(key), nil
}

// newSecretKey writes a new key to a file, which a crash leaves complete or absent.
func newSecretKey(path string) ([]byte, error) {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails (crypto/rand)
	key := []byte(hex.EncodeToString(random))
	written, err := writeTemp(filepath.Dir(path), secretPattern, func(f *os.File) error {
		_, err := f.Write(append(key, '\n'))
		return err
	})
	if err == nil {
		defer func() { _ = os.Remove(written) }()
		err = publish(written, path, false)
	}
	if err != nil {
		return nil, fmt.Errorf("make the secret key: %w", err)
	}
	return key, nil
}
