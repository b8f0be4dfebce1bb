package config_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"oneclaw/internal/config"
)

// The secrets that are planted: what stands in front of a host, in a query, in a fragment, and as
// an argument of a program.
const (
	planted = "pl4nted-secret-of-a-test"
	address = "https://somebody:in-" + planted + "@host.example/v1?key=query-" + planted + "&sig=another-" + planted + "#behind-" + planted
)

// plant returns a value for a setting of a type, all of whose texts have a secret in an address.
func plant(t reflect.Type) any {
	switch t.Kind() {
	case reflect.String:
		return address
	case reflect.Slice:
		return []any{plant(t.Elem())}
	case reflect.Map:
		return map[string]any{"planted": plant(t.Elem())}
	case reflect.Struct:
		block := map[string]any{}
		for field := range t.Fields() {
			key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			if value := plant(field.Type); value != nil && key != "" && key != "-" {
				block[key] = value
			}
		}
		if len(block) > 0 {
			return block
		}
	default:
	}
	return nil
}

// TestNoSettingShowsASecretOfItsAddresses plants one in each setting that takes text, and in each
// text of its blocks alone, and looks at what the program prints, shows on the page of settings
// and says of settings that it does not take.
func TestNoSettingShowsASecretOfItsAddresses(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	tried, taken := 0, 0
	for _, s := range cfg.Settings() {
		for _, value := range alone(plant(s.Type())) {
			path := strings.Split(s.Key, ".")
			tree := value
			for _, name := range slices.Backward(path) {
				tree = map[string]any{name: tree}
			}
			data, err := yaml.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "oneclaw.yaml")
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
			tried++
			got, err := config.Load(file, nil)
			if err != nil {
				hidden(t, s.Key, err.Error())
				continue
			}
			taken++
			shown(t, s.Key, got)
		}
	}
	t.Logf("%d settings were tried, %d taken", tried, taken)
	if tried < 50 || taken < 20 {
		t.Errorf("%d settings were tried, %d taken", tried, taken)
	}
}

// TestArgumentsOfServersAreNotShown has them in the forms in which programs take them.
func TestArgumentsOfServersAreNotShown(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"[" + planted + "]", "[--api-key, " + planted + "]", "[--token=" + planted + "]", `["--dsn=postgres://u:` + planted + `@host/db"]`} {
		file := filepath.Join(t.TempDir(), "oneclaw.yaml")
		if err := os.WriteFile(file, []byte("mcp: {servers: {files: {command: npx, args: "+args+"}}}"), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := config.Load(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		shown(t, args, got)
		hidden(t, args, got.Redact.MaskKnown("the server "+planted+" ended"))
	}
}

// TestTheKeyInTheAddressOfAServerIsNotShown has it where some services put it.
func TestTheKeyInTheAddressOfAServerIsNotShown(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "oneclaw.yaml")
	if err := os.WriteFile(file, []byte("mcp: {servers: {mails: {url: \"https://host.example/api/mcp/s/"+planted+"/mcp\"}}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := config.Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	shown(t, "mails", got)
	hidden(t, "mails", got.Redact.MaskKnown("Post https://host.example/api/mcp/s/"+planted+"/mcp: no such host"))
}

// TestAFileThatNamesVariablesHasNoSecrets knows whether others may read the file.
func TestAFileThatNamesVariablesHasNoSecrets(t *testing.T) {
	t.Setenv("TICKETS_TOKEN", "from-the-environment")
	for text, secret := range map[string]bool{
		`url: https://a.example, headers: {Authorization: "Bearer ${TICKETS_TOKEN}"}`:          false,
		`url: https://a.example, auth: oauth, client_id: a, client_secret: "${TICKETS_TOKEN}"`: false,
		`command: a, pass_env: [TICKETS_TOKEN], env: {A_TOKEN: "${TICKETS_TOKEN}"}`:            false,
		`url: https://a.example, headers: {Authorization: "Bearer of-the-file"}`:               true,
		`command: a, env: {A_TOKEN: of-the-file, B_TOKEN: "${TICKETS_TOKEN}"}`:                 true,
	} {
		file := filepath.Join(t.TempDir(), "oneclaw.yaml")
		if err := os.WriteFile(file, []byte("mcp: {servers: {tickets: {"+text+"}}}"), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := config.Load(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		if (got.SecretFile != "") != secret {
			t.Errorf("%s: the file with secrets is %q", text, got.SecretFile)
		}
		if said := "it is from-the-environment"; strings.Contains(text, "${") && got.Redact.MaskKnown(said) == said {
			t.Errorf("%s: what the variable has is shown", text)
		}
	}
}

// shown looks at what is shown of settings.
func shown(t *testing.T, what string, cfg config.Config) {
	t.Helper()
	var out bytes.Buffer
	if err := yaml.NewEncoder(&out).Encode(cfg.ForDisplay()); err != nil {
		t.Fatal(err)
	}
	hidden(t, what, out.String())
	if strings.Contains(out.String(), "@host.example") { // it is an address; the log and errors know what was in it
		hidden(t, what, cfg.Redact.MaskKnown("dial: in-"+planted+", query-"+planted+", another-"+planted+" and behind-"+planted+" were refused"))
	}
}

func hidden(t *testing.T, what, text string) {
	t.Helper()
	if strings.Contains(text, planted) {
		t.Errorf("%s: %s", what, text)
	}
}

// alone returns a value, and the same with one text at a time where it is a block or has some.
func alone(value any) []any {
	switch v := value.(type) {
	case nil:
		return nil
	case map[string]any:
		var all []any
		for _, key := range slices.Sorted(maps.Keys(v)) {
			for _, one := range alone(v[key]) {
				all = append(all, map[string]any{key: one})
			}
		}
		return append(all, v)
	case []any:
		var all []any
		for _, one := range alone(v[0]) {
			all = append(all, []any{one})
		}
		return all
	}
	return []any{value}
}
