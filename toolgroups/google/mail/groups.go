// Package mail is the mailbox: Gmail and its settings.
package mail

import "embed"

//go:embed manifests/*.json
var manifests embed.FS
