package jstools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// maxShownDescription bounds the description of a tool on a card, in characters.
const maxShownDescription = 500

// describeChange says what a call of update_js_tool leaves behind: also the code and the permissions that it does not
// name, because the press that gives code more rights stands for that code.
func (t *Tools) describeChange(ctx context.Context, call toolgroups.Call) (string, error) {
	in, f, err := t.findChangeable(ctx, call, codeUpdate)
	if err != nil {
		return "", err
	}
	t.writeMu.Lock()
	manifest, source, code, err := t.changedFiles(f.baseName, in)
	t.writeMu.Unlock()
	if err != nil {
		return "", err
	}
	entries, _ := parseEntries(manifest)
	if len(entries) != 1 {
		return "", toolgroups.Errorf(codeUpdate, "%s.json cannot be read. Delete the tool and create it anew.", f.baseName)
	}
	spec, err := newScriptSpec(entries[0], false, source)
	if err != nil {
		return "", toolgroups.Errorf(codeUpdate, "The tool cannot be used like that: %v.", err)
	}
	rights := spec.env
	if spec.usesGoogle {
		rights = append(rights, "the Google account of whoever uses it")
	}
	if len(rights) == 0 {
		rights = []string{"no variable and no account"}
	}
	text := describeTool(manifest) + "\nIt gets: " + strings.Join(rights, ", ")
	if code == nil { // or it is among the arguments
		text += "\nIts code:\n" + source
	}
	return text, nil
}

// describeRemoval names the tool of a call of delete_js_tool.
func (t *Tools) describeRemoval(ctx context.Context, call toolgroups.Call) (string, error) {
	_, f, err := t.findChangeable(ctx, call, codeDelete)
	if err != nil {
		return "", err
	}
	t.writeMu.Lock()
	defer t.writeMu.Unlock()
	manifest, err := readLimited(t.filePath(f.baseName, ".json"))
	if err != nil {
		return "", nil //nolint:nilerr // What is broken can be deleted.
	}
	return describeTool(manifest), nil
}

// findChangeable returns the arguments of a call and the file of its tool, also if another process has just changed it.
func (t *Tools) findChangeable(ctx context.Context, call toolgroups.Call, code string) (in toolArgs, f manifestFile, err error) {
	if err := json.Unmarshal(call.Arguments, &in); err != nil {
		return in, f, fmt.Errorf("describe a call of %s: %w", call.Name, err)
	}
	if err := t.sync(ctx, code); err != nil {
		return in, f, err
	}
	in.Name = strings.TrimSpace(in.Name)
	f, err = t.changeableFile(in.Name, code)
	return in, f, err
}

func describeTool(manifest []byte) string {
	var says struct {
		Description string `json:"description"`
	}
	_ = json.Unmarshal(manifest, &says) // it is empty then
	return "The tool: " + wording.Quote(says.Description, maxShownDescription)
}
