package google

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxExport bounds an export, in bytes
// (developers.google.com/workspace/drive/api/reference/rest/v3/files/export).
const maxExport = 10 << 20

// drive emulates the files of an account.
type drive struct {
	*account
	files, permissions *store
	contents           map[string]rawResponse // by file id
	documents          *store                 // the editors' documents, for exports
}

func newDrive(o *account, documents *store) implementation {
	dr := &drive{o, newStore("id"), newStore("id"), map[string]rawResponse{}, documents}
	dr.seed()
	return implementation{map[string]handler{
		"drive.files.list":   dr.listFiles,
		"drive.files.get":    dr.getFile,
		"drive.files.copy":   dr.copyFile,
		"drive.files.export": dr.exportFile,
	}, map[string]collection{
		"drive.files": {store: dr.files, idParam: "fileId", listField: "files", idPrefix: "file", onCreate: dr.completeFile, onPatch: moveFile},
		"drive.permissions": {
			store: dr.permissions, idParam: "permissionId", parentParam: "fileId", parents: dr.files, listField: "permissions", idPrefix: "permission",
			onCreate: dr.completePermission,
		},
	}}
}

// completeFile fills in the fields of a new file that the server sets.
func (dr *drive) completeFile(c *call, d doc) {
	d["kind"], d["createdTime"], d["modifiedTime"] = "drive#file", dr.timestamp(), dr.timestamp()
	id := fmt.Sprint(d["id"])
	if d["parents"] == nil {
		d["parents"] = []any{"root"}
	}
	if c.upload {
		if d["mimeType"] == nil {
			d["mimeType"] = c.mediaType
		}
		sum := sha256.Sum256(c.media)
		dr.contents[id] = rawResponse{fmt.Sprint(d["mimeType"]), c.media}
		d["size"], d["sha256Checksum"] = fmt.Sprint(len(c.media)), hex.EncodeToString(sum[:])
	}
	if d["mimeType"] == nil {
		d["mimeType"] = "application/octet-stream"
	}
	d["webViewLink"] = "https://drive.google.com/file/d/" + id + "/view"
	d["trashed"] = false
	dr.own(d)
}

// own makes the account the owner of a file that nobody else sees
// (developers.google.com/workspace/drive/api/reference/rest/v3/files).
func (dr *drive) own(d doc) {
	d["owners"] = []any{doc{"kind": "drive#user", "displayName": "Ada", "emailAddress": dr.email, "me": true}}
	d["ownedByMe"], d["shared"] = true, false
}

func (dr *drive) completePermission(c *call, d doc) {
	if f, ok := dr.files.find("", c.vars["fileId"]); ok {
		f["shared"] = true
	}
	d["kind"] = "drive#permission"
	if d["displayName"] == nil {
		d["displayName"] = d["emailAddress"]
	}
}

// moveFile moves a file to other folders.
func moveFile(c *call, file doc) {
	parents := slices.DeleteFunc(slices.Clone(asList(file["parents"])), func(p any) bool {
		return slices.Contains(strings.Split(c.query.Get("removeParents"), ","), fmt.Sprint(p))
	})
	for p := range strings.SplitSeq(c.query.Get("addParents"), ",") {
		if p != "" {
			parents = append(parents, p)
		}
	}
	file["parents"] = parents
}

// clausePattern matches one condition of a search.
var clausePattern = regexp.MustCompile(`(?i)^\s*(?:(not)\s+)?(?:'((?:[^'\\]|\\.)*)'\s+in\s+(parents|owners|writers|readers)|(\w+)\s*(?:(=|!=|contains|>|<|>=|<=)\s*(?:'((?:[^'\\]|\\.)*)'|(true|false)))?)\s*`)

// operatorPattern matches the operator between two clauses.
var operatorPattern = regexp.MustCompile(`(?i)^(and|or)\s`)

// matchesQuery reports whether a file matches a search: clauses joined by "and" and "or", evaluated
// from left to right, with parentheses.
func matchesQuery(file doc, query string) (bool, *rejection) {
	ok, rest, rej := evalClauses(file, query, query)
	if rej == nil && strings.TrimSpace(rest) != "" {
		rej = invalidArgument("Invalid Value: q=%s", query)
	}
	return ok, rej
}

func evalClauses(file doc, rest, query string) (bool, string, *rejection) {
	result, either := true, false
	for first := true; ; first = false {
		ok, after, rej := evalTerm(file, strings.TrimLeft(rest, " "), query)
		if rej != nil {
			return false, "", rej
		}
		switch {
		case first:
			result = ok
		case either:
			result = result || ok
		default:
			result = result && ok
		}
		j := operatorPattern.FindString(after)
		if j == "" {
			return result, after, nil
		}
		either, rest = strings.EqualFold(strings.TrimSpace(j), "or"), after[len(j):]
	}
}

// evalTerm evaluates a clause, or clauses in parentheses.
func evalTerm(file doc, rest, query string) (bool, string, *rejection) {
	if strings.HasPrefix(rest, "(") {
		ok, after, rej := evalClauses(file, rest[1:], query)
		if rej == nil && !strings.HasPrefix(after, ")") {
			rej = invalidArgument("Invalid Value: q=%s", query)
		}
		if rej != nil {
			return false, "", rej
		}
		return ok, strings.TrimLeft(after[1:], " "), nil
	}
	m := clausePattern.FindStringSubmatch(rest)
	if m == nil || m[3] == "" && m[5] == "" && !strings.EqualFold(m[4], "sharedWithMe") {
		return false, "", invalidArgument("Invalid Value: q=%s", query)
	}
	return evalCondition(file, m), rest[len(m[0]):], nil
}

// evalCondition evaluates one clause.
func evalCondition(file doc, m []string) bool {
	negated, member, in, field, op := m[1] != "", unescape(m[2]), m[3], m[4], m[5]
	value := unescape(m[6]) + m[7]
	result := false
	switch {
	case in != "":
		result = slices.Contains(asList(file[in]), any(member))
	case strings.EqualFold(field, "sharedWithMe"):
		result = file["ownedByMe"] == false && (value == "" || value == "true")
	case field == "fullText":
		result = strings.Contains(strings.ToLower(fmt.Sprint(file["name"], file["description"])), strings.ToLower(value))
	default:
		got := ""
		if v := file[field]; v != nil {
			got = fmt.Sprint(v)
		}
		switch op {
		case "=":
			result = got == value
		case "!=":
			result = got != value
		case "contains":
			result = strings.Contains(strings.ToLower(got), strings.ToLower(value))
		case ">", ">=":
			result = got >= value
		case "<", "<=":
			result = got <= value
		}
	}
	return result != negated
}

func unescape(s string) string { return strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(s) }

func (dr *drive) listFiles(c *call) (any, *rejection) {
	var hits []doc
	for _, f := range dr.files.docs[""] {
		ok, rej := true, (*rejection)(nil)
		if q := c.query.Get("q"); q != "" {
			ok, rej = matchesQuery(f, q)
		}
		if rej != nil {
			return nil, rej
		}
		if ok && f["id"] != "root" {
			hits = append(hits, f)
		}
	}
	if c.query.Get("pageSize") == "" {
		c.query.Set("pageSize", "100")
	}
	return c.page("files", hits)
}

// getFile returns the metadata of a file, or its content.
func (dr *drive) getFile(c *call) (any, *rejection) {
	f, ok := dr.files.find("", c.vars["fileId"])
	if !ok {
		return nil, notFound("File not found: " + c.vars["fileId"])
	}
	if c.query.Get("alt") != "media" {
		return clone(f), nil
	}
	content, ok := dr.contents[c.vars["fileId"]]
	if !ok {
		return nil, &rejection{
			status: 403, reason: "fileNotDownloadable",
			message: "Only files with binary content can be downloaded. Use Export with Docs Editors files.",
		}
	}
	return content, nil
}

func (dr *drive) copyFile(c *call) (any, *rejection) {
	f, ok := dr.files.find("", c.vars["fileId"])
	if !ok {
		return nil, notFound("File not found: " + c.vars["fileId"])
	}
	d := clone(f)
	d["name"] = "Copy of " + fmt.Sprint(f["name"])
	merge(d, c.body)
	d["id"] = dr.newID("file")
	dr.own(d)
	dr.contents[fmt.Sprint(d["id"])] = dr.contents[c.vars["fileId"]]
	dr.files.add("", d)
	return clone(d), nil
}

// exportFile exports the text of a document, or a line with the name of any other file of the editors,
// as the requested type.
func (dr *drive) exportFile(c *call) (any, *rejection) {
	f, ok := dr.files.find("", c.vars["fileId"])
	if !ok {
		return nil, notFound("File not found: " + c.vars["fileId"])
	}
	if !strings.HasPrefix(fmt.Sprint(f["mimeType"]), "application/vnd.google-apps.") {
		return nil, &rejection{status: 403, reason: "fileNotExportable", message: "Export only supports Docs Editors files."}
	}
	text := fmt.Sprintf("Export of %v\n", f["name"])
	if d, ok := dr.documents.find("", c.vars["fileId"]); ok {
		text = documentText(d)
	}
	if len(text) > maxExport {
		return nil, &rejection{status: 403, reason: "exportSizeLimitExceeded", message: "This file is too large to be exported."}
	}
	return rawResponse{c.query.Get("mimeType"), []byte(text)}, nil
}
