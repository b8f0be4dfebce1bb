package redact

// Secret is a setting that is never shown.
type Secret string

// String masks the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return Mask
}

// GoString masks the value in %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalYAML masks the value.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// MarshalText masks the value in JSON and other texts.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
