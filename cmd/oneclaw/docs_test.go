package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"oneclaw/internal/config"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/internal/lab"
)

// document returns what a page of docs shows as code in the rows of its tables, in the
// given column, as a set.
func document(t *testing.T, name string, column int) map[string]bool {
	t.Helper()
	data, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, code := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[column], -1) {
			found[code[1]] = true
		}
	}
	return found
}

func setOf(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}

func TestDocsNameEverySetting(t *testing.T) {
	if diff := cmp.Diff(setOf(config.Variables(false)), document(t, "settings.md", 1)); diff != "" {
		t.Errorf("environment variables (-program +docs/settings.md):\n%s", diff)
	}
	var keys []string
	for _, s := range new(config.Config).Settings() {
		keys = append(keys, s.Key)
	}
	if diff := cmp.Diff(setOf(keys), document(t, "settings.md", 2)); diff != "" {
		t.Errorf("keys of the settings file (-program +docs/settings.md):\n%s", diff)
	}
}

// leaves are the commands that do something, without the program's name.
func leaves(c *cobra.Command) []string {
	var names []string
	for _, sub := range c.Commands() {
		if !sub.HasSubCommands() && !sub.Hidden || sub.CommandPath() == "oneclaw config" { // which does something itself, too
			names = append(names, sub.CommandPath())
		}
		names = append(names, leaves(sub)...)
	}
	return names
}

func TestDocsNameEveryCommand(t *testing.T) {
	w := newHarness(t, openai.Offline{})
	w.env["ONECLAW_EXPORT_JUDGED"] = "true" // brings /learning
	ann := w.person("Ann")
	w.env["ONECLAW_ADMINS"] = fmt.Sprint("telegram:", ann)
	w.env["ONECLAW_MODELS_DEEP"] = "preset/strong"     // lists /deep
	w.env["ONECLAW_SPEECH_MODEL"] = openai.SpeechModel // lists /voice
	w.run()
	// An administrator's menu has all commands, that of others none for administrators.
	var registered, open []struct{ Command string }
	w.until(nil, "the commands", func(s telegram.State) bool {
		return json.Unmarshal(s.ChatCommands(ann), &registered) == nil && len(registered) > 0 && json.Unmarshal(s.Commands(), &open) == nil
	})
	for _, c := range open {
		if c.Command == "people" || c.Command == "admin" || c.Command == "mcp" {
			t.Errorf("everybody is shown /%s", c.Command)
		}
	}
	if len(open) == 0 || len(open) >= len(registered) {
		t.Errorf("%d commands for everybody, %d for an administrator", len(open), len(registered))
	}
	want := map[string]bool{"/claim": true} // understood, and not offered
	for _, c := range registered {
		want["/"+c.Command] = true
	}
	for _, path := range append(leaves(rootCommand(nil)), leaves(lab.Root(nil))...) {
		want[path] = true
	}
	got := map[string]bool{}
	for name := range document(t, "commands.md", 1) {
		words := strings.Fields(name)
		upTo := slices.IndexFunc(words, func(word string) bool {
			return strings.ContainsAny(word, "[…") || strings.ToUpper(word) == word
		})
		if strings.HasPrefix(name, "/") {
			upTo = 1
		}
		if upTo < 0 {
			upTo = len(words)
		}
		got[strings.Join(words[:upTo], " ")] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("commands (-program +docs/commands.md):\n%s", diff)
	}
}

// TestTheReadmeCountsToolsAsTheProgramDoes: each number of tools, groups and tokens in the documents is
// the one that `oneclaw tools` prints.
func TestTheReadmeCountsToolsAsTheProgramDoes(t *testing.T) {
	out, err := command(t.Context(), t, map[string]string{"ONECLAW_DATA_DIR": t.TempDir()}, "tools").Output()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][2]int{} // tools and tokens
	googleGroups, googleTools := 0, 0
	for _, row := range regexp.MustCompile(`(?m)^(\w+) +(\d+) +(\d+)  `).FindAllSubmatch(out, -1) {
		name, tools, tokens := string(row[1]), number(t, row[2]), number(t, row[3])
		rows[name] = [2]int{tools, tokens}
		if strings.HasPrefix(name, googlePrefix) {
			googleGroups, googleTools = googleGroups+1, googleTools+tools
		}
	}
	first := regexp.MustCompile(`list of all groups: (\d+) tokens`).FindSubmatch(out)
	if first == nil {
		t.Fatalf("the program prints %s", out)
	}
	// With all tools there is a line in place of the list of groups, which the table of first requests counts too.
	measured, err := os.ReadFile(firstDocs)
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`(?m)^\| 165 \| [\d,]+ \| [\d,]+ \| ([\d,]+) \|`).FindSubmatch(measured)
	if all == nil || number(t, all[1]) < rows["all"][1] {
		t.Fatalf("%s says %q, and the program counts %d", firstDocs, all, rows["all"][1])
	}
	core, others := rows["core"][0], rows["all"][0]-rows["core"][0]
	for _, claim := range []struct {
		file, text string
		want       []int
	}{
		{"README.md", `(\w+) core tools are always there. The other (\d+),`, []int{core, others}},
		{"README.md", `carries ([\d,]+) tokens of tools and group list; all tools would cost ([\d,]+) `, []int{number(t, first[1]), number(t, all[1])}},
		{"README.md", `(\w+) groups with (\d+) tools`, []int{googleGroups, googleTools}},
		{"CHANGELOG.md", `(\w+) core tools are always there; (\d+) others`, []int{core, others}},
		{"CHANGELOG.md", `(\w+) groups with (\d+) tools`, []int{googleGroups, googleTools}},
		{"docs/google.md", `(\w+) groups with (\d+) tools`, []int{googleGroups, googleTools}},
	} {
		page, err := os.ReadFile("../../" + claim.file)
		if err != nil {
			t.Fatal(err)
		}
		said := regexp.MustCompile(claim.text).FindSubmatch(page)
		if said == nil {
			t.Errorf("%s does not say %s", claim.file, claim.text)
			continue
		}
		for n, want := range claim.want {
			if got := number(t, said[n+1]); got != want {
				t.Errorf("%s says %q, and the program counts %d", claim.file, said[0], want)
			}
		}
	}
}

// number reads a number as documents write it.
func number(t *testing.T, text []byte) int {
	t.Helper()
	words := strings.Fields("ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty")
	if n := slices.Index(words, strings.ToLower(string(text))); n >= 0 {
		return 10 + n
	}
	n, err := strconv.Atoi(strings.ReplaceAll(string(text), ",", ""))
	if err != nil {
		t.Fatalf("no number: %v", err)
	}
	return n
}

// TestTheManualListsEveryDocument: a page that the index does not name is one that people do not find.
func TestTheManualListsEveryDocument(t *testing.T) {
	index, err := os.ReadFile("../../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d documents, %v", len(pages), err)
	}
	for _, page := range pages {
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(string(index), "]("+name+")") {
			t.Errorf("docs/README.md does not name %s", name)
		}
	}
}

// TestThePagesOfThePlatformsQuoteTheProgram: in the tables of what goes wrong, a reader searches for the words
// that stand on the screen. Those in code are from the sources of the platform, those in quotes from the bot.
func TestThePagesOfThePlatformsQuoteTheProgram(t *testing.T) {
	sentences, err := os.ReadFile("../../internal/house/testdata/texts.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, platform := range []string{"telegram", "slack"} {
		page, err := os.ReadFile("../../docs/" + platform + ".md")
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob("../../" + platform + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		var sources strings.Builder
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(file, "_test.go") {
				sources.Write(source)
			}
		}
		problems := regexp.MustCompile(`(?m)^\| \d+ \| (.*?) \| `).FindAllStringSubmatch(string(page), -1)
		if len(problems) < 10 {
			t.Errorf("docs/%s.md has %d problems, want 10", platform, len(problems))
		}
		for _, problem := range problems {
			for _, quote := range regexp.MustCompile("`([^`]+)`|“([^”]+)”").FindAllStringSubmatch(problem[1], -1) {
				where := sources.String()
				if quote[2] != "" {
					where = string(sentences)
				}
				for piece := range strings.SplitSeq(quote[1]+quote[2], "…") {
					command := strings.HasPrefix(piece, "/")
					if !command && !strings.Contains(where, strings.TrimSpace(piece)) {
						t.Errorf("docs/%s.md: the program does not say %q", platform, piece)
					}
				}
			}
		}
	}
}
