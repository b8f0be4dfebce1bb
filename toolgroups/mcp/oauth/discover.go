package oauth

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"oneclaw/internal/guard"
)

// client is the bot's client at an authorization server.
type client struct {
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"`
	// Method is the authentication method at the token endpoint.
	Method string `json:"method,omitempty"`
}

// Authentication methods of a client (RFC 7591, section 2).
const (
	methodNone  = "none"
	methodPost  = "client_secret_post"
	methodBasic = "client_secret_basic"
)

func (c client) authStyle() oauth2.AuthStyle {
	if c.Method == methodBasic {
		return oauth2.AuthStyleInHeader
	}
	return oauth2.AuthStyleInParams
}

// registration is a client registered for a server, with its issuer and redirect address.
type registration struct {
	client
	Issuer   string    `json:"issuer"`
	Redirect string    `json:"redirect"`
	Expires  time.Time `json:"expires,omitzero"`
}

// serverMetadata is the metadata of a server and its authorization server.
type serverMetadata struct {
	resource string
	scopes   []string
	meta     *oauthex.AuthServerMeta
}

// probe is a request that a server answers only after a sign-in.
const probe = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// RequiresSignIn reports whether a server requires users to sign in.
func RequiresSignIn(ctx context.Context, s Server) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	_, wants, err := fetchChallenges(ctx, s)
	return wants, err
}

// SignIn describes the sign-in of a server.
type SignIn struct {
	// Issuer is the authorization server.
	Issuer string
	// TakesClients is set if the bot can become a client there without an operator.
	TakesClients bool
}

// Inspect finds out how users sign in to a server. It signs no user in and registers no client.
func Inspect(ctx context.Context, s Server) (SignIn, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	f, err := discover(ctx, s)
	if err != nil {
		return SignIn{}, err
	}
	return SignIn{Issuer: f.meta.Issuer, TakesClients: f.meta.RegistrationEndpoint != "" || f.meta.ClientIDMetadataDocumentSupported}, nil
}

// fetchChallenges returns a server's challenges for a request without a token.
func fetchChallenges(ctx context.Context, s Server) (said []oauthex.Challenge, wants bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(probe))
	if err != nil {
		return nil, false, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := s.HTTP.Do(req)
	if err != nil {
		return nil, false, unreachableError(s.Name, err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	if resp.StatusCode != http.StatusUnauthorized {
		return nil, false, nil
	}
	said, err = oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	if err != nil {
		return nil, true, nil // unreadable: fall back to the well-known addresses
	}
	return said, true, nil
}

// unreachableError returns the error for a server that cannot be reached, with a remedy.
func unreachableError(what string, err error) error {
	remedy := "try again later"
	if errors.Is(guard.Reason(err), guard.ErrAddress) {
		remedy = "an administrator allows others with `tools.allow_private` (ONECLAW_TOOLS_ALLOW_PRIVATE)"
	}
	return mistakef("%s cannot be reached: %s; %s", what, plainError(err), remedy)
}

// webAddress matches an address without a user, of the characters that addresses have (RFC 3986): answers and pages show
// it as a link of the bot's.
var webAddress = regexp.MustCompile(`^(?i:https?)://(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?(?:[/?][\w.~:/?@!$&'()*+,;=%-]*)?$`)

// discover finds the authorization server (RFC 9728, then RFC 8414 or OpenID Connect).
func discover(ctx context.Context, s Server) (serverMetadata, error) {
	said, wants, err := fetchChallenges(ctx, s)
	if err != nil {
		return serverMetadata{}, err
	}
	if !wants {
		return serverMetadata{}, mistakef("%s does not ask anybody to sign in, so there is nothing to connect", s.Name)
	}
	look := &metadataTransport{base: cmp.Or[http.RoundTripper](s.HTTP.Transport, http.DefaultTransport)}
	careful := *s.HTTP
	careful.Transport = look
	s.HTTP = &careful
	issuer, f, err := discoverResource(ctx, s, said, look)
	if err != nil {
		return serverMetadata{}, err
	}
	f.meta, err = auth.GetAuthServerMetadata(ctx, issuer, s.HTTP)
	if err == nil && f.meta == nil && !look.foundOrFailed && ctx.Err() == nil {
		// Version 2025-03-26 of the protocol uses these addresses if there is no metadata.
		f.meta = &oauthex.AuthServerMeta{
			Issuer: issuer, AuthorizationEndpoint: issuer + "/authorize", TokenEndpoint: issuer + "/token", RegistrationEndpoint: issuer + "/register",
			CodeChallengeMethodsSupported: []string{"S256"}, TokenEndpointAuthMethodsSupported: []string{methodNone, methodPost, methodBasic},
		}
	}
	switch {
	case err != nil:
		return serverMetadata{}, mistakef("the sign-in of %s cannot be trusted or reached: %s; nothing was connected", s.Name, plainError(err))
	case f.meta == nil:
		return serverMetadata{}, mistakef("the sign-in of %s at %s does not say how it works, so it cannot be used", s.Name, quote(issuer))
	case !slices.Contains(f.meta.CodeChallengeMethodsSupported, "S256"):
		return serverMetadata{}, mistakef("the sign-in of %s does not protect its codes (PKCE with S256), so it is not used", s.Name)
	case f.meta.AuthorizationEndpoint == "" || f.meta.TokenEndpoint == "":
		return serverMetadata{}, mistakef("the sign-in of %s at %s is not complete, so it cannot be used", s.Name, quote(issuer))
	case !webAddress.MatchString(f.meta.AuthorizationEndpoint) || !webAddress.MatchString(f.meta.TokenEndpoint):
		return serverMetadata{}, mistakef("the sign-in of %s at %s has addresses that are none, so it cannot be used", s.Name, quote(issuer))
	}
	return f, nil
}

const (
	// maxMetadata bounds a response in bytes, as in the library.
	maxMetadata = 1 << 20
	// maxDepth bounds the nesting of a response. The library's decoder has no such bound, and takes
	// kilobytes for each level.
	maxDepth = 50
)

// metadataTransport fetches metadata for the library, and records whether a request failed or was
// answered with a status other than 4xx.
type metadataTransport struct {
	base          http.RoundTripper
	foundOrFailed bool
	// resource is the address that metadata of a server is read for. The library wants it to the letter;
	// named is what the metadata says, which may be any address that covers it.
	resource, named string
}

// RoundTrip implements http.RoundTripper. It is not called concurrently.
func (l *metadataTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.base.RoundTrip(req)
	l.foundOrFailed = l.foundOrFailed || err != nil || resp.StatusCode < 400 || resp.StatusCode >= 500
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxMetadata))
	_ = resp.Body.Close()
	if err == nil {
		err = checkDepth(data)
	}
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(l.matchResource(data)))
	return resp, nil
}

// matchResource returns metadata of a server with the wanted address as its resource, if its own covers
// that.
func (l *metadataTransport) matchResource(data []byte) []byte {
	var fields map[string]json.RawMessage
	var named string
	if l.resource == "" || json.Unmarshal(data, &fields) != nil || json.Unmarshal(fields["resource"], &named) != nil || !covers(named, l.resource) {
		return data
	}
	wanted, err := json.Marshal(l.resource)
	if err != nil {
		return data
	}
	fields["resource"] = wanted
	changed, err := json.Marshal(fields)
	if err != nil {
		return data
	}
	l.named = named
	return changed
}

// covers reports whether a resource is the address of a server or is above it on the same origin, as the
// protocol's TypeScript library compares them: tokens for it are for the server too.
func covers(resource, address string) bool {
	a, errA := url.Parse(resource)
	b, errB := url.Parse(address)
	if errA != nil || errB != nil || !strings.EqualFold(a.Scheme, b.Scheme) || hostAndPort(a) != hostAndPort(b) || a.User != nil {
		return false
	}
	return strings.HasPrefix(strings.TrimRight(b.EscapedPath(), "/")+"/", strings.TrimRight(a.EscapedPath(), "/")+"/")
}

// hostAndPort returns the host of an address in lower case, with its port.
func hostAndPort(u *url.URL) string {
	port := cmp.Or(u.Port(), map[string]string{"https": "443", "http": "80"}[strings.ToLower(u.Scheme)])
	return strings.ToLower(u.Hostname()) + ":" + port
}

// checkDepth refuses JSON that is invalid or nested too deeply.
func checkDepth(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	for depth := 0; ; {
		token, err := dec.Token()
		switch delim, _ := token.(json.Delim); {
		case errors.Is(err, io.EOF) && depth == 0:
			return nil
		case err != nil:
			return errors.New("its description is no JSON")
		case delim == '[' || delim == '{':
			depth++
		case delim == ']' || delim == '}':
			depth--
		}
		if depth > maxDepth {
			return fmt.Errorf("its description is nested more than %d levels deep", maxDepth)
		}
	}
}

// discoverResource reads the metadata of a server. A server without metadata is its own authorization
// server, as in the first version of the specification.
func discoverResource(ctx context.Context, s Server, said []oauthex.Challenge, look *metadataTransport) (issuer string, f serverMetadata, err error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return "", serverMetadata{}, err
	}
	origin := (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
	f = serverMetadata{resource: s.URL, scopes: slices.Clone(s.Scopes)}
	type place struct{ metadata, resource string }
	places := []place{
		{origin + "/.well-known/oauth-protected-resource" + strings.TrimRight(u.EscapedPath(), "/"), s.URL},
		{origin + "/.well-known/oauth-protected-resource", origin},
	}
	var asked []string
	for _, c := range said {
		if named := c.Params["resource_metadata"]; named != "" {
			places = append([]place{{named, s.URL}}, places...)
		}
		if c.Scheme == "bearer" {
			asked = append(asked, strings.Fields(c.Params["scope"])...)
		}
	}
	var last error
	defer func() { look.resource = "" }()
	for _, p := range places {
		look.resource, look.named = p.resource, p.resource
		meta, err := oauthex.GetProtectedResourceMetadata(ctx, p.metadata, p.resource, s.HTTP)
		if err != nil {
			last = cmp.Or(last, err)
			continue
		}
		if len(meta.AuthorizationServers) == 0 {
			return "", serverMetadata{}, mistakef("%s names no place to sign in, so it cannot be connected", s.Name)
		}
		f.resource = look.named
		if len(f.scopes) == 0 {
			f.scopes = asked
		}
		if len(f.scopes) == 0 {
			f.scopes = meta.ScopesSupported
		}
		return meta.AuthorizationServers[0], f, nil
	}
	if ctx.Err() != nil {
		return "", serverMetadata{}, unreachableError("the sign-in of "+s.Name, last)
	}
	return origin, f, nil
}
