package database

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// A backup ends with a line that has the checksum of everything before it. The engine ignores
// data after its last page, so the file opens like any other database.
const (
	checksumBegin = "\noneclaw backup, sha256 "
	checksumEnd   = "\n"
	checksumSize  = len(checksumBegin) + 2*sha256.Size + len(checksumEnd)
)

// errChecksum is returned for a file that may differ from what was written, which is not
// restored.
var errChecksum = errors.New("it is no whole backup of oneclaw: it does not end with the checksum of what is in it, so it was changed or cut off, or is a database that oneclaw did not copy")

// checksumLine returns the checksum line for the content of a reader.
func checksumLine(r io.Reader) ([]byte, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return nil, err
	}
	return []byte(checksumBegin + hex.EncodeToString(sum.Sum(nil)) + checksumEnd), nil
}

// appendChecksum appends the checksum to a complete database.
func appendChecksum(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("add the checksum: %w", err)
	}
	line, err := checksumLine(f)
	if err == nil {
		_, err = f.Write(line)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("add the checksum: %w", err)
	}
	return nil
}

// removeChecksum removes the checksum from the copy of a backup. If it does not match, the error is
// [errChecksum] and the file stays unchanged.
func removeChecksum(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size() - int64(checksumSize)
	if size < 0 {
		return errChecksum
	}
	line, err := checksumLine(io.LimitReader(f, size))
	if err != nil {
		return err
	}
	last := make([]byte, checksumSize)
	if _, err = io.ReadFull(f, last); err != nil {
		return err
	}
	if string(last) != string(line) {
		return errChecksum
	}
	if err := f.Truncate(size); err != nil {
		return err
	}
	return f.Sync()
}
