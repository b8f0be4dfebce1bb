// Package organizer is what people plan with: calendar, contacts and tasks.
package organizer

import "embed"

//go:embed manifests/*.json
var manifests embed.FS
