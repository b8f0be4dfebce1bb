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

// Codes of errors of the management tools.
const (
	CodeCreate = "create_failed"
	CodeUpdate = "update_failed"
	CodeDelete = "delete_failed"
)

// defaultTimeout is the default timeout of a new tool, in seconds.
const defaultTimeout = 30

type toolArgs struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Schema      string  `json:"parameters_schema"`
	Code        string  `json:"js_code"`
	Permissions *string `json:"required_permissions"`
	Timeout     *int    `json:"timeout_seconds"`
}

// check refuses invalid values.
func (a toolArgs) check() error {
	if a.Name == "" {
		return toolgroups.Errorf(toolgroups.CodeInvalid, "'name' is blank. Give the name of the tool.")
	}
	if limit := int(toolgroups.MaxTimeout.Seconds()); a.Timeout != nil && (*a.Timeout < 1 || *a.Timeout > limit) {
		return toolgroups.Errorf(toolgroups.CodeInvalid, "'timeout_seconds' must be from 1 to %d.", limit)
	}
	return nil
}

// apply sets the given values in a manifest and leaves the rest unchanged.
func (a toolArgs) apply(ms []toolgroups.Member) ([]toolgroups.Member, error) {
	if strings.TrimSpace(a.Description) != "" {
		ms = set(ms, "description", encode(strings.TrimSpace(a.Description)))
	}
	if strings.TrimSpace(a.Schema) != "" {
		parameters, err := schema(a.Schema)
		if err != nil {
			return nil, toolgroups.Errorf(toolgroups.CodeInvalid, "'parameters_schema' cannot be used: %v.", err)
		}
		ms = set(ms, "parameters", parameters)
	}
	if a.Timeout != nil {
		ms = set(drop(ms, "timeout_s"), "timeoutSeconds", encode(*a.Timeout))
	}
	if a.Permissions != nil {
		names, env, err := permissions(*a.Permissions)
		if err != nil {
			return nil, toolgroups.Errorf(toolgroups.CodeInvalid, "'required_permissions' cannot be used: %v.", err)
		}
		ms = drop(ms, "requiredPermissions", "env")
		if len(names) > 0 {
			ms = set(ms, "requiredPermissions", encode(names))
		}
		if len(env) > 0 {
			ms = set(ms, "env", encode(env))
		}
	}
	return ms, nil
}

func (t *Tools) create(ctx context.Context, call toolgroups.Call, in toolArgs) (toolgroups.Result, error) {
	in.Name = strings.TrimSpace(in.Name)
	if err := in.check(); err != nil {
		return toolgroups.Result{}, err
	}
	for field, value := range map[string]string{"description": in.Description, "parameters_schema": in.Schema} {
		if strings.TrimSpace(value) == "" {
			return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "'%s' is blank.", field)
		}
	}
	if !toolName.MatchString(in.Name) {
		return toolgroups.Result{}, toolgroups.Errorf(CodeCreate,
			"The name '%.100s' does not fit: 2 to 50 lower-case letters, digits and underscores, a letter first and no underscore last.", in.Name)
	}
	if in.Timeout == nil {
		in.Timeout = new(defaultTimeout)
	}
	manifest, err := in.apply(set(nil, "name", encode(in.Name)))
	if err != nil {
		return toolgroups.Result{}, err
	}
	if err := t.checkCode(ctx, call, CodeCreate, in.Code, execute); err != nil {
		return toolgroups.Result{}, err
	}
	if err := t.change(ctx, CodeCreate, func() error { return t.createFiles(in.Name, toolgroups.EncodeObject(manifest), in.Code) }); err != nil {
		return toolgroups.Result{}, err
	}
	if core, _ := t.Tools(); slices.Contains(toolgroups.Names(core), in.Name) {
		return toolgroups.Text("Created the tool '%s'. It can be used from the next step on.", in.Name)
	}
	return toolgroups.Text("Created the tool '%s'. It is in the group %s, because the tools made here are too large to be in every request: load that to use it from the next step on.", in.Name, UserTools)
}

// change changes the folder, here and for other processes.
func (t *Tools) change(ctx context.Context, code string, do func() error) error {
	if err := t.sync(ctx, code); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	defer t.notify()
	return t.sync(ctx, code)
}

// createFiles writes a new tool completely or not at all.
func (t *Tools) createFiles(name string, manifest []byte, code string) error {
	t.write.Lock()
	defer t.write.Unlock()
	if err := t.forceRead(); err != nil {
		return toolgroups.Errorf(CodeCreate, "The folder of user tools cannot be read: %v.", err)
	}
	if err := t.mayCreate(name); err != nil {
		return err
	}
	return t.store(CodeCreate, name, manifest, code, &code)
}

// store writes a tool, or nothing if it could not be used. source is its code, and code the new
// code, if any. The write lock must be held.
func (t *Tools) store(kind, name string, manifest []byte, source string, code *string) error {
	if f := t.parse(name, manifest, source); f.tool == nil {
		return toolgroups.Errorf(kind, "The tool cannot be used like that: %v.", errors.Join(f.errs...))
	}
	if err := t.put(name, manifest, code); err != nil {
		return toolgroups.Errorf(kind, "The files of '%s' could not be written: %v. Nothing has changed.", name, err)
	}
	return t.confirm(name, kind)
}

// mayCreate refuses a name that is taken.
func (t *Tools) mayCreate(name string) error {
	c := t.content.Load()
	if f, ok := c.owner(name); ok {
		return toolgroups.Errorf(CodeCreate, "There is a user tool '%s' already (%s.json). Change it with update_js_tool, or take another name.", name, f.base)
	}
	if _, ok := t.reserved()[name]; ok {
		return toolgroups.Errorf(CodeCreate, "The name '%s' is taken by the program. Take another.", name)
	}
	if _, err := os.Lstat(t.path(name, ".json")); !errors.Is(err, fs.ErrNotExist) {
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
				t.path(f.base, ".json"), in))
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
	if err := in.check(); err != nil {
		return toolgroups.Result{}, err
	}
	code := strings.TrimSpace(in.Code) != ""
	if !code && strings.TrimSpace(in.Description+in.Schema) == "" && in.Permissions == nil && in.Timeout == nil {
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "There is nothing to change: give at least one field besides 'name'.")
	}
	if _, err := in.apply(nil); err != nil {
		return toolgroups.Result{}, err
	}
	f, err := t.mayChange(in.Name, CodeUpdate)
	if err != nil {
		return toolgroups.Result{}, err
	}
	if code {
		if err := t.checkCode(ctx, call, CodeUpdate, in.Code, cmp.Or(f.function, execute)); err != nil {
			return toolgroups.Result{}, err
		}
	}
	if err := t.change(ctx, CodeUpdate, func() error { return t.updateFiles(f.base, in) }); err != nil {
		return toolgroups.Result{}, err
	}
	return toolgroups.Text("Updated the tool '%s'. The change counts from the next step on.", in.Name)
}

// updateFiles changes a tool completely or not at all.
func (t *Tools) updateFiles(base string, in toolArgs) error {
	t.write.Lock()
	defer t.write.Unlock()
	data, err := readLimited(t.path(base, ".json"))
	if err != nil {
		return toolgroups.Errorf(CodeUpdate, "The tool '%s' cannot be read: %v.", in.Name, err)
	}
	ms, err := toolgroups.ParseObject(bytes.TrimPrefix(data, []byte("\ufeff")))
	if err != nil {
		return toolgroups.Errorf(CodeUpdate, "%s.json cannot be read: %v. Delete the tool and create it anew.", base, err)
	}
	if ms, err = in.apply(ms); err != nil {
		return err
	}
	old, err := readLimited(t.path(base, ".js"))
	var code *string
	if strings.TrimSpace(in.Code) != "" {
		code = &in.Code
	} else if err != nil {
		return toolgroups.Errorf(CodeUpdate, "The code of '%s' cannot be read: %v. Give it anew as js_code.", in.Name, err)
	}
	return t.store(CodeUpdate, base, toolgroups.EncodeObject(ms), string(old), code)
}

func (t *Tools) remove(ctx context.Context, _ toolgroups.Call, in toolArgs) (toolgroups.Result, error) {
	in.Name = strings.TrimSpace(in.Name)
	if err := in.check(); err != nil {
		return toolgroups.Result{}, err
	}
	f, err := t.mayChange(in.Name, CodeDelete)
	if err != nil {
		return toolgroups.Result{}, err
	}
	if err := t.change(ctx, CodeDelete, func() error { return t.removeFiles(f.base) }); err != nil {
		return toolgroups.Result{}, err
	}
	return toolgroups.Text("Deleted the tool '%s' with its files.", in.Name)
}

// mayChange refuses tools that are not alone in their file. A broken file may be changed, to
// repair it.
func (t *Tools) mayChange(name, code string) (file, error) {
	if err := t.Reload(); err != nil {
		return file{}, toolgroups.Errorf(code, "The folder of user tools cannot be read: %v.", err)
	}
	c := t.content.Load()
	if f, ok := c.owner(name); ok && f.group != nil {
		return f, toolgroups.Errorf(code, "The tool '%s' is part of the group '%s'. Whoever runs this bot changes it in %s.", name, f.base, t.path(f.base, ".json"))
	}
	var f file
	if i := slices.IndexFunc(c.files, func(f file) bool { return f.base == name || f.tool != nil && f.tool.Name == name }); i >= 0 {
		f = c.files[i]
		if f.list {
			return f, toolgroups.Errorf(code, "'%s' is a group and no tool. Whoever runs this bot changes it in %s.", name, t.path(f.base, ".json"))
		}
		return f, nil
	}
	if _, ok := t.reserved()[name]; ok {
		return f, toolgroups.Errorf(code, "The tool '%s' comes with the program and is protected.", name)
	}
	return f, toolgroups.Errorf(code, "There is no user tool '%.100s'. list_user_tools shows those that there are.", name)
}
