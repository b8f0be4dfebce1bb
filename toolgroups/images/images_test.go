package images_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tiktoken-go/tokenizer"
	"go.uber.org/goleak"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/images"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// maker remembers what it was asked for.
type maker struct {
	made         []byte
	err          error
	asked        int
	prompt, size string
	source       []byte
}

func (m *maker) MakeImage(_ context.Context, scope toolgroups.Scope, prompt, size string, source []byte) ([]byte, error) {
	m.asked++
	m.prompt, m.size, m.source = scope.User+" "+prompt, size, source
	return m.made, m.err
}

// harness is a workspace and the tools at work in it.
type harness struct {
	*maker
	dir   string
	quota int64
	tools map[string]toolgroups.Tool
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	h := &harness{maker: &maker{made: encode(t, 10, 10, png.Encode)}, dir: t.TempDir(), tools: map[string]toolgroups.Tool{}}
	group, err := images.New(h.maker, func() time.Time { return time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC) }).Group()
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range group.Tools {
		h.tools[tool.Name] = tool
	}
	return h
}

func encode(t testing.TB, width, height int, to func(io.Writer, image.Image) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := to(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asJPEG(w io.Writer, m image.Image) error { return jpeg.Encode(w, m, nil) }
func asGIF(w io.Writer, m image.Image) error  { return gif.Encode(w, m, nil) }

func (h *harness) put(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (h *harness) run(t testing.TB, tool string, args map[string]any) (toolgroups.Result, *toolgroups.Error) {
	t.Helper()
	arguments, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return toolgroups.Run(t.Context(), nil, h.tools[tool], toolgroups.Call{
		Name: tool, Arguments: arguments, Scope: toolgroups.Scope{User: "ann", Workspace: h.dir, Quota: h.quota},
	})
}

// A picture is saved under words of its prompt, and sent.
func TestPicturesAreSavedAndSent(t *testing.T) {
	h := newHarness(t)
	for prompt, name := range map[string]string{
		" A Cat, on a roof!": "pictures/a-cat-on-a-roof-20261126-120000-", "ねこ": "pictures/ねこ-2026", "../../etc/passwd": "pictures/etc-passwd-",
		"🐈 !": "pictures/picture-", strings.Repeat("very ", 90): "pictures/very-very-very-very-very-very-very-very-2026",
	} {
		r, fault := h.run(t, "generate_image", map[string]any{"prompt": prompt})
		if fault != nil {
			t.Fatalf("%s: %v", prompt, fault)
		}
		if len(r.Files) != 1 || !strings.HasPrefix(r.Files[0].Path, name) || !strings.HasPrefix(r.Text, "Made and sent: "+r.Files[0].Path) {
			t.Fatalf("%q: %+v", prompt, r)
		}
		if saved, err := os.ReadFile(filepath.Join(h.dir, r.Files[0].Path)); err != nil || !bytes.Equal(saved, h.made) {
			t.Errorf("%s: %v", r.Files[0].Path, err)
		}
		if h.prompt != "ann "+strings.TrimSpace(prompt) || h.size != "1024x1024" || h.source != nil {
			t.Errorf("asked for %q %s", h.prompt, h.size)
		}
	}
	if _, fault := h.run(t, "generate_image", map[string]any{"prompt": "x", "size": "portrait"}); fault != nil || h.size != "1024x1536" {
		t.Errorf("%v, %s", fault, h.size)
	}
}

// A changed picture has the form of the old one, unless another is asked for.
func TestChangedPicturesKeepTheirForm(t *testing.T) {
	h := newHarness(t)
	for name, c := range map[string]struct {
		data []byte
		size any
		want string
	}{
		"wide.png": {encode(t, 130, 100, png.Encode), nil, "1536x1024"}, "high.jpg": {encode(t, 100, 130, asJPEG), nil, "1024x1536"},
		"nearly.png": {encode(t, 120, 100, png.Encode), nil, "1024x1024"}, "new.png": {encode(t, 130, 100, png.Encode), "square", "1024x1024"},
		"a.webp": {[]byte("RIFF\x10\x00\x00\x00WEBPVP8 xxxx"), nil, "1024x1024"},
	} {
		h.put(t, name, c.data)
		args := map[string]any{"path": name, "prompt": "blue"}
		if c.size != nil {
			args["size"] = c.size
		}
		r, fault := h.run(t, "edit_image", args)
		if fault != nil || h.size != c.want || !bytes.Equal(h.source, c.data) || len(r.Files) != 1 {
			t.Errorf("%s: %v, %s, %+v", name, fault, h.size, r)
		}
		if kept, err := os.ReadFile(filepath.Join(h.dir, name)); err != nil || !bytes.Equal(kept, c.data) {
			t.Errorf("%s was changed: %v", name, err)
		}
	}
}

// What cannot succeed is refused before it is paid.
func TestRefusedBeforeTheyArePaid(t *testing.T) {
	h := newHarness(t)
	h.put(t, "a.gif", encode(t, 10, 10, asGIF))
	h.put(t, "a.png", []byte("%PDF-1.7"))
	h.put(t, "empty.png", nil)
	large, err := os.Create(filepath.Join(h.dir, "large.png"))
	if err == nil {
		err = large.Truncate(26 << 20)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = large.Close()
	for name, c := range map[string]struct {
		tool string
		args map[string]any
		want string
	}{
		"no prompt":   {"generate_image", map[string]any{"prompt": " \n"}, "'prompt' is empty"},
		"missing":     {"generate_image", map[string]any{}, "prompt"},
		"long":        {"generate_image", map[string]any{"prompt": strings.Repeat("é", 32_001)}, "more than the limit of 32000"},
		"size":        {"generate_image", map[string]any{"prompt": "x", "size": "4096x4096"}, "size"},
		"no file":     {"edit_image", map[string]any{"prompt": "x", "path": "b.png"}, "There is no file"},
		"outside":     {"edit_image", map[string]any{"prompt": "x", "path": "../a.png"}, "outside the workspace"},
		"gif":         {"edit_image", map[string]any{"prompt": "x", "path": "a.gif"}, "not a PNG, JPEG or WebP"},
		"no picture":  {"edit_image", map[string]any{"prompt": "x", "path": "a.png"}, "not a PNG, JPEG or WebP"},
		"empty":       {"edit_image", map[string]any{"prompt": "x", "path": "empty.png"}, "not a PNG, JPEG or WebP"},
		"large":       {"edit_image", map[string]any{"prompt": "x", "path": "large.png"}, "larger than the limit"},
		"edit prompt": {"edit_image", map[string]any{"prompt": "", "path": "a.gif"}, ""},
	} {
		if r, fault := h.run(t, c.tool, c.args); fault == nil || !strings.Contains(fault.Message, c.want) {
			t.Errorf("%s: %v, %v", name, r, fault)
		}
	}
	h.quota = 30 << 20 // of which the large file has most
	if r, fault := h.run(t, "generate_image", map[string]any{"prompt": "x"}); fault == nil || fault.Code != images.CodeNoRoom {
		t.Errorf("without room: %v, %v", r, fault)
	}
	if h.asked != 0 {
		t.Errorf("%d pictures were asked for", h.asked)
	}
}

func TestWhatAMakerReturns(t *testing.T) {
	h := newHarness(t)
	h.made = []byte("<html>")
	if _, fault := h.run(t, "generate_image", map[string]any{"prompt": "x"}); fault == nil || fault.Code != images.CodeNoPicture || !strings.Contains(fault.Message, "Do not try again") {
		t.Errorf("no picture: %v", fault)
	}
	h.err = toolgroups.Errorf("no_budget", "Nothing is left.")
	if _, fault := h.run(t, "generate_image", map[string]any{"prompt": "x"}); fault == nil || fault.Code != "no_budget" {
		t.Errorf("refused: %v", fault)
	}
	if left, err := os.ReadDir(h.dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// Each new group may cost 25 tokens of the first request.
func TestTheGroupIsCheap(t *testing.T) {
	group, err := images.New(&maker{}, time.Now).Group()
	if err != nil {
		t.Fatal(err)
	}
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf("\n- %s: %s", group.Name, group.Description)
	if n, err := codec.Count(line); err != nil || n > 25 {
		t.Errorf("%q has %d tokens, %v", line, n, err)
	}
	for _, tool := range group.Tools {
		if !tool.Paid || tool.Effect != toolgroups.Changes {
			t.Errorf("%s: paid %v, effect %v", tool.Name, tool.Paid, tool.Effect)
		}
	}
}

// Whatever a file is, it is refused or passed on as it is.
func FuzzSource(f *testing.F) {
	f.Add(encode(f, 3, 2, png.Encode))
	f.Add(encode(f, 3, 2, asJPEG))
	f.Add([]byte("RIFF\x10\x00\x00\x00WEBPVP8 xxxx"))
	f.Add([]byte("GIF89a"))
	h := newHarness(f)
	h.err = toolgroups.Errorf("made", "Nothing is saved.")
	f.Fuzz(func(t *testing.T, data []byte) {
		h.put(t, "a", data)
		before := h.asked
		_, fault := h.run(t, "edit_image", map[string]any{"path": "a", "prompt": "x"})
		if asked := h.asked > before; asked != (fault.Code == "made") || asked && !bytes.Equal(h.source, data) {
			t.Errorf("asked: %v, %v", asked, fault)
		}
	})
}
