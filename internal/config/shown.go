package config

import (
	"reflect"

	"go.yaml.in/yaml/v3"

	"oneclaw/internal/database"
	"oneclaw/internal/redact"
)

// ForDisplay returns the settings with known secrets, and possible ones in addresses, masked. Settings of
// type [redact.Secret] mask themselves when they are encoded.
func (c Config) ForDisplay() Config {
	for _, s := range c.Settings() {
		s.value.Set(mapTexts(s.value, c.maskText))
	}
	return c
}

// maskText returns a text with known secrets, and possible ones in addresses, masked. Values that have
// their own marshaller are unchanged.
func (c Config) maskText(text reflect.Value) string {
	if marshalsItself(text) {
		return text.String()
	}
	return c.Redact.MaskKnown(redact.MaskAddresses(text.String()))
}

func marshalsItself(text reflect.Value) bool {
	_, own := reflect.TypeAssert[yaml.Marshaler](text)
	return own
}

// mapTexts returns a copy of a value in which f is applied to each text, including those in sections,
// lists and maps.
func mapTexts(v reflect.Value, f func(text reflect.Value) string) reflect.Value {
	switch v.Kind() {
	case reflect.String:
		return reflect.ValueOf(f(v)).Convert(v.Type())
	case reflect.Struct:
		whole := reflect.New(v.Type()).Elem()
		whole.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				whole.Field(i).Set(mapTexts(v.Field(i), f))
			}
		}
		return whole
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		list := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			list.Index(i).Set(mapTexts(v.Index(i), f))
		}
		return list
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		table := reflect.MakeMap(v.Type())
		for key, value := range v.Seq2() {
			table.SetMapIndex(mapTexts(key, f), mapTexts(value, f))
		}
		return table
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		to := reflect.New(v.Type().Elem())
		to.Elem().Set(mapTexts(v.Elem(), f))
		return to
	default:
		return v
	}
}

// addressSecrets returns the possible secrets in addresses in all settings.
func (c *Config) addressSecrets() []string {
	var all []string
	for _, s := range c.Settings() {
		if s.value.Type() != reflect.TypeFor[database.Address]() {
			mapTexts(s.value, func(text reflect.Value) string {
				if !marshalsItself(text) {
					all = append(all, redact.SecretsInAddresses(text.String())...)
				}
				return text.String()
			})
		}
	}
	return all
}

// secretsIn returns the secrets in a value, including those in sections, lists and maps.
func secretsIn(v reflect.Value) []string {
	var all []string
	mapTexts(v, func(text reflect.Value) string {
		if secret, ok := reflect.TypeAssert[redact.Secret](text); ok {
			all = append(all, string(secret))
		}
		return text.String()
	})
	return all
}
