package google

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/api/option"

	"oneclaw/toolgroups"
)

//go:embed manifests/*.json
var manifests embed.FS

// groups are the groups that exist.
func groups() []group {
	return []group{
		gmailGroup(),
		gmailSettingsGroup(),
		driveGroup(),
		calendarGroup(),
		contactsGroup(),
		docsGroup(),
		sheetsGroup(),
		slidesGroup(),
		formsGroup(),
		tasksGroup(),
	}
}

// group is a group before it is bound to accounts.
type group struct {
	name string
	// scopes are what every operation needs.
	scopes     []string
	operations operations
}

// operations are the functions of a group by the name in its manifest.
type operations map[string]operation

// operation is what a tool does.
type operation struct {
	// scopes are needed besides those of the group.
	scopes []string
	run    func(ctx context.Context, c *conn, arguments json.RawMessage) (any, error)
}

// with makes an operation of a function that needs the client of a service.
// newService is the NewService of the service's package.
func with[S, In any](
	newService func(context.Context, ...option.ClientOption) (S, error),
	fn func(ctx context.Context, api S, c *conn, in In) (any, error),
) operation {
	return operation{run: func(ctx context.Context, c *conn, arguments json.RawMessage) (any, error) {
		var in In
		if len(arguments) > 0 {
			if err := json.Unmarshal(arguments, &in); err != nil {
				return nil, invalidf("the arguments do not fit the parameters of %s", c.Name)
			}
		}
		api, err := newService(ctx, option.WithHTTPClient(c.client), option.WithLogger(c.google.libraryLog()))
		if err != nil {
			return nil, fmt.Errorf("client of the service: %w", err)
		}
		return fn(ctx, api, c, in)
	}}
}

// needs adds scopes that the group as a whole does without.
func (o operation) needs(scopes ...string) operation {
	o.scopes = append(slices.Clone(o.scopes), scopes...)
	return o
}

// build makes the group of the manifest and the operations.
func (g *Google) build(group group) (toolgroups.Group, error) {
	data, err := manifests.ReadFile("manifests/" + group.name + ".json")
	if err != nil {
		return toolgroups.Group{}, err
	}
	handlers := map[string]toolgroups.Handler{}
	for name, op := range group.operations {
		op.scopes = append(slices.Clone(group.scopes), op.scopes...)
		handlers[name] = g.handler(op)
	}
	m, errs := toolgroups.ParseManifest(group.name, data, handlers, toolgroups.ManifestOptions{})
	if len(errs) > 0 {
		return toolgroups.Group{}, errors.Join(errs...)
	}
	for i := range m.Group.Tools {
		t := &m.Group.Tools[i]
		t.Run = named(required(t.Parameters), t.Run)
	}
	return *m.Group, nil
}

// required are the parameters that become a part of a path, where nothing would
// address something else.
func required(parameters json.RawMessage) []string {
	var schema struct {
		Required []string `json:"required"`
	}
	if json.Unmarshal(parameters, &schema) != nil {
		return nil
	}
	return slices.DeleteFunc(schema.Required, func(name string) bool {
		return !strings.HasSuffix(name, "_id") && name != "resource_name" && name != "range"
	})
}

// named refuses a call that leaves an id empty.
func named(ids []string, run toolgroups.Handler) toolgroups.Handler {
	return func(ctx context.Context, call toolgroups.Call) (toolgroups.Result, error) {
		var in map[string]any
		if len(ids) > 0 && json.Unmarshal(call.Arguments, &in) == nil {
			for _, id := range ids {
				if s, ok := in[id].(string); !ok || strings.TrimSpace(s) == "" {
					return toolgroups.Result{}, invalidf("'%s' is empty", id)
				}
			}
		}
		return run(ctx, call)
	}
}

// handler binds an operation to the account of the user of each call.
func (g *Google) handler(op operation) toolgroups.Handler {
	return func(ctx context.Context, call toolgroups.Call) (toolgroups.Result, error) {
		c, err := g.conn(ctx, call, op.scopes)
		if err != nil {
			return toolgroups.Result{}, err
		}
		out, err := op.run(ctx, c, call.Arguments)
		if err != nil {
			return toolgroups.Result{}, c.fault(err)
		}
		res, err := c.result(out)
		if err != nil {
			return toolgroups.Result{}, c.fault(err)
		}
		return res, nil
	}
}

// allScopes are the scopes of a group with those of its operations, sorted.
func (group group) allScopes() []string {
	set := map[string]bool{}
	for _, s := range group.scopes {
		set[s] = true
	}
	for _, op := range group.operations {
		for _, s := range op.scopes {
			set[s] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}
