package drive

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/api/drive/v3"
	"google.golang.org/api/googleapi"

	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
)

const (
	// driveBinary is the type of an upload for which none is named.
	driveBinary = "application/octet-stream"
	// driveNative begins the types of Google's own documents.
	driveNative = "application/vnd.google-apps."
)

func driveUpload(ctx context.Context, api *drive.Service, c *service.Conn, in driveArgs) (any, error) {
	kind := cmp.Or(strings.TrimSpace(in.MimeType), driveBinary)
	if _, _, err := mime.ParseMediaType(kind); err != nil || !strings.Contains(kind, "/") {
		return nil, service.Invalidf("'mime_type' must look like text/plain, not %q", in.MimeType)
	}
	data, base, err := c.Read(in.Upload)
	if err != nil {
		return nil, err
	}
	f := &drive.File{Name: in.Name, MimeType: kind, Parents: driveParents(in.Parent)}
	if strings.HasPrefix(kind, driveNative) {
		// Google converts from what the file is.
		kind = cmp.Or(mime.TypeByExtension(filepath.Ext(base)), driveBinary)
	}
	// One request of type multipart/related, so that it can be sent again as a whole.
	return api.Files.Create(f).Context(ctx).SupportsAllDrives(true).Fields(driveFields).
		Media(bytes.NewReader(data), googleapi.ChunkSize(0), googleapi.ContentType(kind)).Do()
}

// driveSaved is the result of a download.
type driveSaved struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

func driveDownload(ctx context.Context, api *drive.Service, c *service.Conn, in driveArgs) (any, error) {
	return driveFetch(c, in.Save, api.Files.Get(in.File).Context(ctx).SupportsAllDrives(true).Download)
}

func driveExport(ctx context.Context, api *drive.Service, c *service.Conn, in driveArgs) (any, error) {
	return driveFetch(c, in.Save, api.Files.Export(in.File, in.MimeType).Context(ctx).Download)
}

// driveFetch streams what a request answers into a file of the workspace. The path
// is checked before anything is asked for.
func driveFetch(c *service.Conn, path string, download func(...googleapi.CallOption) (*http.Response, error)) (out any, err error) {
	file, err := createDriveFile(c, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.close()) }()
	resp, err := download()
	if err != nil {
		return nil, driveFault(err)
	}
	defer func() { _ = resp.Body.Close() }()
	size, err := file.fill(resp.Body)
	if err != nil {
		return nil, err
	}
	saved := driveSaved{file.rel, size}
	if size > service.MaxFile {
		return saved, nil // More than a chat takes.
	}
	return c.Deliver(saved, saved.Path)
}

// driveFault explains refusals that are no matter of permission, although they look
// like one (developers.google.com/workspace/drive/api/guides/handle-errors).
func driveFault(err error) error {
	var answer *googleapi.Error
	if !errors.As(err, &answer) || answer.Code != http.StatusForbidden {
		return err
	}
	for _, reason := range service.Reasons([]byte(answer.Body)) {
		switch reason {
		case "fileNotDownloadable":
			return service.Invalidf("A Google document has no bytes of its own. Use drive_export with a target type.")
		case "fileNotExportable":
			return service.Invalidf("Only Google documents can be converted. Use drive_download.")
		case "exportSizeLimitExceeded":
			return service.Invalidf("The converted document is larger than the 10 MB that Google exports.")
		}
	}
	return err
}

// driveFile is a file of the workspace that appears when it is complete.
type driveFile struct {
	ws   *workspace.Root
	root *os.Root
	rel  string // with slashes, for the model
	temp string
}

// createDriveFile checks a path and makes the folders above it.
func createDriveFile(c *service.Conn, name string) (file *driveFile, err error) {
	ws, err := workspace.OpenWithin(c.Workspace, c.Quota, c.Reserve)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ws.Close())
		}
	}()
	rel, err := ws.Rel(name)
	if err != nil {
		return nil, service.FileError{Name: name, Err: err}
	}
	info, err := ws.Stat(rel)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, service.FileError{Name: name, Err: workspace.ErrNotFile}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, service.FileError{Name: name, Err: err}
	}
	root, err := os.OpenRoot(ws.Dir())
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w", err)
	}
	dir := filepath.Dir(rel)
	if err := root.MkdirAll(dir, 0o700); err != nil {
		return nil, errors.Join(service.FileError{Name: name, Err: err}, root.Close())
	}
	return &driveFile{ws: ws, root: root, rel: filepath.ToSlash(rel), temp: filepath.Join(dir, ".download-"+rand.Text())}, nil
}

// fill writes the file from a stream.
func (f *driveFile) fill(from io.Reader) (size int64, err error) {
	to, err := f.root.OpenFile(f.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, service.FileError{Name: f.rel, Err: err}
	}
	source := &driveSource{from: from}
	size, err = io.Copy(f.ws.Bound(to), source)
	err = errors.Join(err, to.Close())
	if err == nil {
		if err = f.root.Rename(f.temp, filepath.FromSlash(f.rel)); err == nil {
			return size, nil
		}
	}
	err = errors.Join(err, f.root.Remove(f.temp))
	if source.err != nil {
		return 0, driveBroken(source.err)
	}
	return 0, service.FileError{Name: f.rel, Err: err}
}

func (f *driveFile) close() error { return errors.Join(f.root.Close(), f.ws.Close()) }

// driveSource remembers that it was reading that failed, not writing.
type driveSource struct {
	from io.Reader
	err  error
}

// Read implements [io.Reader].
func (s *driveSource) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// driveBroken maps a stream that ended before its time.
func driveBroken(err error) error {
	var long *http.MaxBytesError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &long):
		return service.Invalidf("The file is larger than the limit of %d bytes.", long.Limit)
	}
	return toolgroups.Errorf(service.CodeUnavailable, "The download broke off: %s. Try again later.", service.Plain(err.Error()))
}
