package database

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// SecretName is the file in the data directory with the key that encrypts tokens.
const SecretName = "secret.key"

// SecretKey returns the key that encrypts tokens at rest: the setting, or the file in
// the data directory, which is made at the first start.
func (p Place) SecretKey(setting string) ([]byte, error) {
	if setting != "" {
		if len(setting) < 16 {
			return nil, errors.New("setting secret_key (ONECLAW_SECRET_KEY): want at least 16 characters")
		}
		return []byte(setting), nil
	}
	path := filepath.Join(p.Dir, SecretName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newSecretKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the secret key: %w", err)
	}
	key := strings.TrimSpace(string(data))
	if len(key) < 16 {
		return nil, fmt.Errorf("secret key in %s is damaged: restore it from a backup; without it stored keys and tokens cannot be read", path)
	}
	return []byte(key), nil
}

func newSecretKey(path string) ([]byte, error) {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails (crypto/rand)
	key := []byte(hex.EncodeToString(random))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the secret key: %w", err)
	}
	_, err = f.Write(append(key, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, fmt.Errorf("write the secret key: %w", err)
	}
	return key, nil
}
