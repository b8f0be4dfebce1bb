package config

import (
	"reflect"

	"go.yaml.in/yaml/v3"

	"oneclaw/internal/database"
	"oneclaw/internal/redact"
)

// Shown returns the settings for an operator, without possible secrets in addresses. Settings of
// type [redact.Secret] mask themselves.
func (c Config) Shown() Config {
	for _, s := range c.Settings() {
		s.value.Set(mapTexts(s.value, shown))
	}
	return c
}

// shown returns a text without possible secrets in addresses. Values with their own marshalling
// stay unchanged.
func shown(text reflect.Value) string {
	if showsItself(text) {
		return text.String()
	}
	return redact.Addresses(text.String())
}

func showsItself(text reflect.Value) bool {
	_, own := reflect.TypeAssert[yaml.Marshaler](text)
	return own
}

// mapTexts returns a copy of a value in which each text has passed f, those of blocks, lists and
// tables included.
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

// inAddresses lists possible secrets in the addresses of all settings.
func (c *Config) inAddresses() []string {
	var all []string
	for _, s := range c.Settings() {
		if s.value.Type() != reflect.TypeFor[database.Address]() {
			mapTexts(s.value, func(text reflect.Value) string {
				if !showsItself(text) {
					all = append(all, redact.InAddresses(text.String())...)
				}
				return text.String()
			})
		}
	}
	return all
}

// secretsIn lists the texts of a value that are secrets, those of blocks, lists and tables included.
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
