// Command release builds a release in an empty folder: an archive for each platform, an OCI
// image, and their checksums. Builds are reproducible on any machine with the same Go version.
//
//	go run ./deploy/release -version v1.2.3 dist
//
// It is a separate program, so that the bot does not contain its libraries.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/mod/semver"
)

// platform is an operating system and architecture, as Go names them.
type platform struct{ os, arch string }

// platforms returns the supported platforms.
func platforms() []platform {
	return []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}
}

// release is one version and its output.
type release struct {
	version   string
	sourceDir string // folder of the module
	outDir    string // empty folder
	modTime   time.Time
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	version := flag.String("version", "", "the version, such as v1.2.3")
	flag.Parse()
	if err := publish(ctx, *version, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		stop()
		os.Exit(1)
	}
}

func publish(ctx context.Context, version string, args []string) error {
	if !semver.IsValid(version) || len(args) != 1 {
		return errors.New("usage: go run ./deploy/release -version v1.2.3 FOLDER")
	}
	at, err := parseEpoch(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	out, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	r := release{version: version, sourceDir: ".", outDir: out, modTime: at}
	return r.buildAll(ctx, r.buildPrograms)
}

// parseEpoch parses SOURCE_DATE_EPOCH, the modification time of all files in the archives.
func parseEpoch(text string) (time.Time, error) {
	if text == "" {
		return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, not a number of seconds", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// programNames returns the names of the programs.
func programNames() []string { return []string{"oneclaw", "oneclaw-lab"} }

// buildAll builds all files of the release. It builds the programs in a temporary folder.
func (r release) buildAll(ctx context.Context, build func(ctx context.Context, p platform, to string) error) error {
	if err := os.MkdirAll(r.outDir, 0o755); err != nil {
		return err
	}
	if there, err := os.ReadDir(r.outDir); err != nil || len(there) > 0 {
		return errors.Join(err, fmt.Errorf("%s is not empty", r.outDir))
	}
	scratch, err := os.MkdirTemp("", "oneclaw-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	programs := map[platform]string{}
	for _, p := range platforms() {
		programs[p] = filepath.Join(scratch, p.os+"-"+p.arch)
		if err := build(ctx, p, programs[p]); err != nil {
			return fmt.Errorf("build for %s/%s: %w", p.os, p.arch, err)
		}
		if err := r.writeArchive(p, programs[p]); err != nil {
			return fmt.Errorf("archive for %s/%s: %w", p.os, p.arch, err)
		}
	}
	if err := r.writeImage(programs, filepath.Join(scratch, "layout")); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	if err := os.WriteFile(filepath.Join(r.outDir, "VERSION"), []byte(r.version+"\n"), 0o644); err != nil {
		return err
	}
	return r.writeChecksums()
}

// buildPrograms builds the programs as the Dockerfile does: static, with time zones, and reproducible.
func (r release) buildPrograms(ctx context.Context, p platform, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "timetzdata",
		"-gcflags=all=-dwarf=false", "-ldflags", "-s -w -X main.version="+r.version, "-o", to+"/")
	for _, name := range programNames() {
		cmd.Args = append(cmd.Args, "./cmd/"+name)
	}
	cmd.Dir = r.sourceDir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}
