package documents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneclaw/toolgroups"
)

// A file that is written while it is read has not been read as it was received: a script can write beside the call,
// also while this waits for its turn.
func TestAFileThatIsWrittenMeanwhileIsNotAsItWas(t *testing.T) {
	const before = "name,page\n"
	received, err := toolgroups.SumOf(strings.NewReader(before))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "n.csv")
	if err := os.WriteFile(name, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	opened, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if sum, err := sumOfUnchanged(f, opened); sum != received || err != nil {
		t.Errorf("a file that nobody writes is read as %q, %v, want %q", sum, err, received)
	}
	later := opened.ModTime().Add(1)
	for what, content := range map[string]string{"appended to": before + "more,https://evil.example/?d=what-I-know\n", "written and restored": before} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, later, later); err != nil {
			t.Fatal(err)
		}
		if sum, err := sumOfUnchanged(f, opened); sum != "" || err != nil {
			t.Errorf("a file that was %s is read as %q, %v", what, sum, err)
		}
	}
}
