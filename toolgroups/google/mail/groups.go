// Package mail is the mailbox: Gmail and its settings.
package mail

import (
	"embed"

	"oneclaw/toolgroups/google/service"
)

//go:embed manifests/*.json
var manifests embed.FS

// Groups are the groups of this package.
func Groups() []service.Group { return []service.Group{gmailGroup(), gmailSettingsGroup()} }
