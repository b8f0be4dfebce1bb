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

// name returns the name of a platform's archive and of the folder in it.
func (r release) name(p platform) string {
	return fmt.Sprintf("oneclaw_%s_%s_%s", strings.TrimPrefix(r.version, "v"), p.os, p.arch)
}

// archive writes the archive of a platform.
func (r release) archive(p platform, programs string) error {
	name := r.name(p)
	files := []entry{{name: name + "/", mode: 0o755}}
	for _, program := range names() {
		files = append(files, entry{name: name + "/" + program, mode: 0o755, file: filepath.Join(programs, program)})
	}
	for _, text := range []string{"LICENSE", "README.md"} {
		files = append(files, entry{name: name + "/" + text, mode: 0o644, file: filepath.Join(r.source, text)})
	}
	if p.os == "linux" {
		unit, err := service.Unit(service.Options{Program: service.Program})
		if err != nil {
			return err
		}
		files = append(files, entry{name: name + "/" + service.Name, mode: 0o644, data: []byte(unit)})
	}
	return create(filepath.Join(r.out, name+".tar.gz"), func(w io.Writer) error {
		z := gzip.NewWriter(w) // its header has neither name nor time
		return errors.Join(pack(z, r.at, files), z.Close())
	})
}

// entry is a file or, with a trailing slash, a folder.
type entry struct {
	name  string
	mode  int64
	owner int    // user and group
	file  string // the file with the content; otherwise data
	data  []byte
}

// pack writes entries in order, with no trace of the machine.
func pack(w io.Writer, at time.Time, entries []entry) error {
	archive := tar.NewWriter(w)
	for _, e := range entries {
		if err := e.write(archive, at); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return archive.Close()
}

func (e entry) write(archive *tar.Writer, at time.Time) error {
	header := &tar.Header{Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
	var content io.Reader = bytes.NewReader(e.data)
	header.Size = int64(len(e.data))
	switch {
	case strings.HasSuffix(e.name, "/"):
		header.Typeflag = tar.TypeDir
	case e.file != "":
		f, err := os.Open(e.file)
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

func create(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// sums writes the checksums of the files in the folder, in sha256sum's format.
func (r release) sums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, e := range entries { // they are sorted
		f, err := os.Open(filepath.Join(r.out, e.Name()))
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
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(lines.String()), 0o644)
}
