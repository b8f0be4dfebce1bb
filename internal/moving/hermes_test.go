package moving

import (
	"fmt"
	"strings"
	"testing"
)

// YAML has keys that are no strings and numbers that JSON lacks: they affect their own part at most.
func TestKeysThatAreNumbersRefuseNoImport(t *testing.T) {
	t.Parallel()
	found, err := readHermes(write(t, map[string]string{"config.yaml": `
base: &base {url: https://notes.example/mcp}
channel_prompts: {-100123: hush, true: a, null: b, 1.5: c}
voice: {speed: .nan, pitch: -.inf}
mcp_servers: {7: {<<: *base}, [a]: {url: https://other.example/mcp}}
providers: {8: {base_url: https://model.example/v1}}
`}), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"voice": "unsupported value: ", "mcp_servers": "invalid map key", "providers": leftKeys, "channel_prompts": "(not left)"} {
		if got := reasonOf(found, name); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestAliasesAreBounded(t *testing.T) {
	t.Parallel()
	text := "a0: &a0 x\n"
	for i := range 6 {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	for in, want := range map[string]string{text: "it has more than 50000 values", "a: &a [*a]": "it has more than 50000 values"} {
		if _, err := readHermes(write(t, map[string]string{"config.yaml": in}), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", in, err, want)
		}
	}
}

// The address of a server may have a key in it, which is neither taken over nor shown.
func TestKeysInAddressesAreLeft(t *testing.T) {
	t.Parallel()
	const key = "tvly-0123456789abcdef"
	found, err := readHermes(write(t, map[string]string{"config.yaml": `
mcp_servers: {query: {url: "https://mcp.x.example/mcp?tavilyApiKey=` + key + `"}, fragment: {url: "https://mcp.x.example/mcp#` + key + `"}, plain: {url: "https://mcp.x.example/mcp"}}
`}), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"query", "fragment"} {
		if got, want := reasonOf(found, name), "its address may hold a key"; !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if len(found.Servers) != 1 {
		t.Fatalf("servers %v", found.Servers)
	}
	if shown := fmt.Sprint(found.Left, found.Servers); strings.Contains(shown, key) {
		t.Errorf("a key is shown: %s", shown)
	}
}

// A skill that comes with the program stays what it is.
func TestBuiltinSkillsAreNotReplaced(t *testing.T) {
	t.Parallel()
	files := map[string]string{"config.yaml": ""}
	for _, name := range []string{"about-oneclaw", "create-skill", "weekly"} {
		files["skills/"+name+"/SKILL.md"] = "---\nname: " + name + "\ndescription: c\n---\nd\n"
	}
	found, err := readHermes(write(t, files), nil)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := Mover{SkillsDir: t.TempDir(), DryRun: true}.takeSkills(t.Context(), found)
	if err != nil {
		t.Fatal(err)
	}
	const want = "[{skill about-oneclaw - there is another skill of that name} {skill create-skill - there is another skill of that name} {skill weekly + }]"
	if got := fmt.Sprint(lines); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
