package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"
)

// Variables returns the environment variables of all settings, or only of those with secrets.
func Variables(secretOnly bool) []string {
	var names []string
	for _, s := range new(Config).Settings() {
		if s.variable != "" && (!secretOnly || s.isSecret()) {
			names = append(names, s.variable)
		}
	}
	return names
}

// environmentError returns an error that names the variable with an invalid value.
func environmentError(err error) error {
	wrong, ok := errors.AsType[env.ParseError](err)
	if !ok {
		return fmt.Errorf("environment: %w", err)
	}
	for _, s := range new(Config).Settings() {
		switch {
		case s.field != wrong.Name:
		case s.value.Kind() == reflect.Bool:
			return fmt.Errorf("environment: %s: want true or false", s.variable)
		case s.value.CanInt() && !s.isDuration():
			return fmt.Errorf("environment: %s: want a whole number", s.variable)
		default:
			return fmt.Errorf("environment: %s: %w", s.variable, wrong.Err)
		}
	}
	return fmt.Errorf("environment: the value of %s does not fit: %w", wrong.Name, wrong.Err)
}

// checkVariables returns an error for an unknown variable that begins with ONECLAW_: a likely typo.
func checkVariables(environment map[string]string) error {
	known, secrets := Variables(false), Variables(true)
	for name := range environment {
		secret := slices.Contains(secrets, strings.TrimSuffix(name, "_FILE"))
		if strings.HasPrefix(name, "ONECLAW_") && name != FileVariable && !slices.Contains(known, name) && !secret {
			ours := slices.DeleteFunc(known, func(n string) bool { return !strings.HasPrefix(n, "ONECLAW_") })
			return fmt.Errorf("environment: %s is no setting; there are %s", name, strings.Join(ours, ", "))
		}
	}
	return nil
}

// readSecretFiles sets the variable NAME of each secret from the file that NAME_FILE names.
func readSecretFiles(environment map[string]string) (map[string]string, error) {
	if err := addCredentials(environment); err != nil {
		return nil, err
	}
	for _, name := range Variables(true) {
		file := environment[name+"_FILE"]
		if file == "" {
			continue
		}
		if environment[name] != "" {
			return nil, fmt.Errorf("environment: %s and %s_FILE are both set; keep one", name, name)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("environment: %s_FILE: %w", name, err)
		}
		environment[name] = strings.TrimSpace(string(data))
	}
	return environment, nil
}
