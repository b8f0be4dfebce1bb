package office_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/toolgroups/documents/office"
)

var update = flag.Bool("update", false, "write the golden files")

// transcript is a sink that writes down what it is given.
type transcript struct {
	strings.Builder
	blocks int
}

// Begin writes the number and name of a part.
func (t *transcript) Begin(p office.Part) bool {
	hidden := ""
	if p.Hidden {
		hidden = " (hidden)"
	}
	fmt.Fprintf(&t.Builder, "=== %d %s%s\n", p.Number, p.Name, hidden)
	return true
}

// Add writes a block, behind an empty line where one stands before it.
func (t *transcript) Add(b office.Block) error {
	t.blocks++
	text, space := b.Text, "\n"
	if b.Cells != nil {
		text = "| " + strings.Join(b.Cells, " | ") + " |"
	}
	if b.Tight || b.Cells != nil {
		space = ""
	}
	fmt.Fprintf(&t.Builder, "%s%d: %s\n", space, b.Number, text)
	return nil
}

// read reads a document; what is wrong with it stands at the end.
func read(name string, data []byte) string {
	var t transcript
	format, err := office.Read(bytes.NewReader(data), int64(len(data)), name, &t)
	if err != nil {
		return t.String() + "! " + err.Error() + "\n"
	}
	return format.Name + "\n" + t.String()
}

// TestDocumentsOfOtherProgramsAreRead reads the files of testdata/files, whose makers the README there names.
func TestDocumentsOfOtherProgramsAreRead(t *testing.T) {
	files, err := filepath.Glob("testdata/files/*.*")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if name == "README.md" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name, read(name, data))
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
