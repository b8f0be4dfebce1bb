package config

import (
	"reflect"

	"go.yaml.in/yaml/v3"

	"oneclaw/internal/database"
	"oneclaw/internal/redact"
)

// Shown returns the settings as they may be shown to an operator: without what may be secret in
// addresses. Settings that are secrets mask themselves.
func (c Config) Shown() Config {
	for _, s := range c.Settings() {
		s.value.Set(mapTexts(s.value, redact.Addresses))
	}
	return c
}

// mapTexts returns a copy of a value in which each text has passed f, those of blocks, lists and
// tables included. What shows itself in a way of its own stays as it is.
func mapTexts(v reflect.Value, f func(string) string) reflect.Value {
	if _, own := reflect.TypeAssert[yaml.Marshaler](v); own && v.Kind() == reflect.String {
		return v
	}
	switch v.Kind() {
	case reflect.String:
		return reflect.ValueOf(f(v.String())).Convert(v.Type())
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

// inAddresses lists what may be secret in the addresses of all settings.
func (c *Config) inAddresses() []string {
	var all []string
	for _, s := range c.Settings() {
		if s.value.Type() != reflect.TypeFor[database.Address]() {
			mapTexts(s.value, func(text string) string {
				all = append(all, redact.InAddresses(text)...)
				return text
			})
		}
	}
	return all
}
