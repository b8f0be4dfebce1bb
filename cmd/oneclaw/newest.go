package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

const (
	// releasePatience bounds the request.
	releasePatience = 10 * time.Second
	// maxAnswer bounds the response, in bytes.
	maxAnswer = 256 << 10
	// maxRedirects bounds the redirects.
	maxRedirects = 3
)

// errReleases is returned for an address that may not be used.
var errReleases = errors.New("the address of releases has to begin with https://")

// checkReleases refuses an address that may not be used: the server has to authenticate itself,
// unless it is on this machine.
func checkReleases(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return errReleases
	}
	return mayAsk(u)
}

func mayAsk(u *url.URL) error {
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return errReleases
}

// newestRelease makes one request, which tells nothing of the program, and returns the version in the
// answer: the first line of a text, or "tag_name" of an object, as GitHub, GitLab, Gitea and
// Forgejo describe a release.
func newestRelease(ctx context.Context, address string) (string, error) {
	if err := checkReleases(address); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, releasePatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", errReleases
	}
	request.Header.Set("User-Agent", "oneclaw")
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return errors.New("it sends on too often")
		}
		return mayAsk(r.URL)
	}}
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("ask for the newest version: %w", withoutAddress(err))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the address of releases answers %s", response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return "", fmt.Errorf("ask for the newest version: %w", err)
	}
	return versionIn(data)
}

// withoutAddress removes the address from an error: it may contain a token.
func withoutAddress(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

func versionIn(data []byte) (string, error) {
	text := strings.TrimSpace(string(data))
	if bytes.HasPrefix(data, []byte("{")) {
		var release struct {
			Tag string `json:"tag_name"`
		}
		if err := json.Unmarshal(data, &release); err != nil {
			return "", fmt.Errorf("the address of releases answers what is no release: %w", err)
		}
		text = release.Tag
	}
	line, _, _ := strings.Cut(text, "\n")
	line = strings.TrimSpace(line)
	if !semver.IsValid(canonical(line)) {
		return "", errors.New("the address of releases names no version such as v1.2.3")
	}
	return line, nil
}

// canonical adds a missing v.
func canonical(version string) string { return "v" + strings.TrimPrefix(version, "v") }

// compareReleases compares the running version with the newest one.
func compareReleases(runs, newest string) string {
	switch {
	case !semver.IsValid(canonical(runs)):
		return fmt.Sprintf("The newest release is %s; this is %s, which is none.", newest, runs)
	case semver.Compare(canonical(runs), canonical(newest)) < 0:
		return fmt.Sprintf("The newest release is %s; this is %s.", newest, runs)
	}
	return fmt.Sprintf("This is %s, and no release is newer (%s).", runs, newest)
}
