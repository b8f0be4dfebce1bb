package record_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneclaw/internal/record"
	"oneclaw/internal/redact"
)

const secret = "correct-horse-battery-9"

// recorder keeps lines in memory, and knows one secret.
func recorder() (*record.Recorder, *[]record.Line) {
	var lines []record.Line
	return &record.Recorder{
		OnLine: func(l record.Line) { lines = append(lines, l) }, Redact: redact.New(secret).Text,
		Now: func() time.Time { return time.Unix(1_800_000_000, 0).UTC() },
	}, &lines
}

// exchange makes one request, whose answer is of a type.
func exchange(t *testing.T, r *record.Recorder, path, kind, body, answerKind, answer string) string {
	t.Helper()
	var got []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		got, _ = io.ReadAll(req.Body)
		w.Header().Set("Content-Type", answerKind)
		_, _ = io.WriteString(w, answer)
	}))
	defer s.Close()
	client := &http.Client{Transport: r.Tap("slack").Transport(&http.Transport{})}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := io.ReadAll(resp.Body)
	if err != nil || string(seen) != answer || string(got) != body {
		t.Fatalf("%v: sent %q, came back %q", err, got, seen)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return s.URL
}

func TestExchangesAreKeptWithoutSecrets(t *testing.T) {
	r, lines := recorder()
	base := exchange(t, r, "/bot"+secret+"/x?ticket=abc&n=1", "application/json", `{"a": "`+secret+`", "token":"xyz", "response_url":"https://hooks.slack.com/commands/T/1/zzz"}`,
		"application/x-www-form-urlencoded", "token=abc&text=hi+"+secret)
	l := (*lines)[0]
	want := record.Line{
		Time: time.Unix(1_800_000_000, 0).UTC(), EndedAt: time.Unix(1_800_000_000, 0).UTC(), Direction: record.Call, Service: "slack", Method: "POST", URL: base + "/bot••••/x?ticket=••••&n=1", Status: 200,
		MediaType: "application/x-www-form-urlencoded", Request: json.RawMessage(`{"a":"••••","token":"••••","response_url":"••••"}`),
		Response: json.RawMessage(`{"text":"hi ••••","token":"••••"}`),
	}
	if fmt.Sprintf("%+v", l) != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %s %s %+v\nwant %s %s %+v", l.Request, l.Response, l, want.Request, want.Response, want)
	}
}

func TestBodiesAreKeptAsTheyCanBeRead(t *testing.T) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	_ = w.WriteField("caption", "look: "+secret)
	file, _ := w.CreateFormFile("document", "a.bin")
	_, _ = file.Write([]byte("the file"))
	_ = w.Close()
	pieces := "data: {\"delta\":{\"content\":\"it is correct-horse\"}}\n\ndata: {\"delta\":{\"content\":\"-battery-9\"}}\n\ndata: [DONE]\n\n"
	for name, tt := range map[string]struct{ kind, body, want string }{
		"nothing":                 {"text/plain", "", ""},
		"a text":                  {"text/plain", "two\nlines", `"two\nlines"`},
		"a form with a file":      {w.FormDataContentType(), form.String(), `{"caption":"look: ••••","document":"[file a.bin]"}`},
		"a picture":               {"image/png", "\x89PNG", `"[4 bytes of image/png]"`},
		"half a JSON":             {"application/json", `{"a": 1`, `"{\"a\": 1"`},
		"a stream":                {"text/event-stream", "data: {}\n\n", `"data: {}\n\n"`},
		"a secret in its pieces":  {"text/event-stream", pieces, `"[left out: a secret goes through its pieces]"`},
		"more than is kept":       {"text/plain", strings.Repeat("x", 2<<20), `"` + strings.Repeat("x", 1<<20) + `[cut off]"`},
		"more JSON than is kept":  {"application/json", `{"a":"` + strings.Repeat("x", 2<<20) + `"}`, `"{\"a\":\"` + strings.Repeat("x", 1<<20-6) + `[cut off]"`},
		"a page instead of JSON":  {"application/json", "<html>", `"\u003chtml\u003e"`},
		"what is no text at all":  {"text/plain", "\xff\xfe", `"�"`},
		"an address in some text": {"text/plain", "see https://hooks.slack.com/actions/T0/1/abc.", `"see https://hooks.slack.com/actions/••••"`},
	} {
		r, lines := recorder()
		exchange(t, r, "/", tt.kind, tt.body, tt.kind, tt.body)
		if l := (*lines)[0]; string(l.Request) != tt.want || string(l.Response) != tt.want && tt.kind != w.FormDataContentType() {
			t.Errorf("%s: request %.200s, response %.200s, want %.200s", name, l.Request, l.Response, tt.want)
		}
	}
}

func TestFramesOfSocketsAreKept(t *testing.T) {
	r, lines := recorder()
	r.Tap("slack").Frame(false, []byte(`{"type":"hello", "x":"`+secret+`"}`))
	r.Tap("slack").Frame(true, []byte(`{"envelope_id":"1"}`))
	in, out := (*lines)[0], (*lines)[1]
	if in.Direction != record.In || string(in.Response) != `{"type":"hello","x":"••••"}` || out.Direction != record.Out || string(out.Request) != `{"envelope_id":"1"}` {
		t.Errorf("got %+v", *lines)
	}
}

func TestARecordingIsBounded(t *testing.T) {
	path, log := filepath.Join(t.TempDir(), "r.jsonl"), &bytes.Buffer{}
	f, err := record.Create(path, 2000, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		f.Append(record.Line{Direction: record.Call, URL: "https://example.com/" + strings.Repeat("x", 100)})
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > 2000 || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %+v", err, info)
	}
	data, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = data.Close() }()
	lines, err := record.Read(data)
	last := lines[len(lines)-1]
	if err != nil || len(lines) < 5 || last.Direction != record.End || !strings.Contains(last.Error, "full") || strings.Count(log.String(), "full") != 1 {
		t.Errorf("%v, %d lines, the last %+v, the log says %s", err, len(lines), last, log)
	}
	if _, err := record.Create(path, 2000, nil); err == nil || !strings.Contains(err.Error(), "new file") {
		t.Errorf("over a file that is there: %v", err)
	}
}

func TestReadTellsWhatIsNoRecording(t *testing.T) {
	whole := `{"direction":"in"}` + "\n"
	for text, want := range map[string]string{
		"": "not a recording", "x\n": "not a recording", "x\n" + whole: "not a recording", whole + "{\n" + whole: "line 2", whole: "", whole + `{"dir`: "",
	} {
		lines, err := record.Read(strings.NewReader(text))
		if want == "" && (err != nil || len(lines) != 1) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %d lines, %v", text, len(lines), err)
		}
	}
}
