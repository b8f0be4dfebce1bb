package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"oneclaw/internal/service"
)

// archiveName returns the name of a platform's archive, without extension, and of the folder in it.
func (r release) archiveName(p platform) string {
	return fmt.Sprintf("oneclaw_%s_%s_%s", strings.TrimPrefix(r.version, "v"), p.os, p.arch)
}

// writeArchive writes the archive for a platform. programs is the folder with its programs.
func (r release) writeArchive(p platform, programs string) error {
	name := r.archiveName(p)
	files := []tarEntry{{name: name + "/", mode: 0o755}}
	for _, program := range programNames() {
		files = append(files, tarEntry{name: name + "/" + program, mode: 0o755, path: filepath.Join(programs, program)})
	}
	for _, text := range []string{"LICENSE", "README.md"} {
		files = append(files, tarEntry{name: name + "/" + text, mode: 0o644, path: filepath.Join(r.sourceDir, text)})
	}
	if p.os == "linux" {
		unit, err := service.Unit(service.Options{Program: service.ProgramPath})
		if err != nil {
			return err
		}
		files = append(files, tarEntry{name: name + "/" + service.Name, mode: 0o644, data: []byte(unit)})
	}
	return writeFile(filepath.Join(r.outDir, name+".tar.gz"), func(w io.Writer) error {
		z := gzip.NewWriter(w) // without name and time in the header
		return errors.Join(writeTar(z, r.modTime, files), z.Close())
	})
}

// tarEntry is a file or, with a trailing slash, a folder.
type tarEntry struct {
	name    string
	mode    int64
	ownerID int    // user and group ID
	path    string // path of the file with the content; if empty, data is the content
	data    []byte
}

// writeTar writes entries in order as a tar archive that does not depend on the machine.
func writeTar(w io.Writer, at time.Time, entries []tarEntry) error {
	archive := tar.NewWriter(w)
	for _, e := range entries {
		if err := e.write(archive, at); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return archive.Close()
}

func (e tarEntry) write(archive *tar.Writer, at time.Time) error {
	header := &tar.Header{Name: e.name, Mode: e.mode, Uid: e.ownerID, Gid: e.ownerID, ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
	var content io.Reader = bytes.NewReader(e.data)
	header.Size = int64(len(e.data))
	switch {
	case strings.HasSuffix(e.name, "/"):
		header.Typeflag = tar.TypeDir
	case e.path != "":
		f, err := os.Open(e.path)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		content, header.Size = f, info.Size()
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(archive, content)
	return err
}

func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// writeChecksums writes the checksums of the files in the output folder, in the format of sha256sum.
func (r release) writeChecksums() error {
	entries, err := os.ReadDir(r.outDir)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, e := range entries { // sorted by ReadDir
		f, err := os.Open(filepath.Join(r.outDir, e.Name()))
		if err != nil {
			return err
		}
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sum.Sum(nil), e.Name())
	}
	return os.WriteFile(filepath.Join(r.outDir, "SHA256SUMS"), []byte(lines.String()), 0o644)
}
