package database

import (
	"errors"
	"net/url"
	"strings"
)

// Bolt is the address of the engine that uses a file in the data directory.
const Bolt Address = "bolt"

// Address selects the engine of a database: [Bolt], or the address of a PostgreSQL server. It is
// shown without its password.
type Address string

// Shared reports whether several processes can use the database.
func (a Address) Shared() bool { return a != Bolt && a != "" }

// Check refuses an invalid address. The error does not repeat it.
func (a Address) Check() error {
	if !a.Shared() {
		return nil
	}
	if u, err := url.Parse(string(a)); err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return errors.New("want bolt, or postgres://user@host:port/database; special characters of a password are written as %40 and the like")
	}
	return nil
}

// Password returns the password of the user: all of an invalid address.
func (a Address) Password() string {
	u, err := url.Parse(string(a))
	if err != nil {
		return string(a)
	}
	if password, ok := u.User.Password(); ok {
		return password
	}
	return u.Query().Get(passwordKey)
}

// Query parameters that may contain a password: that of the user, and that of the key in sslkey.
const (
	passwordKey    = "password"
	keyPasswordKey = "sslpassword"
)

// Secrets returns the parts of the address that must not be shown.
func (a Address) Secrets() []string {
	secrets := []string{a.Password()}
	if u, err := url.Parse(string(a)); err == nil {
		secrets = append(secrets, u.Query()[passwordKey]...)
		secrets = append(secrets, u.Query()[keyPasswordKey]...)
	}
	return secrets
}

// String returns the address without its passwords.
func (a Address) String() string {
	u, err := url.Parse(string(a))
	if err != nil {
		return "postgres://"
	}
	query := u.Query()
	for _, key := range []string{passwordKey, keyPasswordKey} {
		if query.Has(key) {
			query.Set(key, "xxxxx")
			u.RawQuery = query.Encode()
		}
	}
	return strings.TrimSpace(u.Redacted())
}

// MarshalYAML implements yaml.Marshaler.
func (a Address) MarshalYAML() (any, error) { return a.String(), nil }
