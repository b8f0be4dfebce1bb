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

// Password returns the part of the address that must not be shown: all of an invalid one.
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

// passwordKey is the query parameter that may contain the password.
const passwordKey = "password"

// String returns the address without its password.
func (a Address) String() string {
	u, err := url.Parse(string(a))
	if err != nil {
		return "postgres://"
	}
	if query := u.Query(); query.Has(passwordKey) {
		query.Set(passwordKey, "xxxxx")
		u.RawQuery = query.Encode()
	}
	return strings.TrimSpace(u.Redacted())
}

// MarshalYAML implements yaml.Marshaler.
func (a Address) MarshalYAML() (any, error) { return a.String(), nil }
