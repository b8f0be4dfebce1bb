// Package organizer has the tools for calendar, contacts and tasks.
package organizer

import "embed"

//go:embed manifests/*.json
var manifests embed.FS
