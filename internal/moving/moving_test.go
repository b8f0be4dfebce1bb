package moving

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"oneclaw/toolgroups/memory"
	"oneclaw/toolgroups/schedule"
	"oneclaw/toolgroups/skills"
)

// write writes the files of another bot, and returns their folder.
func write(t testing.TB, files map[string]string) *folder {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return &folder{root: root}
}

// reasonOf returns why something was left.
func reasonOf(f *Found, name string) string {
	for _, line := range f.Left {
		if line.Name == name {
			return line.Text
		}
	}
	return "(not left)"
}

func TestJSON5IsReadAsJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{a: 1, 'b': "x", "c": [1, 2,], /* no */ d: +.5, // no
		e: 0x1F,}`: `{"a":1,"b":"x","c":[1,2],"d":0.5,"e":31}`,
		`{s: 'it\'s "so"\x41\u00e9\ud83d\ude00\
over'}`: `{"s":"it's \"so\"Aé😀over"}`,
		`["http://x/*y*/", null, true, -1e3, Infinity]`: `["http://x/*y*/",null,true,-1000,"Infinity"]`,
		"\uFEFF{$a_b: 123456789012345678901234567890}":  `{"$a_b":1.2345678901234568e+29}`,
	} {
		got, err := toJSON([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"{\n a: 'x\n'}": "line 2: a string has no end on its line",
		"/* {":          "line 1: a comment has no end",
		"[1,,2]":        "line 1: a comma follows no value",
		"{,}":           "line 1: a comma follows no value",
		"[1\n 2]":       "line 2: a comma is missing",
		"{a: 1 b: 2}":   "line 1: a comma is missing",
		"{a: 1},":       "a comma stands at the end",
		"\n\n{a: @}":    "line 3: an unexpected character",
		`"\uZZZZ"`:      "line 1: an escape has no hexadecimal digits",
		"\xff":          "it is not UTF-8 text",
	} {
		if got, err := toJSON([]byte(in)); err == nil || err.Error() != want {
			t.Errorf("%q: %s, %v, want %s", in, got, err, want)
		}
	}
}

func TestMemoryIsSplitIntoNotes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		"one\ntwo\n§\nthree": {"one\ntwo", "three"},
		"# USER.md\n- a\n- b\n  more\n\n1. c\n## Home\ntext\nmore\n### Cat\n* Minka\n# Work\n---\n```\n# code\n```": {
			"a", "b\nmore", "c", "Home: text\nmore", "Home > Cat: Minka", "Work: ```\n# code\n```",
		},
		"# MEMORY.md\n## Home\n- a\n## Work\n- b\n#### Desk\n- c\n#### Lamp\n- d\n## Garden\n- e": {
			"Home: a", "Work: b", "Work > Desk: c", "Work > Lamp: d", "Garden: e",
		},
		"# " + strings.Repeat("x", 300) + "\n- a": {strings.Repeat("x", maxHeading-1) + "…: a"},
		" \n\n": nil,
	} {
		if got, _ := splitNotes(in); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// OpenClaw marks what it knows of a person: what was withdrawn, and the instructions of the file itself, are
// no facts.
func TestOnlyWhatIsMarkedActiveIsAFact(t *testing.T) {
	t.Parallel()
	const head = "---\nsummary: x\n---\n\n# USER.md - User Model\n\nWrite wishes here.\n\n```md\n<!-- observed: 2026-01-02 | status: active -->\n- An example\n```\n\n## Directives\n\n"
	for in, want := range map[string]string{
		head + "<!-- observed: YYYY-MM-DD | status: active -->\n\n- Prefer ...\n":                                                                        "[] 2",
		head + "<!-- observed: 2026-02-03 | status: active -->\n\n- Prefer tea\n<!-- observed: 2026-02-01 | status: superseded -->\n\n- Prefer coffee\n": "[Directives: Prefer tea] 2",
		"<!-- a comment\nof two lines -->\n- Likes tea\n<!-- another -->\n- Likes rain":                                                                  "[Likes tea Likes rain] 0",
	} {
		notes, unmarked := splitNotes(in)
		if got := fmt.Sprint(notes, unmarked); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// What OpenClaw prints of its schedules: its own jobs and those with a condition are left, and a page is no list.
func TestOnlySchedulesOfAPersonAreTakenOver(t *testing.T) {
	t.Parallel()
	job := func(id, more string) string {
		return `{"id": "` + id + `", "name": "` + id + `", "schedule": {"kind": "every", "everyMs": 60000}, "payload": {"kind": "agentTurn", "message": "Sum up."}` + more + `}`
	}
	found, err := readOpenClaw(write(t, map[string]string{"openclaw.json": "{}"}), nil, []byte(`{"jobs": [`+strings.Join([]string{
		job("person", ""), job("own", `, "declarationKey": "heartbeat"`), job("watch", `, "trigger": {"script": "x"}`),
	}, ",")+`], "total": 203, "hasMore": true}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Schedules) != 1 || found.Schedules[0].Name != "person" {
		t.Errorf("schedules %+v", found.Schedules)
	}
	for name, want := range map[string]string{"own": "of the other bot itself", "watch": "with the condition in words", "--schedules": "more schedules than these 3"} {
		if got := reasonOf(found, name); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestPlans(t *testing.T) {
	t.Parallel()
	shown := func(p schedule.Plan, err error) string {
		if err != nil {
			return err.Error()
		}
		return p.String()
	}
	for _, test := range []struct{ got, want string }{
		{shown(planAt("2190-05-01T09:30:00+02:00", "Asia/Tokyo")), "one-time on 2190-05-01, 07:30 (UTC)"},
		{shown(planAt("2190-05-01T09:30:00.123456", "Asia/Tokyo")), "one-time on 2190-05-01, 09:30 (Asia/Tokyo)"},
		{shown(planAt("tomorrow", "")), `its time is "tomorrow", which is no time`},
		{shown(planCron("0 30 7 * * 1-5", "Europe/Berlin")), "cron 30 7 * * 1-5 (Europe/Berlin)"},
		{shown(planCron("*/5 30 7 * * 1-5", "")), `its cron expression "*/5 30 7 * * 1-5" has seconds`},
		{shown(planEvery(90 * time.Minute)), "every 90 minutes"},
		{shown(planEvery(time.Second)), "it runs every 1s, and a minute is the shortest interval"},
	} {
		if test.got != test.want {
			t.Errorf("%s, want %s", test.got, test.want)
		}
	}
}

// A folder may hold anything: what is a link, no file, or too large is left with the reason, and what
// is beside it is read.
func TestNoLinksAreFollowedAndNothingHasNoEnd(t *testing.T) {
	t.Parallel()
	root := write(t, map[string]string{
		"openclaw.json": `{"agents": {"defaults": {"workspace": "/root/.openclaw/workspace"}}}`, "outside/MEMORY.md": "hush",
		"workspace/USER.md": "Ann", "workspace/memory/ok.md": "fine", "workspace/memory/notes.txt": "x",
	})
	at := func(name string) string { return filepath.Join(root.root.Name(), name) }
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Symlink(at("outside/MEMORY.md"), at("workspace/MEMORY.md")))
	must(os.Symlink("../outside", at("workspace/skills")))
	must(syscall.Mkfifo(at("workspace/memory/pipe.md"), 0o600))
	must(os.Mkdir(at("workspace/memory/folder.md"), 0o700))
	must(os.WriteFile(at("workspace/memory/large.md"), make([]byte, maxFile+1), 0o600))
	must(os.WriteFile(at("workspace/memory/binary.md"), []byte{0xff, 0xfe}, 0o600))
	found, err := readOpenClaw(root, nil, nil)
	must(err)
	for name, want := range map[string]string{
		"workspace/MEMORY.md":        "it is a link, and links are not followed",
		"workspace/skills":           "it is a link, and links are not followed",
		"workspace/memory/pipe.md":   "it is not a regular file",
		"workspace/memory/folder.md": "it is not a regular file",
		"workspace/memory/large.md":  "it has more than 4 MiB",
		"workspace/memory/binary.md": "it is not UTF-8 text",
		"workspace/memory/notes.txt": "it is not a file of notes",
		"outside":                    "there is no place for it here",
	} {
		if got := reasonOf(found, name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	var texts []string
	for _, file := range found.Notes {
		for _, note := range file.Notes {
			texts = append(texts, note.Text)
		}
	}
	if want := []string{"Ann", "fine"}; !slices.Equal(texts, want) {
		t.Errorf("notes %q, want %q", texts, want)
	}
}

func TestTheNumberAndTheSizeOfFilesAreBounded(t *testing.T) {
	t.Parallel()
	files := map[string]string{"openclaw.json": "{}"}
	for i := range maxEntries + 1 {
		files[fmt.Sprintf("skills/s%d", i)] = ""
	}
	found, err := readOpenClaw(write(t, files), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := reasonOf(found, "skills"); got != "it has more than 2000 entries" {
		t.Errorf("many skills: %s", got)
	}
	f := write(t, map[string]string{"a": "1234"})
	f.size = maxTotal - 3
	if _, err := f.file("a"); !errors.Is(err, errTotal) {
		t.Errorf("beyond the total: %v", err)
	}
}

// A mistake in one part leaves the others, and what is not taken over is said.
func TestAMistakeAffectsItsOwnPart(t *testing.T) {
	t.Parallel()
	found, err := readOpenClaw(write(t, map[string]string{
		"openclaw.json": `{channels: 7, mcp: {servers: 7}, models: {}, agents: {defaults: {workspace: "~/.openclaw/workspace"}}}`, "workspace/MEMORY.md": "- a",
	}), nil, []byte(`{"jobs": [{"id": 7, "schedule": 3}, {"id": "b", "schedule": {"kind": "moon"}, "payload": {"kind": "agentTurn", "message": "hi"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"channels": leftPeople, "models": leftKeys, "mcp.servers": "cannot unmarshal number", "7": "cannot unmarshal", "hi": "its kind of schedule is not known here"} {
		if got := reasonOf(found, name); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if len(found.Notes) != 1 {
		t.Errorf("notes %v", found.Notes)
	}
}

// FuzzJSON5 checks that valid JSON keeps its value, and that whatever is accepted is text that the decoder
// can judge.
func FuzzJSON5(f *testing.F) {
	for _, seed := range []string{`{a: 1, 'b': [2,],}`, `{"a": "\ud83d\ude00\u0000", "b": -0.5e3}`, "// x\n[null, true]", `"\x`, `[.5, +1, 0x10]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := toJSON(data)
		var before, after any
		if json.Unmarshal(data, &before) != nil || !utf8.Valid(data) {
			return
		}
		if err != nil || json.Unmarshal(got, &after) != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%q becomes %q, %v", data, got, err)
		}
	})
}

// check fails unless what was found is within its bounds, and nothing of it can be taken for a command of
// the terminal.
func check(t *testing.T, found *Found, err error) {
	t.Helper()
	if err != nil {
		return
	}
	for _, line := range found.Left {
		if strings.ContainsAny(line.Name+line.Text, "\n\r\x1b") || utf8.RuneCountInString(line.Name) > maxShown || utf8.RuneCountInString(line.Text) > maxReason {
			t.Errorf("line %q", line)
		}
	}
	for _, s := range found.Schedules {
		if s.Plan.Kind == schedule.Interval && s.Plan.EveryMinutes < 1 {
			t.Errorf("plan %+v", s.Plan)
		}
	}
	for _, file := range found.Notes {
		for _, n := range file.Notes {
			if size := utf8.RuneCountInString(n.Text); size == 0 || size > memory.MaxNoteLength {
				t.Errorf("a note of %d characters", size)
			}
		}
	}
	for _, s := range found.Skills {
		if parsed, err := skills.Parse(s.Content); err != nil || parsed.Name != s.Name {
			t.Errorf("skill %q: %v", s.Name, err)
		}
	}
}

const (
	anyMemory = "# Home\n- cat\n\n§\nx"
	anySkill  = "---\nname: A b\ndescription: c\n---\nd\n"
)

func FuzzOpenClaw(f *testing.F) {
	f.Add(`{channels: {telegram: {allowFrom: [1]}}, agents: {defaults: {workspace: "workspace"}}, mcp: {servers: {s: {url: "http://x"}}}}`,
		`{"jobs": [{"id": "a", "schedule": {"kind": "every", "everyMs": 1e300}, "payload": {"kind": "agentTurn", "message": "m"}}]}`, anyMemory, anySkill)
	f.Fuzz(func(t *testing.T, config, jobs, notes, skill string) {
		found, err := readOpenClaw(write(t, map[string]string{"openclaw.json": config, "workspace/MEMORY.md": notes, "skills/a/SKILL.md": skill}), nil, []byte(jobs))
		check(t, found, err)
	})
}

func FuzzHermes(f *testing.F) {
	f.Add("mcp_servers: &m {s: {url: http://z}}\nother: *m\n", `{"jobs": [{"id": "a", "prompt": "p", "schedule": {"kind": "once", "run_at": "2190-01-01"}}]}`, anyMemory, anySkill)
	f.Fuzz(func(t *testing.T, config, jobs, notes, skill string) {
		found, err := readHermes(write(t, map[string]string{"config.yaml": config, "memories/USER.md": notes, "skills/x/a/SKILL.md": skill}), []byte(jobs))
		check(t, found, err)
	})
}
