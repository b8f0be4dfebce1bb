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

// nobody is the user and group of the image.
const nobody = 65532

// imageName is the archive of the image.
const imageName = "oneclaw_image.tar"

// image writes the image of all Linux platforms as an OCI archive, for "docker load" and "skopeo
// copy oci-archive:…".
func (r release) image(programs map[platform]string, dir string) error {
	below, err := r.layer(base())
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range platforms() {
		if p.os != "linux" {
			continue
		}
		var files []entry
		for _, name := range names() {
			files = append(files, entry{name: name, mode: 0o755, file: filepath.Join(programs[p], name)})
		}
		above, err := r.layer(files)
		if err != nil {
			return err
		}
		image, err := r.configured(p, below, above)
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
	files, err := tree(dir)
	if err != nil {
		return err
	}
	return create(filepath.Join(r.out, imageName), func(w io.Writer) error { return pack(w, r.at, files) })
}

// base returns the files besides the program: certificates, a temporary folder, and the data
// folder.
func base() []entry {
	return []entry{
		{name: "data/", mode: 0o700, owner: nobody},
		{name: "etc/", mode: 0o755},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: certificates()},
		{name: "tmp/", mode: 0o1777},
	}
}

// certificates returns Mozilla's root certificates, as the Go project publishes them: their
// version is in go.mod, so builds are reproducible, and govulncheck reports old ones. Roots with
// constraints are left out, because a file cannot express these.
func certificates() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer does not fail
		}
	}
	return all.Bytes()
}

// layer packs files into a layer.
func (r release) layer(files []entry) (v1.Layer, error) {
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		in, out := io.Pipe()
		go func() { out.CloseWithError(pack(out, r.at, files)) }()
		return in, nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// configured returns the image of a platform, configured as in the Dockerfile.
func (r release) configured(p platform, layers ...v1.Layer) (v1.Image, error) {
	created := v1.Time{Time: r.at}
	var adds []mutate.Addendum
	for _, layer := range layers {
		adds = append(adds, mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: "internal/release"}})
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

// tree lists the files below a folder, sorted.
func tree(dir string) ([]entry, error) {
	var files []entry
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case d.IsDir():
			files = append(files, entry{name: name + "/", mode: 0o755})
		default:
			files = append(files, entry{name: name, mode: 0o644, file: filepath.Join(dir, name)})
		}
		return nil
	})
	return files, err
}
