package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// credentialPrefix begins the names of the bot's systemd credential files.
const credentialPrefix = "oneclaw_"

// addCredentials sets NAME_FILE for each systemd credential file, unless NAME or NAME_FILE is already
// set.
func addCredentials(environment map[string]string) error {
	dir := environment["CREDENTIALS_DIRECTORY"]
	if dir == "" {
		return nil
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("environment: CREDENTIALS_DIRECTORY: %w", err)
	}
	for _, file := range files {
		name, ours := strings.CutPrefix(file.Name(), credentialPrefix)
		if !ours {
			continue
		}
		if !slices.Contains(Variables(true), name) {
			return fmt.Errorf("the credentials directory has a file for %s, which is not the variable of a secret, such as TELEGRAM_BOT_TOKEN", name)
		}
		if environment[name] == "" && environment[name+"_FILE"] == "" {
			environment[name+"_FILE"] = filepath.Join(dir, file.Name())
		}
	}
	return nil
}
