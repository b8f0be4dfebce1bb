// Package drive has the tools for Google Drive, documents, spreadsheets, presentations and
// forms.
package drive

import "embed"

//go:embed manifests/*.json
var manifests embed.FS
