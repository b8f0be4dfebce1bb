package bolt

import (
	"encoding/binary"

	"oneclaw/storage"
)

func errUndecodable() error { return damagef("the file is damaged: an entry cannot be decoded") }

// An entry of the KV is the revision in 8 bytes, big-endian, followed by the value.

func encodeValue(rev storage.Revision, value []byte) []byte {
	b := make([]byte, 0, 8+len(value))
	return append(binary.BigEndian.AppendUint64(b, uint64(rev)), value...)
}

// decodeValue returns the revision and the value, which shares the memory of b.
func decodeValue(b []byte) (storage.Revision, []byte, error) {
	if len(b) < 8 {
		return 0, nil, errUndecodable()
	}
	return storage.Revision(binary.BigEndian.Uint64(b)), b[8:], nil
}

// A record is the length of its label as a uvarint, the label, and the data. Its key is the position in
// 8 bytes, big-endian.

func encodeRecord(r storage.Record) []byte {
	b := make([]byte, 0, binary.MaxVarintLen16+len(r.Label)+len(r.Data))
	b = binary.AppendUvarint(b, uint64(len(r.Label)))
	b = append(b, r.Label...)
	return append(b, r.Data...)
}

// decodeRecord returns a record without its position. It copies the label and the data.
func decodeRecord(b []byte) (storage.Record, error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > storage.MaxKey || n > uint64(len(b)-size) {
		return storage.Record{}, errUndecodable()
	}
	label, data := b[size:size+int(n)], b[size+int(n):]
	return storage.Record{Label: string(label), Data: append([]byte{}, data...)}, nil
}

func positionKey(pos storage.Position) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(pos))
}

// labelPrefix returns the beginning of a label's keys in the index: the length of the label, so that no
// label is a prefix of another, and the label. The position follows.
func labelPrefix(label string) []byte {
	b := make([]byte, 0, 2+len(label)+8)
	b = binary.BigEndian.AppendUint16(b, uint16(len(label)))
	return append(b, label...)
}

func labelKey(label string, pos storage.Position) []byte {
	return binary.BigEndian.AppendUint64(labelPrefix(label), uint64(pos))
}

// decodePosition returns the position at the end of a key, after a prefix of n bytes.
func decodePosition(key []byte, n int) (storage.Position, error) {
	if len(key) != n+8 {
		return 0, errUndecodable()
	}
	return storage.Position(binary.BigEndian.Uint64(key[n:])), nil
}
