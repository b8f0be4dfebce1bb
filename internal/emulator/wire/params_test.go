package wire_test

import (
	"bytes"
	"errors"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oneclaw/internal/emulator/wire"
)

func read(t *testing.T, kind, body string, limit int64) (*wire.Params, error) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/?n=1&q=query", strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	return wire.ReadParams(httptest.NewRecorder(), r, limit)
}

func TestParamsFromEveryKindOfBody(t *testing.T) {
	var form bytes.Buffer
	mw := multipart.NewWriter(&form)
	for name, value := range map[string]string{"n": "42", "b": "True", "j": `{"k":[1]}`, "doc": "attach://x"} {
		if err := mw.WriteField(name, value); err != nil {
			t.Fatal(err)
		}
	}
	part, err := mw.CreateFormFile("x", "x.txt")
	if err == nil {
		_, err = part.Write([]byte("data"))
	}
	if err = errors.Join(err, mw.Close()); err != nil {
		t.Fatal(err)
	}
	for kind, body := range map[string]string{
		"application/json; charset=utf-8":   `{"n":42,"b":true,"j":{"k":[1]},"gone":null}`,
		"application/x-www-form-urlencoded": "n=+42&b=1&j=%7B%22k%22%3A%5B1%5D%7D",
		mw.FormDataContentType():            form.String(),
	} {
		p, err := read(t, kind, body, 1<<10)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		var j struct{ K []int }
		there, err := p.DecodeJSON("j", &j)
		if p.Int("n") != 42 || !p.Bool("b") || !there || err != nil || len(j.K) != 1 || p.Text("q") != "query" {
			t.Errorf("%s: n=%d b=%t j=%v %v q=%q", kind, p.Int("n"), p.Bool("b"), j, err, p.Text("q"))
		}
		if p.Int("q") != 0 || p.Bool("gone") || p.Text("gone") != "" {
			t.Errorf("%s: what is not there is there", kind)
		}
		up, ok := p.File("doc")
		if want := strings.HasPrefix(kind, "multipart/"); ok != want || ok && (up.Name != "x.txt" || string(up.Data) != "data") {
			t.Errorf("%s: file %v %+v", kind, ok, up)
		}
	}
}

func TestParamsRefuseBrokenAndLongBodies(t *testing.T) {
	if _, err := read(t, "application/json", `{"n":`, 1<<10); err == nil {
		t.Error("half an object was taken")
	}
	_, err := read(t, "application/json", `{"n":"`+strings.Repeat("x", 100)+`"}`, 50)
	if _, ok := errors.AsType[*http.MaxBytesError](err); !ok {
		t.Errorf("a long body: %v", err)
	}
}

// Libraries write the names of files in quotes, with escapes, or without quotes.
func TestNamesOfFilesAreReadInEveryForm(t *testing.T) {
	for written, want := range map[string]string{
		`"my report.txt"`: "my report.txt", `my report.txt`: "my report.txt", `Übersicht (neu)=1.txt; x=y`: "Übersicht (neu)=1.txt", `"a \"b\"; c.txt"; x=y`: `a "b"; c.txt`, `""`: "",
	} {
		body := "--b\r\nContent-Disposition: form-data; name=\"doc\"; filename=" + written + "\r\nContent-Type: text/plain\r\n\r\ndata\r\n--b--\r\n"
		p, err := read(t, "multipart/form-data; boundary=b", body, 1<<10)
		if err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		if up, ok := p.File("doc"); !ok || up.Name != want || string(up.Data) != "data" {
			t.Errorf("%s: %t %+v, want %q", written, ok, up, want)
		}
	}
}
