// Package organizer is what people plan with: calendar, contacts and tasks.
package organizer

import (
	"embed"

	"oneclaw/toolgroups/google/service"
)

//go:embed manifests/*.json
var manifests embed.FS

// Groups are the groups of this package.
func Groups() []service.Group {
	return []service.Group{calendarGroup(), contactsGroup(), tasksGroup()}
}
