package bolt

import (
	"bytes"
	"testing"

	"oneclaw/storage"
)

func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte{})
	f.Add(encodeRecord(storage.Record{Label: "l", Data: []byte("data")}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRecord(b)
		if err != nil {
			return
		}
		if len(r.Label) > storage.MaxKey {
			t.Fatalf("label of %d bytes", len(r.Label))
		}
		again, err := decodeRecord(encodeRecord(r))
		if err != nil || again.Label != r.Label || !bytes.Equal(again.Data, r.Data) {
			t.Fatalf("%+v becomes %+v, %v", r, again, err)
		}
	})
}

func FuzzDecodeValue(f *testing.F) {
	f.Add([]byte{})
	f.Add(encodeValue(7, []byte("value")))
	f.Fuzz(func(t *testing.T, b []byte) {
		rev, value, err := decodeValue(b)
		if err != nil {
			return
		}
		if got := encodeValue(rev, value); !bytes.Equal(got, b) {
			t.Fatalf("%x becomes %x", b, got)
		}
	})
}
