package wording

import (
	"fmt"
	"path"
	"strings"
	"time"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// maxZone bounds the name of a time zone, in bytes.
const maxZone = 40

// LoadZone returns the time zone with an IANA name. A name is looked up as a path, of which there are spellings of any
// length: they would push what stands behind one out of a line, so that a zone has one spelling. The host's own zone has
// no name.
func LoadZone(name string) (*time.Location, error) {
	if name == "" || name == "Local" || len(name) > maxZone || path.Clean(name) != name {
		return nil, fmt.Errorf("%q is no name of a time zone", Clip(name, maxZone))
	}
	return time.LoadLocation(name) //nolint:wrapcheck // It names the zone.
}

// FindZone returns the IANA name of the time zone that a person names, in any case: the name itself, or the city in it,
// such as Lisbon, New York or Lisbon, Portugal. It returns "" if there is none.
func FindZone(said string) string {
	said, _, _ = strings.Cut(said, ",")
	words := strings.Fields(strings.ReplaceAll(said, "_", " "))
	said = strings.Join(words, "_")
	// No file system need forgive another case, and the database has small words in few names.
	name := strings.ReplaceAll(cases.Title(language.Und).String(strings.Join(words, " ")), " ", "_")
	name = strings.NewReplacer("_Of_", "_of_", "-Au-", "-au-", "_Es_", "_es_").Replace(name)
	for _, region := range []string{"", "Europe/", "America/", "Asia/", "Africa/", "Australia/", "Pacific/", "Atlantic/", "Indian/"} {
		if _, err := LoadZone(region + name); err == nil {
			return region + name
		}
	}
	for _, name := range []string{said, strings.ToUpper(said)} { // UTC, America/Port_of_Spain
		if _, err := LoadZone(name); err == nil {
			return name
		}
	}
	return ""
}
