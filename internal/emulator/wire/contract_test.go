package wire_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oneclaw/internal/emulator/wire"
)

var update = flag.Bool("update", false, "write the contracts anew")

// TestContractsAreWhatTheTypesSay makes the contracts from the types of the services' own libraries,
// which testdata/types/install has installed, and compares them with the files that are checked in.
func TestContractsAreWhatTheTypesSay(t *testing.T) {
	dir := typesDir(t)
	for _, service := range []string{"anthropic", "openai", "slack", "telegram"} {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			want := generate(t, dir, service)
			file := filepath.Join("..", service, "contract.json")
			if *update {
				if err := os.WriteFile(file, want, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(readFile(t, file), want) {
				t.Errorf("%s is not what the types say: run go test -run TestContracts -update ./internal/emulator/wire", file)
			}
		})
	}
}

// The versions that are claimed are those that are pinned.
func TestPinnedVersionsAreThoseThatAreNamed(t *testing.T) {
	pinned := map[string]string{}
	for _, folder := range []string{"types", "clients"} {
		var packages struct{ Dependencies map[string]string }
		if err := json.Unmarshal(readFile(t, filepath.Join("testdata", folder, "package.json")), &packages); err != nil {
			t.Fatal(err)
		}
		maps.Copy(pinned, packages.Dependencies)
	}
	claims, err := filepath.Glob("../*/contract.go")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, file := range append(claims, "../SERVICES.md") {
		for _, m := range regexp.MustCompile("(@?[a-zA-Z][a-zA-Z0-9/-]*)`? ([0-9]+\\.[0-9]+\\.[0-9]+)").FindAllStringSubmatch(string(readFile(t, file)), -1) {
			if name := strings.ToLower(m[1]); pinned[name] != "" {
				if named[name] = true; m[2] != pinned[name] {
					t.Errorf("%s names %s %s, which is pinned at %s", file, name, m[2], pinned[name])
				}
			}
		}
	}
	for _, name := range []string{"@anthropic-ai/sdk", "@google/genai", "@grammyjs/types", "@slack/types", "openai"} {
		if !named[name] {
			t.Errorf("%s is not named", name)
		}
	}
}

// typesDir is where the types are. It skips the test where they are not installed, unless they must be.
func typesDir(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	setting := os.Getenv("TEST_ONECLAW_TYPES")
	dir := filepath.Join(cache, "oneclaw", "types")
	if setting != "must" {
		dir = cmp.Or(setting, dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "ts-json-schema-generator")); err != nil {
		if setting == "must" {
			t.Fatalf("the types are not installed: run internal/emulator/wire/testdata/types/install: %v", err)
		}
		t.Skip("the types are not installed: run internal/emulator/wire/testdata/types/install")
	}
	return dir
}

// generate has the types of a service written as a JSON schema.
func generate(t *testing.T, dir, service string) []byte {
	t.Helper()
	source := []byte(telegram(t, dir))
	if service != "telegram" {
		source = readFile(t, filepath.Join("testdata", "types", service+".ts"))
	}
	scratch, err := os.MkdirTemp(dir, service) //nolint:usetesting // Types are found from below their folder alone.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(scratch) })
	file := filepath.Join(scratch, service+".ts")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"node_modules/ts-json-schema-generator/bin/ts-json-schema-generator.js",
		"--path", file, "--type", "Contract", "--no-type-check", "--no-top-ref", "--jsDoc", "none",
	}
	if service == "slack" {
		// Its types leave fields out, and each answer has types of its own under the same names.
		args = append(args, "--additional-properties", "--expose", "none")
	}
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Dir = dir
	var told bytes.Buffer
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, told.String())
	}
	var b bytes.Buffer
	if err := json.Indent(&b, out, "", " "); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// played are the methods of Telegram that the emulator plays.
var played = []string{
	"answerCallbackQuery", "copyMessage", "deleteMessage", "deleteMyCommands", "deleteWebhook", "editEphemeralMessageText",
	"editMessageReplyMarkup", "editMessageText", "forwardMessage", "getChat", "getChatAdministrators", "getChatMember",
	"getChatMemberCount", "getFile", "getMe", "getMyCommands", "getUpdates", "getWebhookInfo", "pinChatMessage", "sendChatAction",
	"sendDocument", "sendMediaGroup", "sendMessage", "sendMessageDraft", "sendPhoto", "sendVoice", "setMessageReaction",
	"setMyCommands", "setWebhook", "unpinChatMessage",
}

var (
	imports = regexp.MustCompile(`(?m)^import type .*$`)
	files   = regexp.MustCompile(`\bF\b`) // what a library sends as a file
	kinds   = regexp.MustCompile(`\(?(Update\.Edited & )?Message\.\w+\)?`)
	// methods matches the signature of a method: its name, its parameters where it has any, and
	// its result.
	methods = regexp.MustCompile(`(?ms)^    (\w+)\((?:args\??: (\{.*?^    \}))?\): ([^\n]*);$`)
)

// telegram makes a contract of the signatures in grammY's description of the Bot API, which the
// generator does not take apart by itself.
func telegram(t *testing.T, dir string) string {
	t.Helper()
	source := string(readFile(t, filepath.Join(dir, "node_modules", "@grammyjs", "types", "methods.d.ts")))
	var b strings.Builder
	for _, line := range imports.FindAllString(source, -1) {
		b.WriteString(strings.Replace(line, `"./`, `"@grammyjs/types/`, 1) + "\n")
	}
	b.WriteString("import type { InputMediaAudio, InputMediaDocument, InputMediaLivePhoto, InputMediaPhoto, InputMediaVideo } from \"@grammyjs/types/methods.js\";\n")
	parameters, results, n := "", "", 0
	for _, m := range methods.FindAllStringSubmatch(source, -1) {
		if slices.Contains(played, m[1]) {
			parameters += m[1] + "?: " + cmp.Or(files.ReplaceAllString(m[2], "string"), "{}") + ";\n"
			// Of the kinds of messages the generator makes schemas that nothing fits.
			results += m[1] + "?: " + kinds.ReplaceAllString(m[3], "Message") + ";\n"
			n++
		}
	}
	if n != len(played) {
		t.Fatalf("%d methods are described, want %d", n, len(played))
	}
	b.WriteString("export interface Contract {\nupdate?: Update;\nparameters?: {" + parameters + "};\nresults?: {" + results + "};\n}\n")
	return b.String()
}

func readFile(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// What was right once is not checked again, and what is wrong is found each time, wherever it stands.
func TestEachElementOfAnArrayIsChecked(t *testing.T) {
	contract := wire.MustContract([]byte(`{"properties": {"request": {"type": "object", "properties": {
		"messages": {"type": "array", "items": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}},
		"tools": {"type": "array", "items": {"type": "string"}}}}}}`))
	for _, c := range []struct {
		value string
		right bool
	}{
		{`{"messages": [{"text": "a"}, {"text": "b"}], "tools": ["x", "y"]}`, true},
		{`{"messages": [{"text": "a"}, {"text": "b"}, {"text": 1}]}`, false},
		{`{"messages": [{"text": "a"}, {"text": "b"}, {"text": 1}]}`, false},
		{`{"messages": [{}, {"text": "b"}]}`, false},
		{`{"messages": [{"text": "a"}], "tools": ["x", {"text": "b"}]}`, false},
		{`{"messages": [{"text": "a"}, "y"]}`, false},
		{`{"messages": [{"text": "a"}, {"text": "c"}, {"text": "b"}, {"text": "d"}]}`, true},
		{`{"messages": "a"}`, false},
		{`["messages"]`, false},
	} {
		if err := contract.Check([]byte(c.value), "request"); (err == nil) != c.right {
			t.Errorf("%s: %v", c.value, err)
		}
	}
}
