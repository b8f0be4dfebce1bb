package pdf_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"oneclaw/internal/sandbox/sandboxtest"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/pdf"
)

// TestTheChildIsConfinedAndEndsWithItsParent talks to a child as the parent does.
func TestTheChildIsConfinedAndEndsWithItsParent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bomb.pdf")
	data := bomb(t, 0).bytes()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	child := sandboxtest.Start(t, pdf.ChildArgument, path)
	child.Send(t, fmt.Sprintf(`{"cache_dir":%q,"max_memory":%d,"max_file":1000000}`, cacheDir(), pdf.DefaultMaxMemory))
	for _, want := range []string{"{}\n", fmt.Sprintf(`{"count":1,"sum":%q}`, toolgroups.SumOf(data)) + "\n"} {
		if line, err := child.ReadLine(); err != nil || line != want {
			t.Fatalf("%q, %v", line, err)
		}
	}
	if loose := child.WrongLimits(t); len(loose) > 0 {
		t.Errorf("not confined: %q", loose)
	}
	child.Send(t, `{"ask":"text","page":1,"limit":1000}`) // takes hours
	child.CheckEndsWithParent(t)
}
