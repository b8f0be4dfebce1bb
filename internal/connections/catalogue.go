package connections

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups/mcp"
)

//go:embed catalogue.yaml
var builtin []byte

// NoCatalogue is the value of the setting mcp.catalogue for no catalogue.
const NoCatalogue = "off"

// Bounds of a catalogue: its size in bytes, its servers, and the characters of a title and a purpose.
const (
	maxCatalogue = 256 << 10
	maxEntries   = 40
	maxTitle     = 24
	maxPurpose   = 80
)

// Ways in which the bot becomes a client of an authorization server.
const (
	ClientRegisters = "registers"
	ClientByHand    = "by hand"
)

// Catalogue has remote MCP servers that administrators can switch on.
type Catalogue struct {
	// LookedUp is when the facts were looked up.
	LookedUp time.Time `yaml:"looked_up"`
	Servers  []Entry   `yaml:"servers"`
}

// Entry is a server of a [Catalogue].
type Entry struct {
	Name, Title, URL string
	// Purpose is the group's line in the prompt.
	Purpose string
	// Client is ClientRegisters or ClientByHand. Guide says where to make a client by hand.
	Client string
	Guide  string
	// Issuer is the only authorization server at which people sign in. Empty means the one that the
	// server names.
	Issuer string
	// Source says where these facts are from.
	Source string
}

// Addresses returns the addresses of the servers and of their sign-ins.
func (c Catalogue) Addresses() (all []string) {
	for _, e := range c.Servers {
		all = append(all, e.URL, e.Issuer)
	}
	return all
}

// ReadCatalogue reads the catalogue in a file. It returns the built-in one if path is empty, and an
// empty one if path is [NoCatalogue].
func ReadCatalogue(path string) (Catalogue, error) {
	switch path {
	case NoCatalogue:
		return Catalogue{}, nil
	case "":
		return parseCatalogue(builtin)
	}
	f, err := os.Open(path)
	if err != nil {
		return Catalogue{}, fmt.Errorf("connections: the catalogue (mcp.catalogue): %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxCatalogue+1))
	if err == nil && len(data) > maxCatalogue {
		err = fmt.Errorf("it has more than %d bytes", maxCatalogue)
	}
	if err != nil {
		return Catalogue{}, fmt.Errorf("connections: the catalogue %s (mcp.catalogue): %w", path, err)
	}
	c, err := parseCatalogue(data)
	if err != nil {
		return c, fmt.Errorf("connections: the catalogue %s (mcp.catalogue): %w", path, err)
	}
	return c, nil
}

// parseCatalogue parses a catalogue, and checks each entry.
func parseCatalogue(data []byte) (c Catalogue, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&c); err != nil {
		return c, err
	}
	if len(c.Servers) > maxEntries {
		return c, fmt.Errorf("it has more than %d servers", maxEntries)
	}
	var errs []error
	if c.LookedUp.IsZero() {
		errs = append(errs, errors.New("looked_up: say when the facts were looked up, such as 2026-11-26"))
	}
	for i, e := range c.Servers {
		for _, fault := range e.faults() {
			errs = append(errs, fmt.Errorf("server %q: %w", e.Name, fault))
		}
		if slices.ContainsFunc(c.Servers[:i], func(o Entry) bool { return strings.EqualFold(o.Name, e.Name) }) {
			errs = append(errs, fmt.Errorf("server %q: it is there twice", e.Name))
		}
	}
	return c, errors.Join(errs...)
}

// faults returns the mistakes of an entry, each beginning with the field.
func (e Entry) faults() (errs []error) {
	wrong := func(ok bool, fault string) {
		if !ok {
			errs = append(errs, errors.New(fault))
		}
	}
	if err := (mcp.Config{Servers: map[string]mcp.Server{e.Name: e.added().server()}}).Validate(); err != nil {
		errs = append(errs, err)
	}
	wrong(e.Name == strings.ToLower(e.Name), "name: it has capital letters")
	wrong(e.Title != "" && wording.OneLine(e.Title, maxTitle) == e.Title, fmt.Sprintf("title: want one line of 1 to %d characters", maxTitle))
	wrong(e.Purpose != "" && wording.OneLine(e.Purpose, maxPurpose) == e.Purpose, fmt.Sprintf("purpose: want one line of 1 to %d characters", maxPurpose))
	wrong(e.Client == ClientRegisters || e.Client == ClientByHand, fmt.Sprintf("client: want %q or %q", ClientRegisters, ClientByHand))
	wrong(isAddress(e.Guide) || e.Guide == "" && e.Client == ClientRegisters, "guide: want the address of the page that says how a client is made")
	wrong(e.Issuer == "" || isAddress(e.Issuer), "issuer: want an address")
	wrong(isAddress(e.Source), "source: want the address of the page with these facts")
	return errs
}

// isAddress reports whether a text is an address on the web.
func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http")
}

// added returns the server as it is added when an administrator switches it on.
func (e Entry) added() addedServer {
	one := addedServer{URL: e.URL, Trust: mcp.TrustNone, Description: e.Purpose}
	if e.Issuer != "" && e.Client == ClientRegisters {
		one.Auth, one.Issuer = mcp.AuthOAuth, e.Issuer
	}
	return one
}
