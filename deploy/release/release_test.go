package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"debug/buildinfo"
	"debug/elf"
	"debug/macho"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"go.uber.org/goleak"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stubs makes a release whose programs are a few bytes.
func stubs(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "dist")
	at, err := parseEpoch("")
	if err != nil {
		t.Fatal(err)
	}
	r := release{version: "v1.2.3", sourceDir: "../..", outDir: out, modTime: at}
	err = r.buildAll(t.Context(), func(_ context.Context, p platform, to string) error {
		err := os.Mkdir(to, 0o700)
		for _, name := range programNames() {
			err = errors.Join(err, os.WriteFile(filepath.Join(to, name), []byte(name+" for "+p.os+"/"+p.arch), 0o700))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheSameInputMakesTheSameBytes(t *testing.T) {
	t.Parallel()
	first, second := stubs(t), stubs(t)
	sums := read(t, first, "SHA256SUMS")
	if again := read(t, second, "SHA256SUMS"); !bytes.Equal(sums, again) {
		t.Errorf("first\n%ssecond\n%s", sums, again)
	}
	checked(t, first)
	for _, p := range platforms() {
		name := (release{version: "v1.2.3"}).archiveName(p)
		dir := unpacked(t, gunzipped(t, filepath.Join(first, name+".tar.gz")))
		want := "LICENSE README.md oneclaw oneclaw-lab"
		if p.os == "linux" {
			want += " oneclaw.service"
		}
		if got := listed(t, filepath.Join(dir, name)); got != want {
			t.Errorf("%s has %s, want %s", name, got, want)
		}
		for _, program := range programNames() {
			if got := string(read(t, dir, name, program)); got != program+" for "+p.os+"/"+p.arch {
				t.Errorf("%s has the %s", name, got)
			}
		}
	}
	for arch, root := range roots(t, first) {
		for _, program := range programNames() {
			if got := string(read(t, root, program)); got != program+" for linux/"+arch {
				t.Errorf("the image for %s has the %s", arch, got)
			}
		}
	}
}

func TestAReleaseIsRefused(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		version, want string
		args          []string
	}{
		{"1.2.3", "usage", []string{full}}, {"", "usage", []string{full}}, {"v1.2.3", "usage", nil}, {"v1.2.3", "not empty", []string{full}},
	} {
		if err := publish(t.Context(), c.version, c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %q: %v", c.version, c.args, err)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if err := publish(t.Context(), "v1.2.3", []string{t.TempDir()}); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Error(err)
	}
}

// TestTheReleaseThatWasMade looks at a folder that the command has filled.
func TestTheReleaseThatWasMade(t *testing.T) {
	out := os.Getenv("TEST_ONECLAW_RELEASE")
	if out == "" {
		t.Skip("TEST_ONECLAW_RELEASE names no folder that the command has filled")
	}
	checked(t, out)
	version := strings.TrimSpace(string(read(t, out, "VERSION")))
	r := release{version: version}
	for _, p := range platforms() {
		dir := unpacked(t, gunzipped(t, filepath.Join(out, r.archiveName(p)+".tar.gz")))
		program := filepath.Join(dir, r.archiveName(p), "oneclaw")
		inspected(t, p, program, version)
		inspected(t, p, program+"-lab", version)
		if p == (platform{"linux", "amd64"}) {
			runs(t, version, program)
		}
	}
	for arch, root := range roots(t, out) {
		program := filepath.Join(root, "oneclaw")
		inspected(t, platform{"linux", arch}, program, version)
		inspected(t, platform{"linux", arch}, program+"-lab", version)
		if arch != "amd64" {
			continue
		}
		bwrap, err := exec.LookPath("bwrap")
		if err != nil {
			t.Fatal(err)
		}
		runs(t, version, bwrap, "--unshare-user", "--unshare-pid", "--bind", root, "/", "--dev", "/dev", "--proc", "/proc", "--", "/oneclaw")
	}
}

// inspected wants a static program of its platform, with its version in it.
func inspected(t *testing.T, p platform, program, version string) {
	t.Helper()
	data := read(t, program)
	if !bytes.Contains(data, []byte(version)) {
		t.Errorf("%v does not know its version", p)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if settings["GOOS"] != p.os || settings["GOARCH"] != p.arch || settings["CGO_ENABLED"] != "0" || settings["-trimpath"] != "true" {
		t.Errorf("%v was built with %v", p, settings)
	}
	if p.os == "darwin" {
		f, err := macho.NewFile(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]macho.Cpu{"amd64": macho.CpuAmd64, "arm64": macho.CpuArm64}[p.arch]; f.Cpu != want || f.Type != macho.TypeExec {
			t.Errorf("%v is of %v, %v", p, f.Cpu, f.Type)
		}
		return
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[p.arch]; f.Machine != want {
		t.Errorf("%v is of %v", p, f.Machine)
	}
	for _, prog := range f.Progs {
		if prog.Type == elf.PT_INTERP || prog.Type == elf.PT_DYNAMIC {
			t.Errorf("%v is not static", p)
		}
	}
}

// runs has the program say its version and examine a bot that has all it needs.
func runs(t *testing.T, version string, command ...string) {
	t.Helper()
	tg, err := telegram.New(telegram.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tg.Close() })
	tgURL, err := tg.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	model, err := openai.New(openai.Config{Responder: openai.Offline{}, Key: "sk-emulated"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = model.Close() })
	modelURL, err := model.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	data := "/data"
	if len(command) == 1 {
		data = t.TempDir()
	}
	for argument, want := range map[string]string{"version": "oneclaw " + version + " go", "doctor": "settings"} {
		cmd := exec.CommandContext(t.Context(), command[0], append(command[1:], argument)...)
		cmd.Env = []string{
			"HOME=" + data, "ONECLAW_DATA_DIR=" + data, "ONECLAW_LISTEN=127.0.0.1:0", "ONECLAW_ALLOW=telegram:*",
			"TELEGRAM_BOT_TOKEN=" + tg.Token(), "TELEGRAM_API_URL=" + tgURL,
			"OPENAI_API_KEY=sk-emulated", "OPENAI_BASE_URL=" + modelURL, "OPENAI_MODEL=" + openai.DefaultModel,
		}
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte(want)) {
			t.Errorf("%s %s: %v\n%s", command[0], argument, err, out)
		}
	}
}

// checked wants SHA256SUMS to name all files of a folder, with their sums.
func checked(t *testing.T, dir string) {
	t.Helper()
	named := "SHA256SUMS"
	for line := range strings.Lines(string(read(t, dir, "SHA256SUMS"))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if got := sha256.Sum256(read(t, dir, name)); hex.EncodeToString(got[:]) != sum {
			t.Errorf("the sum of %s is wrong", name)
		}
		named += " " + name
	}
	if got := listed(t, dir); got != named {
		t.Errorf("there are %s, and named are %s", got, named)
	}
}

// roots unpacks the image of each processor and looks at what stands around it.
func roots(t *testing.T, dir string) map[string]string {
	t.Helper()
	images, err := layout.ImageIndexFromPath(unpacked(t, bytes.NewReader(read(t, dir, imageName))))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(images); err != nil {
		t.Errorf("the layout: %v", err)
	}
	top, err := images.IndexManifest()
	if err != nil || len(top.Manifests) != 1 {
		t.Fatalf("%v, %v", top, err)
	}
	index, err := images.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, m := range manifest.Manifests {
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		all[m.Platform.Architecture] = looked(t, image)
	}
	if len(all) != 2 {
		t.Errorf("images for %v", all)
	}
	return all
}

func looked(t *testing.T, image v1.Image) string {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	if _, volume := c.Volumes["/data"]; !volume || c.User != "65532:65532" || c.Entrypoint[0] != "/oneclaw" || c.Labels["org.opencontainers.image.version"] == "" {
		t.Errorf("the image is %+v", c)
	}
	files := mutate.Extract(image)
	defer func() { _ = files.Close() }()
	owners := map[string]string{}
	root := unpackedBut(t, files, func(h *tar.Header) {
		owners[strings.TrimSuffix(h.Name, "/")] = fmt.Sprintf("%d %d %o", h.Uid, h.Gid, h.Mode)
	})
	if owners["data"] != "65532 65532 700" || owners["tmp"] != "0 0 1777" || owners["oneclaw"] != "0 0 755" {
		t.Errorf("owners: %v", owners)
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(read(t, root, "etc/ssl/certs/ca-certificates.crt")) {
		t.Error("no certificates")
	}
	return root
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func listed(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func gunzipped(t *testing.T, file string) io.Reader {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(read(t, file)))
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func unpacked(t *testing.T, archive io.Reader) string {
	return unpackedBut(t, archive, func(*tar.Header) {})
}

// unpackedBut unpacks an archive, whose times are all the same.
func unpackedBut(t *testing.T, archive io.Reader, look func(*tar.Header)) string {
	t.Helper()
	dir := t.TempDir()
	for files := tar.NewReader(archive); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil || !filepath.IsLocal(h.Name) {
			t.Fatalf("%v, %v", h, err)
		}
		look(h)
		if !h.ModTime.Equal(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) || h.Uname+h.Gname != "" {
			t.Errorf("%s: %v, %s", h.Name, h.ModTime, h.Uname)
		}
		to := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, 0o755)
		} else {
			var data []byte
			if data, err = io.ReadAll(files); err == nil {
				err = os.WriteFile(to, data, 0o755) // programs are run
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
