package wording

import (
	"fmt"
	"path"
	"time"
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
