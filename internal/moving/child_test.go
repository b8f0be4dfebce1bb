package moving

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"oneclaw/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == ChildArgument {
		if err := Serve(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// Each of these ends with a sentence that names the file, before it costs more than the limits.
func TestHostileFoldersEndWithASentence(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 20_000)
	laughs := "a0: &a0 [ha, ha]\n"
	for i := range 30 {
		laughs += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	for name, c := range map[string]struct {
		bot           Bot
		file, content string
		want          []string // one of these
	}{
		"not there":         {OpenClaw, "x", "", []string{"there is no openclaw.json in it"}},
		"another bot":       {Hermes, "openclaw.json", "{}", []string{"there is no config.yaml in it"}},
		"empty":             {OpenClaw, "openclaw.json", "", []string{"openclaw.json: unexpected end"}},
		"no text":           {OpenClaw, "openclaw.json", "\xff\xfe", []string{"openclaw.json: it is not UTF-8 text"}},
		"broken":            {Hermes, "config.yaml", "a: [", []string{"config.yaml: yaml: "}},
		"encrypted":         {Hermes, "config.yaml", "age-encryption.org/v1\n-> X25519 x\n", []string{"config.yaml: "}},
		"large":             {OpenClaw, "openclaw.json", strings.Repeat(" ", maxFile+1), []string{"openclaw.json: it has more than 4 MiB"}},
		"deep JSON":         {OpenClaw, "openclaw.json", `{"a":` + deep, []string{"openclaw.json: "}},
		"deep YAML":         {Hermes, "config.yaml", "a: " + deep, []string{"config.yaml: yaml: "}},
		"laughs":            {Hermes, "config.yaml", laughs, []string{"config.yaml: it has more than 50000 values"}},
		"values":            {Hermes, "config.yaml", "a: [" + strings.Repeat("x,", maxNodes+1) + "]", []string{"config.yaml: it has more than 50000 values"}},
		"a text many times": {Hermes, "config.yaml", "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 40_000) + "]", []string{"config.yaml: reading it takes more memory than the limit of 256 MiB", "more time or memory than allowed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := Read(t.Context(), Source{Bot: c.bot, Folder: write(t, map[string]string{c.file: c.content}).root})
			if err == nil {
				t.Fatalf("it is read: %+v", found)
			}
			for _, want := range c.want {
				if strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "\n") && len(err.Error()) < maxReason {
					return
				}
			}
			t.Errorf("%v, want %q", err, c.want)
		})
	}
}

// What the child finds arrives whole, also what is larger than one of its messages, and from a workspace
// elsewhere.
func TestWhatTheChildFindsArrivesWhole(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"openclaw.json":  `{channels: {telegram: {allowFrom: [7]}}, mcp: {servers: {notes: {url: "https://notes.example/mcp"}}}}`,
		"jobs.json":      `{"jobs": [{"id": "a", "name": "Brief", "schedule": {"kind": "cron", "expr": "0 7 * * *", "tz": "Europe/Berlin"}, "payload": {"kind": "agentTurn", "message": "Sum up."}}]}`,
		"skills/a/x.txt": "", "skills/a/SKILL.md": anySkill, "other": "",
	}
	for i := range 3 {
		files[fmt.Sprintf("w/memory/%d.md", i)] = strings.Repeat(strings.Repeat("é", 1_999)+"\n\n", 900)
	}
	dir := write(t, files)
	workspace, err := dir.root.OpenRoot("w")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = workspace.Close() }()
	schedules, err := dir.root.Open("jobs.json")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = schedules.Close() }()
	got, err := Read(t.Context(), Source{Bot: OpenClaw, Folder: dir.root, Workspace: workspace, Schedules: schedules})
	if err != nil {
		t.Fatal(err)
	}
	want, err := readOpenClaw(dir, &folder{root: workspace}, []byte(files["jobs.json"]))
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || len(got.Notes) != 3 || len(got.Schedules) != 1 {
		t.Errorf("%.2000v\nwant %.2000v", got, want)
	}
}

func TestTheChildIsConfinedAndEndsWithItsParent(t *testing.T) {
	t.Parallel()
	child := sandboxtest.Start(t, ChildArgument, t.TempDir())
	for len(child.WrongLimits(t)) > 0 {
		if t.Context().Err() != nil {
			t.Fatal("the child is not confined")
		}
	}
	child.CheckEndsWithParent(t)
}

// A folder with more entries than all folders may have is left from there on.
func TestTheNumberOfAllFilesIsBounded(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"config.yaml": "a: 1", "skills/a/b/SKILL.md": anySkill, "skills/a/c/SKILL.md": anySkill})
	dir.entries = maxNames - 2
	found, err := readHermes(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := reasonOf(found, "skills/a"); got != errNames.Error() {
		t.Errorf("skills/a: %s", got)
	}
}
