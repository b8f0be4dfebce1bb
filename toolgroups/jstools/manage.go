package jstools

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"oneclaw/toolgroups"
)

// Error codes of the management tools.
const (
	CodeCreate = "create_failed"
	codeUpdate = "update_failed"
	codeDelete = "delete_failed"
)

// defaultTimeout is the default timeout of a new tool, in seconds.
const defaultTimeout = 30

type toolArgs struct {
	Name                string  `json:"name"`
	Description         string  `json:"description"`
	ParametersSchema    string  `json:"parameters_schema"`
	JSCode              string  `json:"js_code"`
	RequiredPermissions *string `json:"required_permissions"`
	TimeoutSeconds      *int    `json:"timeout_seconds"`
}

// validate returns an error for a missing name or an invalid timeout.
func (a toolArgs) validate() error {
	if a.Name == "" {
		return toolgroups.Errorf(toolgroups.CodeInvalid, "'name' is blank. Give the name of the tool.")
	}
	if limit := int(toolgroups.MaxTimeout.Seconds()); a.TimeoutSeconds != nil && (*a.TimeoutSeconds < 1 || *a.TimeoutSeconds > limit) {
		return toolgroups.Errorf(toolgroups.CodeInvalid, "'timeout_seconds' must be from 1 to %d.", limit)
	}
	return nil
}

// apply sets the given values in a manifest and leaves the rest unchanged.
func (a toolArgs) apply(ms []toolgroups.Member) ([]toolgroups.Member, error) {
	if strings.TrimSpace(a.Description) != "" {
		ms = setMember(ms, "description", encode(strings.TrimSpace(a.Description)))
	}
	if strings.TrimSpace(a.ParametersSchema) != "" {
		parameters, err := parseSchema(a.ParametersSchema)
		if err != nil {
			return nil, toolgroups.Errorf(toolgroups.CodeInvalid, "'parameters_schema' cannot be used: %v.", err)
		}
		ms = setMember(ms, "parameters", parameters)
	}
	if a.TimeoutSeconds != nil {
		ms = setMember(dropMembers(ms, "timeout_s"), "timeoutSeconds", encode(*a.TimeoutSeconds))
	}
	if a.RequiredPermissions != nil {
		usesGoogle, env, err := parsePermissions(*a.RequiredPermissions)
		if err != nil {
			return nil, toolgroups.Errorf(toolgroups.CodeInvalid, "'required_permissions' cannot be used: %v.", err)
		}
		ms = dropMembers(ms, "requiredPermissions", "env")
		if usesGoogle {
			ms = setMember(ms, "requiredPermissions", encode([]string{googlePermission}))
		}
		if len(env) > 0 {
			ms = setMember(ms, "env", encode(env))
		}
	}
	return ms, nil
}

func (t *Tools) create(ctx context.Context, call toolgroups.Call, in toolArgs) (toolgroups.Result, error) {
	in.Name = strings.TrimSpace(in.Name)
	if err := in.validate(); err != nil {
		return toolgroups.Result{}, err
	}
	for field, value := range map[string]string{"description": in.Description, "parameters_schema": in.ParametersSchema} {
		if strings.TrimSpace(value) == "" {
			return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "'%s' is blank.", field)
		}
	}
	if !toolName.MatchString(in.Name) {
		return toolgroups.Result{}, toolgroups.Errorf(CodeCreate,
			"The name '%.100s' does not fit: 2 to 50 lower-case letters, digits and underscores, a letter first and no underscore last.", in.Name)
	}
	if in.TimeoutSeconds == nil {
		in.TimeoutSeconds = new(defaultTimeout)
	}
	manifest, err := in.apply(setMember(nil, "name", encode(in.Name)))
	if err != nil {
		return toolgroups.Result{}, err
	}
	if err := t.checkCode(ctx, call, CodeCreate, in.JSCode, defaultFunction); err != nil {
		return toolgroups.Result{}, err
	}
	if err := t.changeFolder(ctx, CodeCreate, func() error { return t.createFiles(in.Name, toolgroups.EncodeObject(manifest), in.JSCode) }); err != nil {
		return toolgroups.Result{}, err
	}
	if core, _ := t.Tools(); slices.Contains(toolgroups.Names(core), in.Name) {
		return toolgroups.TextResult("Created the tool '%s'. It can be used from the next step on.", in.Name)
	}
	return toolgroups.TextResult("Created the tool '%s'. It is in the group %s, because the tools made here are too large to be in every request: load that to use it from the next step on.", in.Name, userTools)
}

// changeFolder calls do to change the folder, and synchronizes it with other processes.
func (t *Tools) changeFolder(ctx context.Context, code string, do func() error) error {
	if err := t.sync(ctx, code); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	defer t.notify()
	return t.sync(ctx, code)
}

// createFiles writes the files of a new tool, all or none.
func (t *Tools) createFiles(name string, manifest []byte, code string) error {
	t.writeMu.Lock()
	defer t.writeMu.Unlock()
	if err := t.forceRescan(); err != nil {
		return toolgroups.Errorf(CodeCreate, "The folder of user tools cannot be read: %v.", err)
	}
	if err := t.checkCreatable(name); err != nil {
		return err
	}
	return t.storeTool(CodeCreate, name, manifest, code, &code)
}

// storeTool writes the files of a tool if it is valid. source is its current code, and code the new
// code, nil if unchanged. kind is the error code. writeMu must be held.
func (t *Tools) storeTool(kind, name string, manifest []byte, source string, code *string) error {
	if f := t.parseManifest(name, manifest, source); f.tool == nil {
		return toolgroups.Errorf(kind, "The tool cannot be used like that: %v.", errors.Join(f.errs...))
	}
	if err := t.writeFiles(name, manifest, code); err != nil {
		return toolgroups.Errorf(kind, "The files of '%s' could not be written: %v. Nothing has changed.", name, err)
	}
	return t.checkUsable(name, kind)
}

// checkCreatable returns an error if the name is taken or there are too many tools.
func (t *Tools) checkCreatable(name string) error {
	c := t.content.Load()
	if f, ok := c.fileOfTool(name); ok {
		return toolgroups.Errorf(CodeCreate, "There is a user tool '%s' already (%s.json). Change it with update_js_tool, or take another name.", name, f.baseName)
	}
	if _, ok := t.reservedNames()[name]; ok {
		return toolgroups.Errorf(CodeCreate, "The name '%s' is taken by the program. Take another.", name)
	}
	if t.cfg.OtherNames != nil && slices.Contains(t.cfg.OtherNames(), name) {
		return toolgroups.Errorf(CodeCreate, "Another tool is called '%s'. Take another name.", name)
	}
	if _, err := os.Lstat(t.filePath(name, ".json")); !errors.Is(err, fs.ErrNotExist) {
		return toolgroups.Errorf(CodeCreate, "There is a file %s.json already. Take another name, or delete that first.", name)
	}
	single := 0
	for _, f := range c.files {
		if f.tool != nil {
			single++
		}
	}
	if single >= toolgroups.MaxGroupTools {
		return toolgroups.Errorf(CodeCreate, "There are %d tools already, and no more are taken. Delete one first.", toolgroups.MaxGroupTools)
	}
	return nil
}

func (t *Tools) list(context.Context, toolgroups.Call) (toolgroups.Result, error) {
	if err := t.Reload(); err != nil {
		return toolgroups.Result{}, err
	}
	c := t.content.Load()
	var lines []string
	for _, f := range c.files {
		var tools []toolgroups.Tool
		in := ""
		if f.tool != nil {
			tools = []toolgroups.Tool{*f.tool}
		} else if f.group != nil {
			tools, in = f.group.Tools, ", group "+f.group.Name
		}
		for _, tool := range tools {
			lines = append(lines, fmt.Sprintf("- %s: %s (%s%s)", tool.Name, strings.Join(strings.Fields(tool.Description), " "),
				t.filePath(f.baseName, ".json"), in))
		}
	}
	slices.Sort(lines)
	text := "There are no user tools."
	if len(lines) > 0 {
		text = fmt.Sprintf("User tools: %d\n%s", len(lines), strings.Join(lines, "\n"))
	}
	if errs := c.errors(); len(errs) > 0 {
		text += fmt.Sprintf("\n\nLeft out because of mistakes: %d", len(errs))
		for _, err := range errs {
			text += "\n- " + err.Error()
		}
	}
	return toolgroups.Result{Text: text}, nil
}

func (t *Tools) update(ctx context.Context, call toolgroups.Call, in toolArgs) (toolgroups.Result, error) {
	in.Name = strings.TrimSpace(in.Name)
	if err := in.validate(); err != nil {
		return toolgroups.Result{}, err
	}
	code := strings.TrimSpace(in.JSCode) != ""
	if !code && strings.TrimSpace(in.Description+in.ParametersSchema) == "" && in.RequiredPermissions == nil && in.TimeoutSeconds == nil {
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "There is nothing to change: give at least one field besides 'name'.")
	}
	if _, err := in.apply(nil); err != nil {
		return toolgroups.Result{}, err
	}
	f, err := t.changeableFile(in.Name, codeUpdate)
	if err != nil {
		return toolgroups.Result{}, err
	}
	if code {
		if err := t.checkCode(ctx, call, codeUpdate, in.JSCode, cmp.Or(f.function, defaultFunction)); err != nil {
			return toolgroups.Result{}, err
		}
	}
	if err := t.changeFolder(ctx, codeUpdate, func() error { return t.updateFiles(f.baseName, in) }); err != nil {
		return toolgroups.Result{}, err
	}
	return toolgroups.TextResult("Updated the tool '%s'. The change counts from the next step on.", in.Name)
}

// updateFiles changes the files of a tool, all or none.
func (t *Tools) updateFiles(base string, in toolArgs) error {
	t.writeMu.Lock()
	defer t.writeMu.Unlock()
	manifest, source, code, err := t.changedFiles(base, in)
	if err != nil {
		return err
	}
	return t.storeTool(codeUpdate, base, manifest, source, code)
}

// changedFiles returns the manifest of a tool as it is after a change, its current code, and the new code, nil if
// unchanged. writeMu must be held.
func (t *Tools) changedFiles(base string, in toolArgs) (manifest []byte, source string, code *string, err error) {
	data, err := readLimited(t.filePath(base, ".json"))
	if err != nil {
		return nil, "", nil, toolgroups.Errorf(codeUpdate, "The tool '%s' cannot be read: %v.", in.Name, err)
	}
	ms, err := toolgroups.ParseObject(bytes.TrimPrefix(data, []byte("\ufeff")))
	if err != nil {
		return nil, "", nil, toolgroups.Errorf(codeUpdate, "%s.json cannot be read: %v. Delete the tool and create it anew.", base, err)
	}
	if ms, err = in.apply(ms); err != nil {
		return nil, "", nil, err
	}
	old, err := readLimited(t.filePath(base, ".js"))
	if strings.TrimSpace(in.JSCode) != "" {
		code = &in.JSCode
	} else if err != nil {
		return nil, "", nil, toolgroups.Errorf(codeUpdate, "The code of '%s' cannot be read: %v. Give it anew as js_code.", in.Name, err)
	}
	return toolgroups.EncodeObject(ms), string(old), code, nil
}

func (t *Tools) remove(ctx context.Context, _ toolgroups.Call, in toolArgs) (toolgroups.Result, error) {
	in.Name = strings.TrimSpace(in.Name)
	if err := in.validate(); err != nil {
		return toolgroups.Result{}, err
	}
	f, err := t.changeableFile(in.Name, codeDelete)
	if err != nil {
		return toolgroups.Result{}, err
	}
	if err := t.changeFolder(ctx, codeDelete, func() error { return t.removeFiles(f.baseName) }); err != nil {
		return toolgroups.Result{}, err
	}
	return toolgroups.TextResult("Deleted the tool '%s' with its files.", in.Name)
}

// changeableFile returns the file of a tool. It returns an error if the file has several tools. A
// broken file is returned, so that it can be repaired.
func (t *Tools) changeableFile(name, code string) (manifestFile, error) {
	if err := t.Reload(); err != nil {
		return manifestFile{}, toolgroups.Errorf(code, "The folder of user tools cannot be read: %v.", err)
	}
	c := t.content.Load()
	if f, ok := c.fileOfTool(name); ok && f.group != nil {
		return f, toolgroups.Errorf(code, "The tool '%s' is part of the group '%s'. Whoever runs this bot changes it in %s.", name, f.baseName, t.filePath(f.baseName, ".json"))
	}
	var f manifestFile
	if i := slices.IndexFunc(c.files, func(f manifestFile) bool { return f.baseName == name || f.tool != nil && f.tool.Name == name }); i >= 0 {
		f = c.files[i]
		if f.isList {
			return f, toolgroups.Errorf(code, "'%s' is a group and no tool. Whoever runs this bot changes it in %s.", name, t.filePath(f.baseName, ".json"))
		}
		return f, nil
	}
	if _, ok := t.reservedNames()[name]; ok {
		return f, toolgroups.Errorf(code, "The tool '%s' comes with the program and is protected.", name)
	}
	return f, toolgroups.Errorf(code, "There is no user tool '%.100s'. list_user_tools shows those that there are.", name)
}
