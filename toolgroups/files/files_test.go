package files_test

import (
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
	if got := files.Shorten(scope, "x", huge, 0, time.Now()); len(got) > toolgroups.MaxText || !strings.HasPrefix(got, huge[:files.MaxInline]) {
		t.Errorf("a result of %d characters", len(got))
	}
}

func TestWithoutRoomTheBeginningIsShownAllTheSame(t *testing.T) {
	scope := toolgroups.Scope{Workspace: t.TempDir(), Reserve: 1 << 60}
	got := files.Shorten(scope, "x", strings.Repeat("a", 20), 10, time.Now())
	if !strings.HasPrefix(got, "aaaaaaaaaa\n\n[cut: ") || !strings.Contains(got, "the rest was not kept: "+workspace.ErrDiskFull.Error()) {
		t.Errorf("got %q", got)
	}
}
