package toolgroups

import (
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Likeness says which calls of a tool that only reads are alike: those with the same value of one
// argument, whatever their other arguments.
type Likeness struct {
	// Argument is the name of that argument.
	Argument string
	// SameFolder says that the argument is the address of a page. The pages in one folder of a server are
	// alike, but not those in folders within it.
	SameFolder bool
}

// folderMark, in front of the name of an argument in a manifest, sets [Likeness.SameFolder].
const folderMark = "folder:"

// parseLike parses the value of like for a tool from the given source.
func parseLike(raw json.RawMessage, t Tool, source string) (*Likeness, error) {
	if raw == nil {
		return nil, nil
	}
	var schema struct{ Properties map[string]json.RawMessage }
	name, folder := strings.CutPrefix(trimmedString(raw), folderMark)
	_ = json.Unmarshal(t.Parameters, &schema) // a schema without properties has no parameter of that name
	switch _, known := schema.Properties[name]; {
	case source != SourceBuiltin:
		return nil, errors.New("like is only for tools of the program")
	case t.Effect != ReadOnly:
		return nil, errors.New("like is only for tools that are read_only")
	case !known:
		return nil, errors.New("like must name a parameter")
	}
	return &Likeness{Argument: name, SameFolder: folder}, nil
}

// Common returns what a call shares with the calls that are like it: the value of the argument, or the
// address of the folder. It returns false for a call that is like no other.
func (l Likeness) Common(arguments json.RawMessage) (string, bool) {
	var given map[string]json.RawMessage
	if json.Unmarshal(arguments, &given) != nil {
		return "", false
	}
	for name := range given {
		// A decoder that ignores case may take such an argument for this one.
		if name != l.Argument && strings.EqualFold(name, l.Argument) {
			return "", false
		}
	}
	var value string
	if json.Unmarshal(given[l.Argument], &value) != nil || value == "" {
		return "", false
	}
	if l.SameFolder {
		return FolderOf(value)
	}
	return value, true
}

// plainHost matches hosts in plain ASCII, without letters that look like others. plainPath matches
// paths that every server reads in the same way, because nothing in them is escaped.
var (
	plainHost = regexp.MustCompile(`^[a-z0-9.-]+$`)
	plainPath = regexp.MustCompile(`^(/[A-Za-z0-9._~+,=:@-]*)+$`)
)

// FolderOf returns the address of the folder of a page: scheme, host, port and the path up to its last
// slash. It returns false for addresses with a user, a query or a fragment, which could carry data, and
// for those that could be read in more than one way.
func FolderOf(page string) (string, bool) {
	u, err := url.Parse(page)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || strings.ContainsAny(page, "?#\\%") {
		return "", false
	}
	host := strings.ToLower(u.Hostname())
	if u.Path == "" {
		u.Path = "/"
	}
	folder := u.Path[:strings.LastIndex(u.Path, "/")+1]
	odd := func(name string) bool { return name == "." || name == ".." }
	if !plainHost.MatchString(host) || !plainPath.MatchString(u.Path) || slices.ContainsFunc(strings.Split(u.Path, "/"), odd) {
		return "", false
	}
	if port := u.Port(); port != "" {
		host = net.JoinHostPort(host, port)
	}
	return u.Scheme + "://" + host + folder, true
}
