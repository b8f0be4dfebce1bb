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
	// Name is the unit.
	Name = "oneclaw.service"
	// Settings is where the service of the system reads its environment.
	Settings = "/etc/oneclaw/oneclaw.env"
	// Secrets is the folder of the secrets that the service of the system is given.
	Secrets = "/etc/oneclaw/secrets"
	// Program is where a program for all users usually is.
	Program = "/usr/local/bin/oneclaw"
	// StopTimeout is how long the service may take to end.
	StopTimeout = time.Minute
)

//go:embed oneclaw.service.tmpl
var source string

var unit = template.Must(template.New(Name).Parse(source))

// Options say which unit is wanted.
type Options struct {
	// User makes it the service of one user, whose manager cannot close as much.
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
