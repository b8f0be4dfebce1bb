package config

import (
	"fmt"
	"path/filepath"
)

// The values of tools.files other than a path.
const (
	FilesLocal = "local"
	filesStore = "store"
)

// FilesDir returns the folder with the workspaces, skills and user tools.
func (c Config) FilesDir() string {
	if filepath.IsAbs(c.Tools.Files) {
		return c.Tools.Files
	}
	return c.DataDir
}

// FilesInStore reports whether [Config.FilesDir] is only a checkout of files in the store.
func (c Config) FilesInStore() bool {
	return c.Tools.Files == filesStore || c.Tools.Files == "" && c.Store.Shared()
}

// CheckFiles returns an error for an invalid value of tools.files.
func (c Config) CheckFiles() error {
	if f := c.Tools.Files; f != "" && f != FilesLocal && f != filesStore && !filepath.IsAbs(f) {
		return fmt.Errorf("setting tools.files (ONECLAW_TOOLS_FILES): %q is neither %q, %q nor the absolute path of a folder", f, FilesLocal, filesStore)
	}
	return nil
}
