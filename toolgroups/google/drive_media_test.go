package google

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/googleapi"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
)

// tripper is a transport that is a function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answering has every request below the retries answered by fn.
func (d *driveHarness) answering(fn tripper) {
	d.g.base = &retryTransport{base: &hostRewriter{base: fn}, pause: 1, now: d.g.cfg.Now}
}

func httpAnswer(status int, body io.Reader) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body), ContentLength: -1, ProtoMajor: 1, ProtoMinor: 1}
}

// uploadPart is one part of an upload.
type uploadPart struct{ Type, Body string }

func uploadParts(t *testing.T, contentType string, body io.Reader) []uploadPart {
	t.Helper()
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "multipart/related" {
		t.Fatalf("upload of type %q, %v; want multipart/related", contentType, err)
	}
	var out []uploadPart
	for r := multipart.NewReader(body, params["boundary"]); ; {
		p, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, uploadPart{p.Header.Get("Content-Type"), strings.TrimSpace(string(data))})
	}
}

func TestDriveUpload(t *testing.T) {
	t.Parallel()
	// More than the client library would send as one chunk.
	big := strings.Repeat("0123456789abcde\n", googleapi.DefaultUploadChunkSize/16) + "end"
	for _, tc := range []struct {
		name, args, meta, kind, body string
	}{
		{
			"without a type", `{"file_path":"in/a.bin","name":"A"}`,
			`{"mimeType":"application/octet-stream","name":"A"}`, "application/octet-stream", "\x00\x01x",
		},
		{
			"into a folder", `{"file_path":"big.txt","name":"B","mime_type":"text/plain","parent_id":"p1"}`,
			`{"mimeType":"text/plain","name":"B","parents":["p1"]}`, "text/plain", big,
		},
		{
			"converted", `{"file_path":"t.html","name":"C","mime_type":"application/vnd.google-apps.document"}`,
			`{"mimeType":"application/vnd.google-apps.document","name":"C"}`, "text/html; charset=utf-8", "<p>x</p>",
		},
		{
			"empty", `{"file_path":"empty","name":"D"}`,
			`{"mimeType":"application/octet-stream","name":"D"}`, "application/octet-stream", "",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDesk(t)
			d.put(t, "in/a.bin", []byte("\x00\x01x"))
			d.put(t, "big.txt", []byte(big))
			d.put(t, "t.html", []byte("<p>x</p>"))
			d.put(t, "empty", nil)
			tries := 0
			d.answering(func(r *http.Request) (*http.Response, error) {
				tries++
				got := uploadParts(t, r.Header.Get("Content-Type"), r.Body)
				want := []uploadPart{{"application/json", tc.meta}, {tc.kind, tc.body}}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("parts (-want +got):\n%s", diff)
				}
				if got := r.Method + " " + r.URL.Path + " " + r.URL.Query().Get("uploadType"); got != "POST /upload/drive/v3/files multipart" {
					t.Errorf("sent to %s", got)
				}
				if tries == 1 {
					return httpAnswer(http.StatusTooManyRequests, strings.NewReader("{}")), nil
				}
				return httpAnswer(http.StatusOK, strings.NewReader(driveOne)), nil
			})
			res, fault := d.run(t.Context(), "drive_upload", tc.args)
			if fault != nil || tries != 2 {
				t.Fatalf("after %d tries: %+v; want success at the second", tries, fault)
			}
			sameJSON(t, driveOne, res.Text)
		})
	}
}

func TestUploadsStayInTheWorkspace(t *testing.T) {
	d := newDesk(t)
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(d.dir, "link")); err != nil {
		t.Fatal(err)
	}
	d.put(t, "a", []byte("x"))
	for args, want := range map[string]string{
		fmt.Sprintf(`{"file_path":%q,"name":"x"}`, outside): "permission_denied",
		`{"file_path":"../x","name":"x"}`:                   "permission_denied",
		`{"file_path":"link","name":"x"}`:                   "permission_denied",
		`{"file_path":"none","name":"x"}`:                   "file_not_found",
		`{"file_path":"","name":"x"}`:                       "validation_error",
		`{"file_path":".","name":"x"}`:                      "validation_error",
		`{"file_path":"a","name":" "}`:                      "validation_error",
		`{"file_path":"a","name":"x","mime_type":"text"}`:   "validation_error",
	} {
		_, fault := d.run(t.Context(), "drive_upload", args)
		if codeOf(fault) != want {
			t.Errorf("%s: %+v, want %s", args, fault, want)
		}
	}
	if got := d.take(); len(got) > 0 {
		t.Errorf("something was sent: %q", got)
	}
}

func TestLargeDownloads(t *testing.T) {
	d := newDesk(t)
	data := bytes.Repeat([]byte("x0123456789"), 30_000)
	d.put(t, "old.bin", []byte("old"))
	export := wantRequest("GET", "/drive/v3/files/f1/export", "", "mimeType", "application/pdf")
	for _, tc := range []struct{ name, tool, args, request, path string }{
		{
			"new, in new folders", "drive_download", `{"file_id":"f1","save_path":"down/2026/a.bin"}`,
			"GET /drive/v3/files/f1?alt=media&prettyPrint=false&supportsAllDrives=true", "down/2026/a.bin",
		},
		{
			"over an old one, absolute", "drive_download", fmt.Sprintf(`{"file_id":"f1","save_path":%q}`, filepath.Join(d.dir, "old.bin")),
			"GET /drive/v3/files/f1?alt=media&prettyPrint=false&supportsAllDrives=true", "old.bin",
		},
		{
			"converted", "drive_export", `{"file_id":"f1","mime_type":"application/pdf","save_path":"./x/../a.pdf"}`,
			strings.Replace(export, "alt=json", "alt=media", 1), "a.pdf",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d.reply("GET /drive/v3/files/f1", string(data))
			d.reply("GET /drive/v3/files/f1/export", string(data))
			d.take()
			res, fault := d.run(t.Context(), tc.tool, tc.args)
			if fault != nil {
				t.Fatal(fault)
			}
			if diff := cmp.Diff([]string{tc.request}, d.take()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			sameJSON(t, fmt.Sprintf(`{"path":%q,"size":%d}`, tc.path, len(data)), res.Text)
			if diff := cmp.Diff([]toolgroups.File{{Path: tc.path, Caption: filepath.Base(tc.path)}}, res.Files); diff != "" {
				t.Errorf("files for the chat (-want +got):\n%s", diff)
			}
			got, err := os.ReadFile(filepath.Join(d.dir, tc.path))
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("file of %d bytes, %v; want %d", len(got), err, len(data))
			}
			noRemains(t, d.dir)
		})
	}
}

// noRemains looks for files that were begun and not finished.
func noRemains(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, ".download-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("remains: %q, %v", left, err)
	}
}

func TestDriveDownloadIsConfined(t *testing.T) {
	d := newDesk(t)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(d.dir, "out")); err != nil {
		t.Fatal(err)
	}
	d.put(t, "file", nil)
	d.reply("GET /drive/v3/files/f1", "data")
	for path, want := range map[string]string{
		filepath.Join(outside, "x"): "permission_denied",
		"../x":                      "permission_denied",
		"out/x":                     "permission_denied",
		"out/new/x":                 "permission_denied",
		"":                          "validation_error",
		".":                         "validation_error",
		"file/x":                    "validation_error",
	} {
		_, fault := d.run(t.Context(), "drive_download", fmt.Sprintf(`{"file_id":"f1","save_path":%q}`, path))
		if codeOf(fault) != want {
			t.Errorf("%q: %+v, want %s", path, fault, want)
		}
	}
	if got := d.take(); len(got) > 0 {
		t.Errorf("something was asked for: %q", got)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("outside now lies %v, %v", left, err)
	}
}

func TestDownloadsKeepToTheQuota(t *testing.T) {
	d := newDesk(t)
	d.reply("GET /drive/v3/files/f1", strings.Repeat("x", 2<<20))
	scope := toolgroups.Scope{User: testUser, Owner: testUser, Direct: true, Workspace: d.dir, Quota: 1 << 20, Reserve: 1}
	_, fault := d.runAs(t.Context(), scope, "drive_download", `{"file_id":"f1","save_path":"a"}`)
	if fault == nil || !strings.Contains(fault.Message, "the workspace is full") {
		t.Errorf("%+v", fault)
	}
	if left, err := os.ReadDir(d.dir); err != nil || len(left) > 0 {
		t.Errorf("a refused download leaves %v, %v", left, err)
	}
}

// brokenStream is a stream that ends with an error.
type brokenStream struct{ err error }

func (b brokenStream) Read([]byte) (int, error) { return 0, b.err }

func TestDriveDownloadThatBreaks(t *testing.T) {
	for _, tc := range []struct {
		name string
		body io.Reader
		code string
	}{
		{"connection lost", brokenStream{io.ErrUnexpectedEOF}, service.CodeUnavailable},
		{"too long", brokenStream{&http.MaxBytesError{Limit: 5}}, "validation_error"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDesk(t)
			d.put(t, "a", []byte("old"))
			d.answering(func(*http.Request) (*http.Response, error) {
				return httpAnswer(http.StatusOK, io.MultiReader(strings.NewReader("new"), tc.body)), nil
			})
			_, fault := d.run(t.Context(), "drive_download", `{"file_id":"f1","save_path":"a"}`)
			if codeOf(fault) != tc.code {
				t.Errorf("%+v, want %s", fault, tc.code)
			}
			if got, err := os.ReadFile(filepath.Join(d.dir, "a")); err != nil || string(got) != "old" {
				t.Errorf("the file holds %q, %v; want what it held", got, err)
			}
			noRemains(t, d.dir)
		})
	}
}

func TestDriveDownloadAdvice(t *testing.T) {
	d := newDesk(t)
	for _, tc := range []struct{ tool, args, reason, code, advice string }{
		{"drive_download", `{"file_id":"f1","save_path":"a"}`, "fileNotDownloadable", "validation_error", "drive_export"},
		{"drive_download", `{"file_id":"f1","save_path":"a"}`, "fileNotDownloadable", "validation_error", "targetId"},
		{"drive_export", `{"file_id":"f1","mime_type":"a/b","save_path":"a"}`, "fileNotExportable", "validation_error", "drive_download"},
		{"drive_export", `{"file_id":"f1","mime_type":"a/b","save_path":"a"}`, "fileNotExportable", "validation_error", "targetId"},
		{"drive_export", `{"file_id":"f1","mime_type":"a/b","save_path":"a"}`, "exportSizeLimitExceeded", "validation_error", "10 MB"},
		{"drive_download", `{"file_id":"f1","save_path":"a"}`, "cannotDownloadFile", "permission_denied", "refused"},
		{"drive_export", `{"file_id":"f1","mime_type":" ","save_path":"a"}`, "", "validation_error", "mime_type"},
	} {
		refusal := fmt.Sprintf(`403{"error":{"code":403,"message":"No.","errors":[{"reason":%q}]}}`, tc.reason)
		d.reply("GET /drive/v3/files/f1", refusal)
		d.reply("GET /drive/v3/files/f1/export", refusal)
		_, fault := d.run(t.Context(), tc.tool, tc.args)
		if codeOf(fault) != tc.code || !strings.Contains(fault.Message, tc.advice) {
			t.Errorf("%s: %+v, want %s with %q", tc.reason, fault, tc.code, tc.advice)
		}
		noRemains(t, d.dir)
	}
}
