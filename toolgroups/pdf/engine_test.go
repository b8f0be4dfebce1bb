package pdf

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/requests"
)

// newEngine makes an engine that never goes idle by itself.
func newEngine(t *testing.T) *engine {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	p, err := New(Config{CacheDir: filepath.Join(dir, "oneclaw-test"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p.engine
}

func openPath(instance pdfium.Pdfium, path string) error {
	_, err := instance.OpenDocument(&requests.OpenDocument{FilePath: &path})
	return err
}

func nothing(pdfium.Pdfium) error { return nil }

// Nothing is started before the first use, and an idle runtime is given back.
func TestEngineIsLazyAndGoesIdle(t *testing.T) {
	e := newEngine(t)
	if e.pool != nil {
		t.Fatal("PDFium was started by New")
	}
	if err := e.use(t.Context(), nothing); err != nil {
		t.Fatal(err)
	}
	stale := e.gen
	if err := e.use(t.Context(), nothing); err != nil {
		t.Fatal(err)
	}
	if e.starts != 1 {
		t.Errorf("two uses started PDFium %d times", e.starts)
	}
	e.expire(stale)
	if e.pool == nil {
		t.Error("the timer of an earlier use stopped PDFium")
	}
	e.expire(e.gen)
	if e.pool != nil || e.cache != nil {
		t.Error("idle PDFium is still there")
	}
	if err := e.use(t.Context(), nothing); err != nil || e.starts != 2 {
		t.Errorf("use after idle: %v, %d starts", err, e.starts)
	}
}

// While an instance is in use the timer does nothing.
func TestEngineDoesNotExpireInUse(t *testing.T) {
	e := newEngine(t)
	err := e.use(t.Context(), func(instance pdfium.Pdfium) error {
		e.expire(e.gen)
		_, err := openDocument(instance, []byte("no PDF"))
		if err == nil {
			t.Error("opened what is no PDF")
		}
		return nil
	})
	if err != nil || e.pool == nil {
		t.Errorf("%v, pool %v", err, e.pool)
	}
}

func TestEngineKeepsTheHostOut(t *testing.T) {
	e := newEngine(t)
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := e.use(t.Context(), func(instance pdfium.Pdfium) error {
		// Errors of a missing file and of a file that is no PDF differ.
		err := openPath(instance, path)
		missing := openPath(instance, path+"none")
		if err == nil || missing == nil || err.Error() != missing.Error() {
			t.Errorf("a file of the host: %v; a missing one: %v", err, missing)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A cache that cannot be written costs time, not the tools.
func TestUnusableCache(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e := &engine{cacheDir: file, log: slog.New(slog.DiscardHandler)}
	if cache := e.openCache(); cache != nil {
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
		w, h, used := scale(tc.width, tc.height, tc.dpi, tc.limit)
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
		if got := date(in); got != want {
			t.Errorf("date(%q) = %q, want %q", in, got, want)
		}
	}
}
