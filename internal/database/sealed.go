package database

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"
)

// sealedBegin begins each file encrypted by age.
const sealedBegin = "age-encryption.org/v1\n"

// Options configure a backup.
type Options struct {
	Force bool // replaces an existing file
	// Recipients are public keys of age (age1…) for which the backup is encrypted; if empty, it is
	// not.
	Recipients []string
}

// CheckRecipients refuses invalid public keys.
func CheckRecipients(keys []string) error {
	_, err := parseRecipients(keys)
	return err
}

func parseRecipients(keys []string) ([]age.Recipient, error) {
	var all []age.Recipient
	for _, key := range keys {
		if strings.HasPrefix(strings.ToUpper(key), "AGE-SECRET-KEY-") {
			return nil, errors.New("that is a secret key of age: backups are sealed with the public one, which begins with age1 (age-keygen -y prints it)")
		}
		found, err := age.ParseRecipients(strings.NewReader(key))
		if err != nil {
			return nil, fmt.Errorf("%q is no public key of age, which begins with age1", key)
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return nil, nil
	}
	// Keys may be valid one by one and not together: age does not mix those that resist quantum computers with
	// others. A trial shows it before a backup is due.
	if _, err := age.Encrypt(io.Discard, all...); err != nil {
		return nil, fmt.Errorf("these keys cannot be used together: %w; use either keys that begin with age1pq1 or none of them", err)
	}
	return all, nil
}

// seal encrypts a file for the recipients.
func seal(w io.Writer, file string, to []age.Recipient) error {
	sealed, err := age.Encrypt(w, to...)
	if err != nil {
		return err
	}
	return errors.Join(copyFileTo(file, sealed), sealed.Close())
}

// unseal decrypts a backup if it is sealed. The identities are in a file, one per line.
func unseal(backup, identities string, w io.Writer) error {
	f, err := os.Open(backup)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	source := bufio.NewReader(f)
	begin, _ := source.Peek(len(sealedBegin)) // a shorter file is not sealed
	switch sealed := bytes.Equal(begin, []byte(sealedBegin)); {
	case !sealed && identities != "":
		return fmt.Errorf("%s is not sealed: leave --identity away", backup)
	case !sealed:
		_, err = io.Copy(w, source)
		return err
	case identities == "":
		return fmt.Errorf("%s is sealed: name the file with its key (--identity FILE)", backup)
	}
	keys, err := readIdentities(identities)
	if err != nil {
		return err
	}
	plain, err := age.Decrypt(source, keys...)
	if _, other := errors.AsType[*age.NoIdentityMatchError](err); other {
		return fmt.Errorf("%s is sealed for another key than those in %s", backup, identities)
	}
	if err == nil {
		_, err = io.Copy(w, plain)
	}
	if err != nil {
		return fmt.Errorf("%s is cut off or changed: %w", backup, err)
	}
	return nil
}

func readIdentities(file string) ([]age.Identity, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("the file with the key: %w", err)
	}
	defer func() { _ = f.Close() }()
	keys, err := age.ParseIdentities(f)
	if err != nil {
		// The error quotes the line, which may be a truncated key.
		return nil, fmt.Errorf("%s has no secret keys of age, one a line (AGE-SECRET-KEY-1…)", file)
	}
	return keys, nil
}
