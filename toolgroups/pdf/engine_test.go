package pdf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/requests"
)

func openPath(instance pdfium.Pdfium, path string) error {
	_, err := instance.OpenDocument(&requests.OpenDocument{FilePath: &path})
	return err
}

func TestEngineKeepsTheHostOut(t *testing.T) {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	instance, err := startPDFium(setup{CacheDir: filepath.Join(dir, "oneclaw-test"), MaxMemory: DefaultMaxMemory})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Errors of a missing file and of a file that is no PDF differ.
	err = openPath(instance, path)
	missing := openPath(instance, path+"none")
	if err == nil || missing == nil || err.Error() != missing.Error() {
		t.Errorf("a file of the host: %v; a missing one: %v", err, missing)
	}
}

// A cache that cannot be written costs time, not the tools.
func TestUnusableCache(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if cache := openCache(file); cache != nil {
		t.Error("a file was taken for a folder")
	}
}

func TestScale(t *testing.T) {
	for _, tc := range []struct {
		width, height float64
		dpi, limit    int
		w, h, used    int
	}{
		{612, 792, 72, 1e6, 612, 792, 72},
		{612, 792, 300, 1e6, 879, 1137, 103},
		{14400, 14400, 300, 1e6, 1000, 1000, 5},
		{0, 0, 150, 1e6, 2, 2, 150},
		{1e9, 0.001, 300, 1e6, 1e6, 1, 2},
	} {
		w, h, used := pixelSize(tc.width, tc.height, tc.dpi, tc.limit)
		if w != tc.w || h != tc.h || used != tc.used {
			t.Errorf("scale(%g, %g, %d, %d) = %d, %d, %d; want %d, %d, %d",
				tc.width, tc.height, tc.dpi, tc.limit, w, h, used, tc.w, tc.h, tc.used)
		}
	}
}

func TestDate(t *testing.T) {
	for in, want := range map[string]string{
		"D:20260301093000+01'00'": "2026-03-01T09:30:00+01:00",
		"D:20260301093000Z":       "2026-03-01T09:30:00Z",
		"D:20260301093000Z00'00'": "2026-03-01T09:30:00Z",
		"D:20260301093000":        "2026-03-01T09:30:00",
		"20260301":                "2026-03-01",
		"last Tuesday":            "last Tuesday",
		"":                        "",
	} {
		if got := formatDate(in); got != want {
			t.Errorf("date(%q) = %q, want %q", in, got, want)
		}
	}
}
