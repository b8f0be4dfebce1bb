// Package drive is Google Drive and what lies there: documents, spreadsheets,
// presentations and forms.
package drive

import "embed"

//go:embed manifests/*.json
var manifests embed.FS
