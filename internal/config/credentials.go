package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// credential begins the names of systemd's credential files.
const credential = "oneclaw_"

// credentials sets NAME_FILE for each of systemd's credential files, unless a variable is set
// already.
func credentials(environment map[string]string) error {
	dir := environment["CREDENTIALS_DIRECTORY"]
	if dir == "" {
		return nil
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("environment: CREDENTIALS_DIRECTORY: %w", err)
	}
	for _, file := range files {
		name, ours := strings.CutPrefix(file.Name(), credential)
		if !ours {
			continue
		}
		if !slices.Contains(Variables(true), name) {
			return fmt.Errorf("the folder of secrets has a file %s, which is no secret of the settings: it is named like one, such as TELEGRAM_BOT_TOKEN", name)
		}
		if environment[name] == "" && environment[name+"_FILE"] == "" {
			environment[name+"_FILE"] = filepath.Join(dir, file.Name())
		}
	}
	return nil
}
