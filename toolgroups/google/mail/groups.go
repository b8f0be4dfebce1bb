// Package mail has the tools for Gmail and its settings.
package mail

import "embed"

//go:embed manifests/*.json
var manifests embed.FS
