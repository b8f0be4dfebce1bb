package skills_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneclaw/toolgroups/skills"
)

func TestSkillsOfOtherProgramsAreConverted(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"---\nname: PDF  Tools!\ndescription: >\n  works\n  with PDF\ntools_required: 7\n---\nRun.\n": "pdf-tools|PDF Tools!|works with PDF|Run.",
		"---\nname: " + strings.Repeat("long-", 12) + "\ndescription: d\n---\nRun.\n":                 strings.Repeat("long-", 11) + "long|" + strings.Repeat("long-", 12) + "|d|Run.",
		"---\nname: x\ndescription: d\n---\nRun.\n":                                                   "name must be",
		"---\nname: \"\\x1b\"\ndescription: d\n---\nRun.\n":                                           "name is missing",
		"---\nname: ab\n---\nRun.\n":                                                                  "description is missing",
		"---\nname: [ab]\n---\nRun.\n":                                                                "front matter: ",
		"# ab\n":                                                                                      "line 1 must be ---",
	} {
		name, content, err := skills.Convert([]byte(in))
		if err != nil {
			if !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%q: %v, want %s", in, err, want)
			}
			continue
		}
		s, err := skills.Parse(content)
		if got := strings.Join([]string{s.Name, s.DisplayName, s.Description, s.Body}, "|"); err != nil || got != want || name != s.Name {
			t.Errorf("%q: %s, %v, want %s", in, got, err, want)
		}
	}
}

// What is switched off is neither listed nor loaded, also if its file changes meanwhile.
func TestSkillsAreSwitchedOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := skills.New(skills.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	l.SetOff([]string{"create-skill", "weekly"})
	if err := os.Mkdir(filepath.Join(dir, "weekly"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "weekly", "SKILL.md"), []byte("---\nname: weekly\ndisplay_name: W\ndescription: sum up\n---\nRun.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, on := range []bool{false, true} {
		_, err := l.Skill("weekly")
		states := l.States()
		if (err == nil) != on || strings.Contains(l.Section(), "weekly") != on || states["weekly"] != on || states["create-skill"] != on || !states["create-tool"] || l.Description("weekly") != "sum up" {
			t.Errorf("switched on %t: %v, %v", on, err, states)
		}
		l.SetOff(nil)
	}
}
