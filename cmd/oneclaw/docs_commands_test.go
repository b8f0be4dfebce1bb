package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"oneclaw/internal/lab"
)

// notOurs are the programs of others in documents that no test runs, with the reason for each.
var notOurs = map[string]string{
	"cd": shell, "chmod": shell, "cp": shell, "grep": shell, "mkdir": shell, "printf": shell, "tar": shell,
	".ci/run": checks, ".ci/nightly": checks, ".ci/mutants": checks,
	"docker":     "needs a daemon and a registry; deploy/compose.yaml is held against the program by its own test",
	"helm":       "needs a cluster; the chart is rendered by the test of the chart",
	"kubectl":    "needs a cluster",
	"openssl":    "makes random bytes",
	"openclaw":   "another bot, from which people move in",
	"curl":       "the address is that of a webhook; the tests of webhooks post to it",
	"install":    "writes where root may",
	"systemctl":  "needs systemd as process 1; the unit is checked by the tests of internal/service",
	"journalctl": "needs systemd as process 1",
}

const (
	shell  = "a utility that every system has"
	checks = "runs the tests, this one among them"
)

// wordsOf splits a line of a shell as far as documents use it: quotes hold words together.
func wordsOf(line string) []string {
	var words []string
	for _, word := range regexp.MustCompile(`(?:"[^"]*"|'[^']*'|[^\s"'])+`).FindAllString(line, -1) {
		words = append(words, strings.Trim(word, `"'`))
	}
	return words
}

// shellLines are the commands in the fenced blocks of a document that are for a shell.
func shellLines(text string) []string {
	var lines []string
	for _, block := range regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```").FindAllStringSubmatch(text, -1) {
		whole := strings.ReplaceAll(block[1], "\\\n", " ")
		for line := range strings.Lines(whole) {
			line = regexp.MustCompile(`(^|\s)#.*`).ReplaceAllString(line, "")
			for _, command := range regexp.MustCompile(`&&|\|`).Split(line, -1) {
				if strings.TrimSpace(command) != "" {
					lines = append(lines, command)
				}
			}
		}
	}
	return lines
}

// ours returns the program of this module that a command starts, with its arguments, or nil.
func ours(words []string) (func() *cobra.Command, []string) {
	programs := map[string]func() *cobra.Command{
		"oneclaw":     func() *cobra.Command { return rootCommand(nil) },
		"oneclaw-lab": func() *cobra.Command { return lab.Root(nil) },
	}
	line := strings.Join(words, " ")
	if strings.HasPrefix(line, "go run ./cmd/") {
		return programs[path.Base(words[2])], words[3:]
	}
	if words[0] == "systemd-run" || strings.HasPrefix(line, "docker compose exec ") {
		at := slices.IndexFunc(words, func(word string) bool { return path.Base(word) == "oneclaw" && !strings.Contains(word, "=") })
		words = words[max(at, 0):]
	}
	return programs[path.Base(words[0])], words[1:]
}

// checkCommand says what is wrong with a command of a document.
func checkCommand(line string) error {
	words := wordsOf(line)
	isVariable := regexp.MustCompile(`^[A-Z_]+=`).MatchString
	for len(words) > 0 && (words[0] == "sudo" || isVariable(words[0])) {
		words = words[1:]
	}
	if len(words) == 0 {
		return nil // settings alone
	}
	if root, args := ours(words); root != nil {
		command, rest, err := root().Find(args)
		if err != nil {
			return err
		}
		if err := command.ParseFlags(rest); err != nil {
			return err
		}
		return command.ValidateArgs(command.Flags().Args())
	}
	if words[0] == "go" {
		return checkGo(words[1:])
	}
	if notOurs[words[0]] == "" {
		return fmt.Errorf("%s is neither a command of this module nor an exception with a reason", words[0])
	}
	return nil
}

// checkGo says what is wrong with a command of Go: packages have to be there, and tests that are
// named.
func checkGo(words []string) error {
	var tests string
	var folders []string
	for i, word := range words {
		if words[max(i-1, 0)] == "-run" || words[max(i-1, 0)] == "-bench" {
			tests += word
		}
		if strings.HasPrefix(word, "./") {
			folder := filepath.Join("../..", strings.TrimSuffix(word, "..."))
			if _, err := os.Stat(folder); err != nil {
				return err
			}
			folders = append(folders, folder)
		}
	}
	if tests = strings.Trim(tests, "^$."); tests == "" {
		return nil
	}
	functions, named := regexp.MustCompile(`(?m)^func (?:Test|Benchmark)\w*`), regexp.MustCompile(tests)
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		if err != nil {
			return err
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(functions.FindAllString(string(source), -1), named.MatchString) {
				return nil
			}
		}
	}
	return fmt.Errorf("no test is called %s", tests)
}

// checkMention says what is wrong with a command within a sentence, which may leave arguments out.
func checkMention(words []string) error {
	root, args := ours(words)
	command, _, err := root().Find(args)
	if err != nil {
		return err
	}
	for _, word := range args {
		if name, isFlag := strings.CutPrefix(strings.Trim(word, "[]…"), "--"); isFlag && command.Flag(name) == nil {
			return fmt.Errorf("%s has no flag --%s", command.CommandPath(), name)
		}
	}
	return nil
}

// A command in a document is one that the program knows, with its flags and arguments; a test that
// is named is there; and what others made is an exception with a reason.
func TestCommandsInDocumentsAreTheProgramsOwn(t *testing.T) {
	found := 0
	check := func(file string) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range shellLines(string(data)) {
			found++
			if err := checkCommand(line); err != nil {
				t.Errorf("%s: %s: %v", file, strings.TrimSpace(line), err)
			}
		}
		for _, code := range regexp.MustCompile("`(oneclaw(?:-lab)? [^`\n]+)`").FindAllStringSubmatch(string(data), -1) {
			found++
			if err := checkMention(strings.Fields(code[1])); err != nil {
				t.Errorf("%s: `%s`: %v", file, code[1], err)
			}
		}
	}
	for _, pattern := range []string{"../../*.md", "../../docs/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			check(file)
		}
	}
	if found < 50 {
		t.Errorf("%d commands were found", found)
	}
}

func TestCommandsThatThereAreNotAreFound(t *testing.T) {
	for _, line := range []string{
		"oneclaw runn", "oneclaw run --rec x", "./oneclaw restore", "go run ./cmd/oneclaw-lab dmeo",
		"docker compose exec oneclaw-1 /oneclaw replica", "go run ./internal/gone", "go test ./cmd/oneclaw -run NoSuch",
		"frobnicate",
	} {
		if err := checkCommand(line); err == nil {
			t.Errorf("%s passes", line)
		}
	}
	if err := checkMention(strings.Fields("oneclaw bill --chta")); err == nil {
		t.Error("a flag that there is not passes")
	}
}
