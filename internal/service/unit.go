package service

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"
	"text/template"
	"time"
)

const (
	// Name is the name of the unit.
	Name = "oneclaw.service"
	// SettingsFile is the environment file of the system's service.
	SettingsFile = "/etc/oneclaw/oneclaw.env"
	// SecretsDir is the folder with the secrets of the system's service.
	SecretsDir = "/etc/oneclaw/secrets"
	// ProgramPath is the path to which the program is usually copied for all users.
	ProgramPath = "/usr/local/bin/oneclaw"
	// StopTimeout is how long systemd waits for the service to stop.
	StopTimeout = time.Minute
)

//go:embed oneclaw.service.tmpl
var unitSource string

var unitTemplate = template.Must(template.New(Name).Parse(unitSource))

// Options configures the unit.
type Options struct {
	// UserService selects a service of the user, for which systemd offers less sandboxing.
	UserService bool
	// Program is the absolute path of the program.
	Program string
}

// Unit returns the text of the unit.
func Unit(o Options) (string, error) {
	if !filepath.IsAbs(o.Program) || strings.ContainsFunc(o.Program, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`"'\%$;`, r) }) {
		return "", fmt.Errorf("the program's path %q cannot stand in a unit: put it at %s", o.Program, ProgramPath)
	}
	settings := SettingsFile
	if o.UserService {
		settings = "%E/oneclaw/oneclaw.env"
	}
	var text strings.Builder
	err := unitTemplate.Execute(&text, map[string]any{
		"User": o.UserService, "Program": o.Program, "Name": Name, "Settings": settings, "Secrets": SecretsDir, "Stop": int(StopTimeout.Seconds()),
	})
	return text.String(), err
}
