package redact_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"oneclaw/internal/redact"
)

const (
	secret  = "a secret of enough bytes"
	purpose = "a purpose"
	place   = "a place"
	// stored is "some text", sealed with these.
	stored = "f24f6ff97e29639596eaca9ac607ebd2c97d14672cde6fa070744b76d4a4fc148a4e12bc76"
)

func sealer(t testing.TB, secret, purpose string) *redact.Sealer {
	t.Helper()
	s, err := redact.NewSealer([]byte(secret), purpose)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fromHex(t testing.TB, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestWhatIsSealedCanBeOpened(t *testing.T) {
	s := sealer(t, secret, purpose)
	rapid.Check(t, func(t *rapid.T) {
		place, data := rapid.String().Draw(t, "place"), rapid.SliceOf(rapid.Byte()).Draw(t, "data")
		one, other := s.Seal(place, data), s.Seal(place, data)
		if bytes.Equal(one, other) {
			t.Error("the same data is sealed twice in the same way")
		}
		for _, sealed := range [][]byte{one, other} {
			if got, err := s.Open(place, sealed); err != nil || !bytes.Equal(got, data) {
				t.Errorf("opened %x, %v; want %x", got, err, data)
			}
		}
	})
}

// What lies in stores already must stay readable.
func TestFormatStays(t *testing.T) {
	got, err := sealer(t, secret, purpose).Open(place, fromHex(t, stored))
	if err != nil || string(got) != "some text" {
		t.Errorf("opened %q, %v", got, err)
	}
}

func TestOthersCannotOpen(t *testing.T) {
	sealed := sealer(t, secret, purpose).Seal(place, []byte("some text"))
	for name, c := range map[string]struct{ secret, purpose, place string }{
		"another secret":  {"another secret, long enough", purpose, place},
		"another purpose": {secret, "another purpose", place},
		"another place":   {secret, purpose, "another place"},
		"no place":        {secret, purpose, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := sealer(t, c.secret, c.purpose).Open(c.place, sealed); !errors.Is(err, redact.ErrUnreadable) || got != nil {
				t.Errorf("opened %q, %v; want %v", got, err, redact.ErrUnreadable)
			}
		})
	}
}

func TestTamperingIsNoticed(t *testing.T) {
	s := sealer(t, secret, purpose)
	sealed := s.Seal(place, []byte("some text"))
	refused := func(what string, at int, changed []byte) {
		if got, err := s.Open(place, changed); !errors.Is(err, redact.ErrUnreadable) || got != nil {
			t.Errorf("%s at %d: opened %q, %v; want %v", what, at, got, err, redact.ErrUnreadable)
		}
	}
	for i := range sealed {
		for bit := range 8 {
			changed := bytes.Clone(sealed)
			changed[i] ^= 1 << bit
			refused("a flipped bit", i, changed)
		}
		refused("cut", i, sealed[:i])
		refused("the beginning lost", i, sealed[i+1:])
	}
	refused("a byte more", len(sealed), append(bytes.Clone(sealed), 0))
}

func TestShortSecretIsRefused(t *testing.T) {
	for n, ok := range map[int]bool{0: false, redact.MinSecret - 1: false, redact.MinSecret: true} {
		if _, err := redact.NewSealer(make([]byte, n), purpose); (err == nil) != ok {
			t.Errorf("a secret of %d bytes: %v", n, err)
		}
	}
}

// No input but what was sealed is ever opened, and none is too strange to try.
func FuzzOpen(f *testing.F) {
	s := sealer(f, secret, purpose)
	sealed := fromHex(f, stored)
	f.Add(place, []byte(nil))
	f.Add(place, sealed)
	f.Add("", sealed)
	f.Add(place, sealed[:len(sealed)-1])
	f.Fuzz(func(t *testing.T, at string, data []byte) {
		got, err := s.Open(at, data)
		switch {
		case at == place && bytes.Equal(data, sealed):
			if err != nil || string(got) != "some text" {
				t.Errorf("opened %q, %v", got, err)
			}
		case !errors.Is(err, redact.ErrUnreadable) || got != nil:
			t.Errorf("opened %q, %v; want %v", got, err, redact.ErrUnreadable)
		}
	})
}
