package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTheNewestVersionIsAsked(t *testing.T) {
	answer := ""
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		if agent := r.Header.Get("User-Agent"); agent != "oneclaw" || r.URL.RawQuery != "" || r.Method != http.MethodGet {
			t.Errorf("%s %s from %q", r.Method, r.URL, agent)
		}
		switch {
		case r.URL.Path == "/away":
			http.Redirect(w, r, "http://example.com/latest", http.StatusFound)
		case r.URL.Path == "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case answer == "":
			http.NotFound(w, r)
		default:
			_, _ = w.Write([]byte(answer))
		}
	}))
	defer server.Close()
	for text, want := range map[string]string{
		"v1.4.0\n":                        "v1.4.0",
		"1.4.0\nmore":                     "1.4.0",
		`{"tag_name":"v1.4.0","id":7}`:    "v1.4.0",
		`{"tag_name":"nightly"}`:          "returns no version",
		`{"tag_name":`:                    "not return a release",
		"<html>sign in</html>":            "returns no version",
		"\x1b[31mv1.0.0":                  "returns no version",
		strings.Repeat("v", 1<<20):        "returns no version",
		"":                                "404",
		"v1.4.0-rc.1":                     "v1.4.0-rc.1",
		"v1.4.0 <script>alert(1)</script": "returns no version",
	} {
		answer = text
		got, err := fetchNewestRelease(t.Context(), server.URL+"/latest")
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%.40q: %q, want %q", text, got, want)
		}
	}
	if _, err := fetchNewestRelease(t.Context(), server.URL+"/away"); !errors.Is(err, errReleaseAddress) {
		t.Errorf("sent away to http: %v", err)
	}
	if _, err := fetchNewestRelease(t.Context(), server.URL+"/round"); err == nil || strings.Contains(err.Error(), server.URL) {
		t.Errorf("sent round: %v", err)
	}
	before := requests
	for _, address := range []string{"", "ftp://example.com/x", "http://example.com/latest", "https://", "https://user:word@example.com/", "%%"} {
		if _, err := fetchNewestRelease(t.Context(), address); !errors.Is(err, errReleaseAddress) {
			t.Errorf("%q: %v", address, err)
		}
	}
	if requests != before {
		t.Error("a refused address was asked")
	}
}

func TestReleasesAreCompared(t *testing.T) {
	for pair, want := range map[[2]string]string{
		{"v1.2.3", "v1.10.0"}: "newest release is v1.10.0",
		{"1.10.0", "v1.10.0"}: "no release is newer",
		{"v2.0.0", "v1.10.0"}: "no release is newer",
		{"devel", "v1.10.0"}:  "which is none",
	} {
		if got := compareReleases(pair[0], pair[1]); !strings.Contains(got, want) {
			t.Errorf("%v: %q", pair, got)
		}
	}
}
