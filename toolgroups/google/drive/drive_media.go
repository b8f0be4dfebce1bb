package drive

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"path/filepath"
	"strings"

	"google.golang.org/api/drive/v3"
	"google.golang.org/api/googleapi"

	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
	"oneclaw/toolgroups/google/service"
)

const (
	// driveBinary is the default type of an upload.
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
		// Google converts from the file's type.
		kind = cmp.Or(mime.TypeByExtension(filepath.Ext(base)), driveBinary)
	}
	// One multipart/related request, which can be repeated as a whole.
	return api.Files.Create(f).Context(ctx).SupportsAllDrives(true).Fields(driveFields).
		Media(bytes.NewReader(data), googleapi.ChunkSize(0), googleapi.ContentType(kind)).Do()
}

// driveSaved is the result of a download.
type driveSaved struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

func driveDownload(ctx context.Context, api *drive.Service, c *service.Conn, in driveArgs) (any, error) {
	return driveFetch(ctx, c, in.Save, api.Files.Get(in.File).Context(ctx).SupportsAllDrives(true).Download)
}

func driveExport(ctx context.Context, api *drive.Service, c *service.Conn, in driveArgs) (any, error) {
	return driveFetch(ctx, c, in.Save, api.Files.Export(in.File, in.MimeType).Context(ctx).Download)
}

// driveFetch streams a response into a file, whose path is checked first.
func driveFetch(ctx context.Context, c *service.Conn, path string, download func(...googleapi.CallOption) (*http.Response, error)) (any, error) {
	var saved driveSaved
	err := files.WithWorkspace(c.Scope, func(root *workspace.Root) error {
		rel, err := root.Creatable(path)
		if err != nil {
			return service.FileFault(path, err)
		}
		resp, err := download()
		if err != nil {
			return driveFault(err)
		}
		defer func() { _ = resp.Body.Close() }()
		source := &driveSource{from: toolgroups.ReportingReader(ctx, resp.Body, resp.ContentLength)}
		saved.Size, err = root.WriteFrom(rel, source)
		saved.Path = filepath.ToSlash(rel)
		switch {
		case source.err != nil:
			return driveBroken(source.err)
		case err != nil:
			return service.FileFault(path, err)
		}
		return nil
	})
	if err != nil || saved.Size > service.MaxFile { // more than a chat accepts
		return saved, err
	}
	return c.Deliver(saved, saved.Path)
}

// driveFault explains refusals that look like missing permissions but are not
// (developers.google.com/workspace/drive/api/guides/handle-errors).
func driveFault(err error) error {
	var answer *googleapi.Error
	if !errors.As(err, &answer) || answer.Code != http.StatusForbidden {
		return err
	}
	for _, reason := range service.Reasons([]byte(answer.Body)) {
		switch reason {
		case "fileNotDownloadable":
			return service.Invalidf("A Google document has no bytes of its own. Use drive_export with a target type. Of a shortcut, use the targetId that drive_get_file shows.")
		case "fileNotExportable":
			return service.Invalidf("Only Google documents can be converted. Use drive_download. Of a shortcut, use the targetId that drive_get_file shows.")
		case "exportSizeLimitExceeded":
			return service.Invalidf("The converted document is larger than the 10 MB that Google exports.")
		}
	}
	return err
}

// driveSource distinguishes read errors from write errors.
type driveSource struct {
	from io.Reader
	err  error
}

func (s *driveSource) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// driveBroken maps the error of a stream that ended early.
func driveBroken(err error) error {
	var long *http.MaxBytesError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &long):
		return service.Invalidf("The file is larger than the limit of %d bytes.", long.Limit)
	}
	return toolgroups.Errorf(service.CodeUnavailable, "The download broke off: %s. Try again later.", service.PlainLine(err.Error()))
}
