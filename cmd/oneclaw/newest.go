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
	// releaseTimeout bounds the request for the newest release.
	releaseTimeout = 10 * time.Second
	// maxReleaseBytes bounds the response.
	maxReleaseBytes = 256 << 10
	// maxRedirects bounds how many redirects are followed.
	maxRedirects = 3
)

// errReleaseAddress is returned for an address of releases that is invalid or not secure.
var errReleaseAddress = errors.New("the address of releases must begin with https://")

// checkReleaseAddress refuses an address of releases without TLS, unless the server is on this machine,
// and an address with a user name.
func checkReleaseAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return errReleaseAddress
	}
	return checkReleaseURL(u)
}

func checkReleaseURL(u *url.URL) error {
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return errReleaseAddress
}

// fetchNewestRelease sends one request, which contains nothing about this program's version, and returns
// the version in the response: the first line of a text, or "tag_name" of an object, which is the format
// of GitHub, GitLab, Gitea and Forgejo.
func fetchNewestRelease(ctx context.Context, address string) (string, error) {
	if err := checkReleaseAddress(address); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", errReleaseAddress
	}
	request.Header.Set("User-Agent", "oneclaw")
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return errors.New("too many redirects")
		}
		return checkReleaseURL(r.URL)
	}}
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("fetch the newest version: %w", withoutAddress(err))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the address of releases returns the status %s", response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxReleaseBytes))
	if err != nil {
		return "", fmt.Errorf("fetch the newest version: %w", err)
	}
	return parseRelease(data)
}

// withoutAddress removes the URL from an error, because a URL may contain a token.
func withoutAddress(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

func parseRelease(data []byte) (string, error) {
	text := strings.TrimSpace(string(data))
	if bytes.HasPrefix(data, []byte("{")) {
		var release struct {
			TagName string `json:"tag_name"`
		}
		if err := json.Unmarshal(data, &release); err != nil {
			return "", fmt.Errorf("the address of releases does not return a release: %w", err)
		}
		text = release.TagName
	}
	line, _, _ := strings.Cut(text, "\n")
	line = strings.TrimSpace(line)
	if !semver.IsValid(withV(line)) {
		return "", errors.New("the address of releases returns no version such as v1.2.3")
	}
	return line, nil
}

// withV returns the version with a leading v.
func withV(version string) string { return "v" + strings.TrimPrefix(version, "v") }

// compareReleases describes how the running version compares with the newest one.
func compareReleases(runs, newest string) string {
	switch {
	case !semver.IsValid(withV(runs)):
		return fmt.Sprintf("The newest release is %s; this is %s, which is none.", newest, runs)
	case semver.Compare(withV(runs), withV(newest)) < 0:
		return fmt.Sprintf("The newest release is %s; this is %s.", newest, runs)
	}
	return fmt.Sprintf("This is %s, and no release is newer (%s).", runs, newest)
}
