package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"oneclaw/bridge"
	"oneclaw/bridge/queue"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
)

// deployFolder has what the program is installed with.
const deployFolder = "../../deploy"

// enough is what a replica takes to end at most: the drain, and the last write to a database
// that does not answer.
const enough = bridge.DefaultDrainTimeout + queue.WriteTimeout

// yamls decodes all documents of a text.
func yamls(t *testing.T, data []byte) (all []map[string]any) {
	t.Helper()
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var one map[string]any
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if one != nil {
			all = append(all, one)
		}
	}
}

// at follows keys and indices into a decoded document; nil where there is nothing.
func at(in any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := in.(map[string]any)
			in = m[step]
		case int:
			l, _ := in.([]any)
			if step >= len(l) {
				return nil
			}
			in = l[step]
		}
	}
	return in
}

// keysOf are the keys of an object in a decoded document.
func keysOf(in any) []string {
	m, _ := in.(map[string]any)
	return slices.Sorted(maps.Keys(m))
}

// accepted has the program read an environment in which secrets are files below a folder
// of the container: each name has to be a setting, and the values have to go together.
func accepted(t *testing.T, environment map[string]string, folder string) config.Config {
	t.Helper()
	secrets := t.TempDir()
	environ := []string{"ONECLAW_DATA_DIR=" + t.TempDir()}
	for name, value := range environment {
		known := slices.Contains(config.Variables(false), name)
		if secret, is := strings.CutSuffix(name, "_FILE"); is && slices.Contains(config.Variables(true), secret) {
			file, inside := strings.CutPrefix(value, folder+"/")
			if !inside {
				t.Errorf("%s=%s is not below %s", name, value, folder)
			}
			known, value = true, filepath.Join(secrets, file)
			if err := os.WriteFile(value, []byte("123456:a-secret-that-is-long-enough\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if !known {
			t.Errorf("the program has no setting %s", name)
		}
		// The address of the store is a secret where it has a password.
		open := name == "ONECLAW_STORE" && database.Address(value).Password() == ""
		if slices.Contains(config.Variables(true), name) && value != "" && !open {
			t.Errorf("the secret %s stands in the clear", name)
		}
		if name != "ONECLAW_DATA_DIR" {
			environ = append(environ, name+"="+value)
		}
	}
	cfg, err := config.Load("", environ)
	if err == nil {
		err = cfg.Platforms.Check()
	}
	if err != nil {
		t.Error(err)
	}
	return cfg
}

// composeKeys are the keys that the Compose specification has at the places that our file
// uses. A star is any name.
var composeKeys = map[string]string{
	"":                        "name services networks volumes secrets configs include models",
	"services.*":              "annotations attach build cap_add cap_drop command configs container_name cpu_shares cpus cpuset depends_on deploy devices dns entrypoint env_file environment expose extends extra_hosts group_add healthcheck hostname image init ipc labels logging mem_limit mem_reservation memswap_limit network_mode networks oom_score_adj pid pids_limit platform ports post_start pre_stop privileged profiles pull_policy read_only restart runtime scale secrets security_opt shm_size stdin_open stop_grace_period stop_signal sysctls tmpfs tty ulimits user userns_mode volumes working_dir",
	"services.*.build":        "context dockerfile dockerfile_inline args cache_from cache_to labels network no_cache platforms pull secrets ssh tags target",
	"services.*.healthcheck":  "test interval timeout retries start_period start_interval disable",
	"services.*.depends_on.*": "condition required restart",
	"volumes.*":               "name driver driver_opts external labels",
	"secrets.*":               "name file environment external labels driver driver_opts",
}

// misspelt lists the keys of a Compose file that are not in the specification.
func misspelt(file map[string]any) (wrong []string) {
	var walk func(in any, place, pattern string)
	walk = func(in any, place, pattern string) {
		allowed, has := composeKeys[pattern]
		for _, key := range keysOf(in) {
			if strings.HasPrefix(key, "x-") {
				continue
			}
			if has && !slices.Contains(strings.Fields(allowed), key) {
				wrong = append(wrong, strings.TrimPrefix(place+"."+key, "."))
			}
			if next := strings.TrimPrefix(pattern+"."+key, "."); anyKeyBelow(next) {
				walk(at(in, key), place+"."+key, next)
			} else if next := strings.TrimPrefix(pattern+".*", "."); anyKeyBelow(next) {
				walk(at(in, key), place+"."+key, next)
			}
		}
	}
	walk(file, "", "")
	return wrong
}

// anyKeyBelow reports whether the table says something about a place or one below it.
func anyKeyBelow(pattern string) bool {
	for known := range composeKeys {
		if known == pattern || strings.HasPrefix(known, pattern+".") {
			return true
		}
	}
	return false
}

func composeFile(t *testing.T) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(deployFolder, "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return yamls(t, data)[0]
}

func TestComposeFileHasKeysOfTheSpecification(t *testing.T) {
	file := composeFile(t)
	if wrong := misspelt(file); len(wrong) > 0 {
		t.Errorf("not in the Compose specification: %q", wrong)
	}
	// The check sees what is wrong.
	bad := map[string]any{"service": nil, "services": map[string]any{"a": map[string]any{
		"imagine": "x", "healthcheck": map[string]any{"intervall": "1s"}, "depends_on": map[string]any{"b": map[string]any{"conditions": "x"}},
	}}}
	want := []string{"service", "services.a.depends_on.b.conditions", "services.a.healthcheck.intervall", "services.a.imagine"}
	if got := misspelt(bad); !slices.Equal(got, want) {
		t.Errorf("of a wrong file it finds %q, want %q", got, want)
	}
}

// TestComposeFileIsTwoReplicasAndPostgreSQL holds the file against the program, and its
// parts against each other.
func TestComposeFileIsTwoReplicasAndPostgreSQL(t *testing.T) {
	file := composeFile(t)
	if got := keysOf(file["services"]); !slices.Equal(got, []string{"oneclaw-1", "oneclaw-2", "postgres"}) {
		t.Fatalf("the services are %q", got)
	}
	for name, service := range file["services"].(map[string]any) {
		for _, volume := range at(service, "volumes").([]any) {
			source, _, _ := strings.Cut(volume.(string), ":")
			if !slices.Contains(keysOf(file["volumes"]), source) {
				t.Errorf("%s: no volume %s", name, source)
			}
		}
		secrets := at(service, "secrets").([]any)
		for _, secret := range secrets {
			if !slices.Contains(keysOf(file["secrets"]), secret.(string)) {
				t.Errorf("%s: no secret %s", name, secret)
			}
		}
		for _, key := range keysOf(at(service, "environment")) {
			value := at(service, "environment", key).(string)
			if secret, is := strings.CutPrefix(value, "/run/secrets/"); is && !slices.Contains(secrets, any(secret)) {
				t.Errorf("%s: %s names a secret that the service does not get", name, key)
			}
		}
		for _, of := range [][]any{{"stop_grace_period"}, {"healthcheck", "interval"}, {"healthcheck", "timeout"}} {
			if text, _ := at(service, of...).(string); !isDuration(text) {
				t.Errorf("%s: %v is %q", name, of, text)
			}
		}
	}
	for _, name := range []string{"oneclaw-1", "oneclaw-2"} {
		composedReplica(t, name, at(file, "services", name))
	}
}

func isDuration(text string) bool {
	d, err := time.ParseDuration(text)
	return err == nil && d > 0
}

func composedReplica(t *testing.T, name string, service any) {
	environment := map[string]string{}
	for key, value := range at(service, "environment").(map[string]any) {
		// What the operator may leave empty is empty.
		if environment[key] = value.(string); strings.HasPrefix(environment[key], "${") {
			if environment[key] != "${"+key+":-}" {
				t.Errorf("%s: %s is %s", name, key, value)
			}
			environment[key] = ""
		}
	}
	if at(service, "env_file", 0, "path") != ".env" || at(service, "env_file", 0, "required") != false {
		t.Errorf("%s: settings in .env do not reach the program: %v", name, at(service, "env_file"))
	}
	cfg := accepted(t, environment, "/run/secrets")
	if !cfg.Store.Shared() || cfg.StorePassword == "" || cfg.SecretKey == "" || cfg.Listen != imagePort(t) {
		t.Errorf("%s: store %s, listen %s", name, cfg.Store, cfg.Listen)
	}
	if port := at(service, "ports", 0); !strings.HasPrefix(port.(string), "127.0.0.1:") || !strings.HasSuffix(port.(string), imagePort(t)) {
		t.Errorf("%s: the port is published as %s", name, port)
	}
	if grace, _ := time.ParseDuration(at(service, "stop_grace_period").(string)); grace <= enough {
		t.Errorf("%s: it is killed after %s, but may take %s to end", name, grace, enough)
	}
	check := at(service, "healthcheck", "test").([]any)
	if check[0] != "CMD" || check[1] != "/oneclaw" {
		t.Fatalf("%s: the health check is %q", name, check)
	}
	if _, rest, err := rootCommand(nil).Find([]string{check[2].(string)}); err != nil || len(rest) > 0 {
		t.Errorf("%s: the program has no command %s", name, check[2])
	}
	if at(service, "depends_on", "postgres", "condition") != "service_healthy" || at(service, "read_only") != true || at(service, "restart") == nil {
		t.Errorf("%s: it is not started, or not locked up, as it should be", name)
	}
}

// imagePort is where the program listens in the image.
func imagePort(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(data), "\nEXPOSE ")
	port := fmt.Sprint(":", strings.Fields(rest)[0])
	if !found || !strings.Contains(string(data), "ONECLAW_LISTEN="+port) {
		t.Fatal("Dockerfile exposes another port than it listens on")
	}
	return port
}
