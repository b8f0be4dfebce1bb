package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"

	"oneclaw/storage"
)

func errDamaged() error { return damaged("the file is damaged: an entry cannot be decoded") }

// An entry of the KV is its revision in 8 bytes, big-endian, and the value.

func encodeValue(rev storage.Revision, value []byte) []byte {
	b := make([]byte, 0, 8+len(value))
	return append(binary.BigEndian.AppendUint64(b, uint64(rev)), value...)
}

// decodeValue returns the revision and the value, which shares the memory of b.
func decodeValue(b []byte) (storage.Revision, []byte, error) {
	if len(b) < 8 {
		return 0, nil, errDamaged()
	}
	return storage.Revision(binary.BigEndian.Uint64(b)), b[8:], nil
}

// A record is the length of its label as a uvarint, the label, and the data. Its
// key is the position in 8 bytes, big-endian.

func encodeRecord(r storage.Record) []byte {
	b := make([]byte, 0, binary.MaxVarintLen16+len(r.Label)+len(r.Data))
	b = binary.AppendUvarint(b, uint64(len(r.Label)))
	b = append(b, r.Label...)
	return append(b, r.Data...)
}

// decodeRecord returns a record without its position. It copies what it returns.
func decodeRecord(b []byte) (storage.Record, error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > storage.MaxKey || n > uint64(len(b)-size) {
		return storage.Record{}, errDamaged()
	}
	label, data := b[size:size+int(n)], b[size+int(n):]
	return storage.Record{Label: string(label), Data: append([]byte{}, data...)}, nil
}

func positionKey(pos storage.Position) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(pos))
}

// labelPrefix is what the keys of a label begin with in the index: its length
// first, so that no label is the beginning of another. The position follows.
func labelPrefix(label string) []byte {
	b := make([]byte, 0, 2+len(label)+8)
	b = binary.BigEndian.AppendUint16(b, uint16(len(label)))
	return append(b, label...)
}

func labelKey(label string, pos storage.Position) []byte {
	return binary.BigEndian.AppendUint64(labelPrefix(label), uint64(pos))
}

// decodePosition returns the position at the end of a key behind a prefix of n bytes.
func decodePosition(key []byte, n int) (storage.Position, error) {
	if len(key) != n+8 {
		return 0, errDamaged()
	}
	return storage.Position(binary.BigEndian.Uint64(key[n:])), nil
}

// checkOps refuses what no engine takes.
func checkOps(ops []storage.Op) error {
	if len(ops) == 0 {
		return fmt.Errorf("%w: nothing to write", storage.ErrInvalid)
	}
	type target struct{ key, log string }
	seen := make(map[target]bool, len(ops))
	for _, op := range ops {
		if err := checkOp(op); err != nil {
			return err
		}
		to := target{key: op.Key}
		if op.Kind == storage.KindAppend {
			to = target{log: op.Log}
		}
		if seen[to] {
			return fmt.Errorf("%w: two operations on one key or log", storage.ErrInvalid)
		}
		seen[to] = true
	}
	return nil
}

func checkOp(op storage.Op) error {
	switch op.Kind {
	case storage.KindPut, storage.KindDelete, storage.KindCheck:
		return errors.Join(checkName("key", op.Key), checkLength("value", len(op.Value), storage.MaxValue))
	case storage.KindAppend:
		return checkAppend(op.Log, op.Records)
	}
	return fmt.Errorf("%w: operation of kind %d", storage.ErrInvalid, op.Kind)
}

func checkAppend(log string, records []storage.Record) error {
	if len(records) == 0 {
		return fmt.Errorf("%w: no records", storage.ErrInvalid)
	}
	err := checkName("log name", log)
	for _, r := range records {
		err = errors.Join(err,
			checkLength("label", len(r.Label), storage.MaxKey),
			checkLength("record", len(r.Data), storage.MaxValue))
	}
	return err
}

// checkName refuses a key or log name that no engine takes.
func checkName(what, name string) error {
	if name == "" {
		return fmt.Errorf("%w: empty %s", storage.ErrInvalid, what)
	}
	return checkLength(what, len(name), storage.MaxKey)
}

func checkLength(what string, n, limit int) error {
	if n > limit {
		return fmt.Errorf("%w: %s of %d bytes, at most %d", storage.ErrInvalid, what, n, limit)
	}
	return nil
}

func checkLimit(n int) error {
	if n < 0 {
		return fmt.Errorf("%w: limit %d", storage.ErrInvalid, n)
	}
	return nil
}
