// Package drive is Google Drive and what lies there: documents, spreadsheets,
// presentations and forms.
package drive

import (
	"embed"

	"oneclaw/toolgroups/google/service"
)

//go:embed manifests/*.json
var manifests embed.FS

// Groups are the groups of this package.
func Groups() []service.Group {
	return []service.Group{driveGroup(), docsGroup(), sheetsGroup(), slidesGroup(), formsGroup()}
}
