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
	// driveNativePrefix is the common prefix of the types of Google's own documents.
	driveNativePrefix = "application/vnd.google-apps."
)

func driveUpload(ctx context.Context, api *drive.Service, c *service.Conn, in driveArgs) (any, error) {
	kind := cmp.Or(strings.TrimSpace(in.MimeType), driveBinary)
	if _, _, err := mime.ParseMediaType(kind); err != nil || !strings.Contains(kind, "/") {
		return nil, service.Invalidf("'mime_type' must look like text/plain, not %q", in.MimeType)
	}
	data, base, err := c.ReadFile(in.FilePath)
	if err != nil {
		return nil, err
	}
	f := &drive.File{Name: in.Name, MimeType: kind, Parents: driveParents(in.ParentID)}
	if strings.HasPrefix(kind, driveNativePrefix) {
		// Google converts the file from its own type.
		kind = cmp.Or(mime.TypeByExtension(filepath.Ext(base)), driveBinary)
	}
	// One multipart/related request, which can be repeated as a whole.
	return api.Files.Create(f).Context(ctx).SupportsAllDrives(true).Fields(driveFields).
		Media(bytes.NewReader(data), googleapi.ChunkSize(0), googleapi.ContentType(kind)).Do()
}

// driveDownloadResult is the result of a download.
type driveDownloadResult struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

func driveDownload(ctx context.Context, api *drive.Service, c *service.Conn, in driveArgs) (any, error) {
	return driveFetch(ctx, c, in.SavePath, api.Files.Get(in.FileID).Context(ctx).SupportsAllDrives(true).Download)
}

func driveExport(ctx context.Context, api *drive.Service, c *service.Conn, in driveArgs) (any, error) {
	return driveFetch(ctx, c, in.SavePath, api.Files.Export(in.FileID, in.MimeType).Context(ctx).Download)
}

// driveFetch streams a response into a file, whose path is checked first.
func driveFetch(ctx context.Context, c *service.Conn, path string, download func(...googleapi.CallOption) (*http.Response, error)) (any, error) {
	var saved driveDownloadResult
	err := files.WithWorkspace(c.Scope, func(root *workspace.Root) error {
		rel, err := root.PrepareFile(path)
		if err != nil {
			return service.FileError(path, err)
		}
		resp, err := download()
		if err != nil {
			return driveDownloadError(err)
		}
		defer func() { _ = resp.Body.Close() }()
		source := &driveErrorReader{from: toolgroups.ReportingReader(ctx, resp.Body, resp.ContentLength)}
		saved.Size, err = root.WriteFrom(rel, source)
		saved.Path = filepath.ToSlash(rel)
		switch {
		case source.err != nil:
			return driveStreamError(source.err)
		case err != nil:
			return service.FileError(path, err)
		}
		return nil
	})
	if err != nil || saved.Size > service.MaxFile { // more than a chat accepts
		return saved, err
	}
	return c.Deliver(saved, saved.Path)
}

// driveDownloadError explains refusals that look like missing permissions but are not
// (developers.google.com/workspace/drive/api/guides/handle-errors).
func driveDownloadError(err error) error {
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

// driveErrorReader records read errors, to distinguish them from write errors.
type driveErrorReader struct {
	from io.Reader
	err  error
}

func (s *driveErrorReader) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// driveStreamError maps the error of a stream that ended early.
func driveStreamError(err error) error {
	var long *http.MaxBytesError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &long):
		return service.Invalidf("The file is larger than the limit of %d bytes.", long.Limit)
	}
	return toolgroups.Errorf(service.CodeUnavailable, "The download broke off: %s. Try again later.", service.PlainLine(err.Error()))
}
