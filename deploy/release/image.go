package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nonrootID is the ID of the image's user and group.
const nonrootID = 65532

// imageName is the file name of the image's archive.
const imageName = "oneclaw_image.tar"

// writeImage writes the image for all Linux platforms as an OCI archive, for "docker load" and
// "skopeo copy oci-archive:…".
func (r release) writeImage(programs map[platform]string, dir string) error {
	below, err := r.newLayer(baseEntries())
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range platforms() {
		if p.os != "linux" {
			continue
		}
		var files []tarEntry
		for _, name := range programNames() {
			files = append(files, tarEntry{name: name, mode: 0o755, path: filepath.Join(programs[p], name)})
		}
		above, err := r.newLayer(files)
		if err != nil {
			return err
		}
		image, err := r.newImage(p, below, above)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: p.os, Architecture: p.arch},
		}})
	}
	all, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := all.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": "docker.io/library/oneclaw:" + r.version,
	})); err != nil {
		return err
	}
	files, err := listTree(dir)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(r.outDir, imageName), func(w io.Writer) error { return writeTar(w, r.modTime, files) })
}

// baseEntries returns the image's files other than the programs: certificates, a temporary folder,
// and the data folder.
func baseEntries() []tarEntry {
	return []tarEntry{
		{name: "data/", mode: 0o700, ownerID: nonrootID},
		{name: "etc/", mode: 0o755},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: certificates()},
		{name: "tmp/", mode: 0o1777},
	}
}

// certificates returns Mozilla's root certificates as published by the Go project: go.mod has their
// version, so builds are reproducible, and govulncheck reports old versions. Roots with constraints
// are left out, because a PEM file cannot express the constraints.
func certificates() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // writing to a buffer cannot fail
		}
	}
	return all.Bytes()
}

// newLayer makes an image layer from files.
func (r release) newLayer(files []tarEntry) (v1.Layer, error) {
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		in, out := io.Pipe()
		go func() { out.CloseWithError(writeTar(out, r.modTime, files)) }()
		return in, nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// newImage makes the image for a platform, configured as in the Dockerfile.
func (r release) newImage(p platform, layers ...v1.Layer) (v1.Image, error) {
	created := v1.Time{Time: r.modTime}
	var adds []mutate.Addendum
	for _, layer := range layers {
		adds = append(adds, mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: "deploy/release"}})
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(image, adds...)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, created
	config.Config = v1.Config{
		Entrypoint: []string{"/oneclaw"}, Cmd: []string{"run"}, User: "65532:65532", WorkingDir: "/",
		Env:          []string{"HOME=/data", "ONECLAW_DATA_DIR=/data", "ONECLAW_LISTEN=:8787"},
		Volumes:      map[string]struct{}{"/data": {}},
		ExposedPorts: map[string]struct{}{"8787/tcp": {}},
		Healthcheck:  &v1.HealthConfig{Test: []string{"CMD", "/oneclaw", "health"}, Interval: 30e9, Timeout: 5e9, StartPeriod: 10e9},
		Labels: map[string]string{
			"org.opencontainers.image.title": "oneclaw", "org.opencontainers.image.version": r.version, "org.opencontainers.image.licenses": "MIT",
			"org.opencontainers.image.description": "A bot for Telegram and Slack that loads its tools when it needs them",
		},
	}
	return mutate.ConfigFile(image, config)
}

// listTree lists the files and folders below a folder, sorted.
func listTree(dir string) ([]tarEntry, error) {
	var files []tarEntry
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case d.IsDir():
			files = append(files, tarEntry{name: name + "/", mode: 0o755})
		default:
			files = append(files, tarEntry{name: name, mode: 0o644, path: filepath.Join(dir, name)})
		}
		return nil
	})
	return files, err
}
