package files_test

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

func TestWhatIsTooLongIsKeptAsAWhole(t *testing.T) {
	scope := toolgroups.Scope{Workspace: t.TempDir()}
	text := strings.Repeat("ä", 60) + "\n\n" + strings.Repeat("b", 60)
	if got := files.Shorten(scope, "x", text, 122, time.Now()); got != text {
		t.Errorf("a text that fits became %q", got)
	}
	got := files.Shorten(scope, "x", text, 100, time.Unix(0, 0))
	name := regexp.MustCompile(`tool-output/x-19700101-000000-\w{6}\.txt`).FindString(got)
	if got != strings.Repeat("ä", 60)+"\n\n[cut: the limit is 100 of 122 characters; the whole is in the file "+name+"]" {
		t.Fatalf("got %q", got)
	}
	if data, err := os.ReadFile(filepath.Join(scope.Workspace, name)); err != nil || string(data) != text {
		t.Errorf("kept %q, %v", data, err)
	}
	huge := strings.Repeat("c", toolgroups.MaxText+1)
	if got := files.Shorten(scope, "x", huge, 0, time.Now()); len(got) > toolgroups.MaxText || !strings.HasPrefix(got, huge[:files.MaxInline-1]+"…\n") {
		t.Errorf("a result of %d characters", len(got))
	}
}

// Whoever chooses where a text is cut, such as with a limit, would else be shown a secret in halves.
func TestASecretIsMaskedBeforeATextIsCut(t *testing.T) {
	const secret = "Zw8-Kq3vLr7TnYb2Hd6Jx9Pf4Gm1Sc5"
	for name, before := range map[string]string{"letters": strings.Repeat("x ", 40), "wide letters": strings.Repeat("😀", 80)} {
		for cut := range 100 {
			scope := toolgroups.Scope{Workspace: t.TempDir(), Redact: func(text string) string { return strings.ReplaceAll(text, secret, "••••") }}
			text := before + secret + strings.Repeat(" y", 20_000)
			got := files.Shorten(scope, "x", text, 60+cut, time.Now())
			if strings.Contains(got, secret[:4]) {
				t.Fatalf("%s, cut after %d: %q", name, 60+cut, got)
			}
			name := regexp.MustCompile(`tool-output/\S+\.txt`).FindString(got)
			if data, err := os.ReadFile(filepath.Join(scope.Workspace, name)); err != nil || string(data) != text {
				t.Errorf("the file has %d bytes of %d, %v", len(data), len(text), err)
			}
		}
	}
}

func TestWithoutRoomTheBeginningIsShownAllTheSame(t *testing.T) {
	scope := toolgroups.Scope{Workspace: t.TempDir(), Reserve: 1 << 60}
	got := files.Shorten(scope, "x", strings.Repeat("a", 20), 10, time.Now())
	if !strings.HasPrefix(got, "aaaaaaaaa…\n\n[cut: ") || !strings.Contains(got, "the rest was not kept: "+workspace.ErrDiskFull.Error()) {
		t.Errorf("got %q", got)
	}
}

// A file is replaced as a whole: what was there is never cut, whenever the machine stops.
func TestAFileIsReplacedAsAWhole(t *testing.T) {
	scope := toolgroups.Scope{Workspace: t.TempDir()}
	save := func(text string) {
		t.Helper()
		if rel, err := files.Save(scope, "a/b.txt", []byte(text)); err != nil || rel != "a/b.txt" {
			t.Fatalf("%s, %v", rel, err)
		}
	}
	save("before")
	f, _, _, err := files.Open(scope, "a/b.txt", 100)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	save("x")
	if old, err := io.ReadAll(f); err != nil || string(old) != "before" {
		t.Errorf("who reads the file meanwhile gets %q, %v", old, err)
	}
	if now, err := os.ReadFile(filepath.Join(scope.Workspace, "a/b.txt")); err != nil || string(now) != "x" {
		t.Errorf("saved %q, %v", now, err)
	}
}
