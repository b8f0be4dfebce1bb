package service

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"google.golang.org/api/option"

	"oneclaw/toolgroups"
)

// Group is a group before it is bound to accounts.
type Group struct {
	Name string
	// Scopes are what every operation needs.
	Scopes []string
	// Manifests has the file manifests/<Name>.json.
	Manifests  embed.FS
	Operations Operations
}

// Operations are the functions of a group by the name in its manifest.
type Operations map[string]Operation

// Operation is what a tool does.
type Operation struct {
	// scopes are needed besides those of the group.
	scopes []string
	writes bool // it may change something
	run    func(ctx context.Context, c *Conn, arguments json.RawMessage) (any, error)
}

// With makes an operation of a function that needs the client of a service.
// newService is the NewService of the service's package.
func With[S, In any](
	newService func(context.Context, ...option.ClientOption) (S, error),
	fn func(ctx context.Context, api S, c *Conn, in In) (any, error),
) Operation {
	return Operation{run: func(ctx context.Context, c *Conn, arguments json.RawMessage) (any, error) {
		var in In
		if len(arguments) > 0 {
			if err := json.Unmarshal(arguments, &in); err != nil {
				return nil, Invalidf("the arguments do not fit the parameters of %s", c.Name)
			}
		}
		// The library would log bodies where an environment variable tells it to.
		silent := slog.New(slog.DiscardHandler)
		api, err := newService(ctx, option.WithHTTPClient(c.Client), option.WithLogger(silent))
		if err != nil {
			return nil, fmt.Errorf("client of the service: %w", err)
		}
		return fn(ctx, api, c, in)
	}}
}

// Needs adds scopes that the group as a whole does without.
func (o Operation) Needs(scopes ...string) Operation {
	o.scopes = append(slices.Clone(o.scopes), scopes...)
	return o
}

// Connect finds the account of the user of a call. It has the scopes, or the error
// says how the user can grant them.
type Connect func(ctx context.Context, call toolgroups.Call, scopes []string) (*Conn, error)

// Build makes the group of the manifest and the operations.
func (g Group) Build(connect Connect) (toolgroups.Group, error) {
	group, err := toolgroups.GroupOf(g.Manifests, "manifests/"+g.Name, nil)
	if err != nil {
		return group, err
	}
	for i := range group.Tools {
		t := &group.Tools[i]
		op, ok := g.Operations[t.Function]
		if !ok {
			return group, fmt.Errorf("%s: there is no function %q", g.Name, t.Function)
		}
		op.scopes = append(slices.Clone(g.Scopes), op.scopes...)
		op.writes = t.Effect != toolgroups.ReadOnly
		t.Run = named(required(t.Parameters), op.handler(connect))
		t.Ready = func(ctx context.Context, call toolgroups.Call) error {
			_, err := connect(ctx, call, op.scopes)
			return err
		}
	}
	return group, nil
}

// required are the parameters that name something, so that they must not be blank. An
// id becomes a part of a path, where nothing would address something else.
func required(parameters json.RawMessage) []string {
	var schema struct {
		Required []string `json:"required"`
	}
	if json.Unmarshal(parameters, &schema) != nil {
		return nil
	}
	names := []string{"resource_name", "range", "name", "new_name", "given_name", "mime_type"}
	return slices.DeleteFunc(schema.Required, func(name string) bool {
		return !strings.HasSuffix(name, "_id") && !slices.Contains(names, name)
	})
}

// named refuses a call that leaves such a parameter blank.
func named(names []string, run toolgroups.Handler) toolgroups.Handler {
	return func(ctx context.Context, call toolgroups.Call) (toolgroups.Result, error) {
		var in map[string]any
		if len(names) > 0 && json.Unmarshal(call.Arguments, &in) == nil {
			for _, name := range names {
				if s, ok := in[name].(string); !ok || strings.TrimSpace(s) == "" {
					return toolgroups.Result{}, Invalidf("'%s' is empty", name)
				}
			}
		}
		return run(ctx, call)
	}
}

// handler binds an operation to the account of the user of each call.
func (o Operation) handler(connect Connect) toolgroups.Handler {
	return func(ctx context.Context, call toolgroups.Call) (toolgroups.Result, error) {
		c, err := connect(ctx, call, o.scopes)
		if err != nil {
			return toolgroups.Result{}, err
		}
		out, err := o.run(ctx, c, call.Arguments)
		if err != nil {
			if res, ok := c.unread(err); ok && o.writes {
				return res, nil
			}
			return toolgroups.Result{}, c.fault(err)
		}
		res, err := c.result(out)
		if err != nil {
			return toolgroups.Result{}, c.fault(err)
		}
		return res, nil
	}
}

// AllScopes are the scopes of a group with those of its operations, sorted.
func (g Group) AllScopes() []string {
	scopes := slices.Clone(g.Scopes)
	for _, op := range g.Operations {
		scopes = append(scopes, op.scopes...)
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}
