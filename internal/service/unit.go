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
	// Settings is the environment file of the system's service.
	Settings = "/etc/oneclaw/oneclaw.env"
	// Secrets is the folder with the secrets of the system's service.
	Secrets = "/etc/oneclaw/secrets"
	// Program is the usual path of a program for all users.
	Program = "/usr/local/bin/oneclaw"
	// StopTimeout bounds stopping the service.
	StopTimeout = time.Minute
)

//go:embed oneclaw.service.tmpl
var source string

var unit = template.Must(template.New(Name).Parse(source))

// Options select the unit.
type Options struct {
	// User makes it a user's service, which can be sandboxed less.
	User bool
	// Program is the absolute path of the program.
	Program string
}

// Unit returns the text of the unit.
func Unit(o Options) (string, error) {
	if !filepath.IsAbs(o.Program) || strings.ContainsFunc(o.Program, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`"'\%$;`, r) }) {
		return "", fmt.Errorf("the program's path %q cannot stand in a unit: put it at %s", o.Program, Program)
	}
	settings := Settings
	if o.User {
		settings = "%E/oneclaw/oneclaw.env"
	}
	var text strings.Builder
	err := unit.Execute(&text, map[string]any{
		"User": o.User, "Program": o.Program, "Name": Name, "Settings": settings, "Secrets": Secrets, "Stop": int(StopTimeout.Seconds()),
	})
	return text.String(), err
}
