package service

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"google.golang.org/api/option"

	"oneclaw/toolgroups"
)

// Group is a group that is not yet bound to accounts.
type Group struct {
	Name string
	// Scopes are required by every operation.
	Scopes []string
	// Manifests contains the file manifests/<Name>.json.
	Manifests  embed.FS
	Operations Operations
	// Resources say on the card of a call what its ids stand for, unless its operation is [Operation.Described].
	Resources Resources
}

// Operations are the operations of a group by their names in the manifest.
type Operations map[string]Operation

// Operation is the function of a tool.
type Operation struct {
	// scopes are required in addition to those of the group.
	scopes []string
	writes bool // it may change something
	// describe is the operation behind [toolgroups.Tool.Describe]; its result is a string. nil means the
	// group's [Resources].
	describe *Operation
	// needsApproval is [toolgroups.Tool.NeedsApproval].
	needsApproval func(call toolgroups.Call) bool
	run           func(ctx context.Context, c *Conn, arguments json.RawMessage) (any, error)
}

// NewOperation makes an operation from a function that uses the client of a service. newService is
// the NewService function of the service's package.
func NewOperation[S, In any](
	newService func(context.Context, ...option.ClientOption) (S, error),
	fn func(ctx context.Context, api S, c *Conn, in In) (any, error),
) Operation {
	return Operation{run: func(ctx context.Context, c *Conn, arguments json.RawMessage) (any, error) {
		var in In
		if len(arguments) > 0 {
			dec := json.NewDecoder(bytes.NewReader(arguments))
			dec.UseNumber() // the values of cells keep their digits
			if err := dec.Decode(&in); err != nil {
				return nil, Invalidf("the arguments do not fit the parameters of %s", c.Name)
			}
		}
		// The library would log bodies if an environment variable requested that.
		silent := slog.New(slog.DiscardHandler)
		api, err := newService(ctx, option.WithHTTPClient(c.Client), option.WithLogger(silent))
		if err != nil {
			return nil, fmt.Errorf("client of the service: %w", err)
		}
		return fn(ctx, api, c, in)
	}}
}

// WithScopes returns the operation with additional scopes that it requires.
func (o Operation) WithScopes(scopes ...string) Operation {
	o.scopes = append(slices.Clone(o.scopes), scopes...)
	return o
}

// Described returns the operation with another that describes its effect, as a string, and changes nothing.
func (o Operation) Described(describe Operation) Operation {
	o.describe = &describe
	return o
}

// AsksAmongOthers returns an operation of which those calls that asks reports need approval once the
// conversation holds words of others.
func AsksAmongOthers[In any](o Operation, asks func(in In) bool) Operation {
	o.needsApproval = func(call toolgroups.Call) bool {
		var in In
		return call.HoldsOthers && (json.Unmarshal(call.Arguments, &in) != nil || asks(in))
	}
	return o
}

// Connect returns a connection with the account of the call's user, which must have granted the scopes.
// The error says how the user can grant missing scopes.
type Connect func(ctx context.Context, call toolgroups.Call, scopes []string) (*Conn, error)

// Build makes the group from its manifest and operations.
func (g Group) Build(connect Connect) (toolgroups.Group, error) {
	group, err := toolgroups.ReadGroup(g.Manifests, "manifests/"+g.Name, nil)
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
		t.NeedsApproval = op.needsApproval
		t.Run = requireNonBlank(requiredIDs(t.Parameters), op.handler(connect))
		t.CheckReady = func(ctx context.Context, call toolgroups.Call) error {
			_, err := connect(ctx, call, op.scopes)
			return err
		}
		describe := g.Resources.describe
		if op.describe != nil {
			describe = op.describe.run
		}
		t.Describe = func(ctx context.Context, call toolgroups.Call) (string, error) {
			if !call.Direct && !op.writes {
				return "", nil // the card asks whether all who are here may read that
			}
			c, err := connect(ctx, call, op.scopes)
			if err != nil {
				return "", err
			}
			var unread closedAccount
			if !call.Direct && !call.ReadAccount {
				c.Client = &http.Client{Transport: &unread}
			}
			out, err := describe(ctx, c, call.Arguments)
			if unread.asked.Load() {
				return "", toolgroups.OwnErrorf(toolgroups.CodeDenied, "First read what this is about with a tool of this group that only reads, which asks the person; then make this call again. "+
					"All who are here would read on its card what stands in the account, and it was not read here since the person's last message.")
			}
			if err != nil {
				return "", c.mapError(err)
			}
			text, _ := out.(string)
			return text, nil
		}
	}
	return group, nil
}

// closedAccount refuses all requests, so that what is shown comes from the call and the workspace alone.
type closedAccount struct{ asked atomic.Bool }

func (a *closedAccount) RoundTrip(*http.Request) (*http.Response, error) {
	a.asked.Store(true)
	return nil, errors.New("the account was not read here")
}

// requiredIDs returns the parameters that must not be blank because they identify something. An id
// becomes part of a path, and a blank one would address something else.
func requiredIDs(parameters json.RawMessage) []string {
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

// requireNonBlank wraps a handler so that it refuses calls in which one of the parameters is blank.
func requireNonBlank(names []string, run toolgroups.Handler) toolgroups.Handler {
	return func(ctx context.Context, call toolgroups.Call) (toolgroups.Result, error) {
		if value, err := toolgroups.DecodeJSON(call.Arguments); len(names) > 0 && err == nil {
			in, _ := value.(map[string]any)
			for _, name := range names {
				if s, ok := in[name].(string); !ok || strings.TrimSpace(s) == "" {
					return toolgroups.Result{}, Invalidf("'%s' is empty", name)
				}
			}
		}
		return run(ctx, call)
	}
}

// handler returns a handler that runs the operation with the account of each call's user.
func (o Operation) handler(connect Connect) toolgroups.Handler {
	return func(ctx context.Context, call toolgroups.Call) (toolgroups.Result, error) {
		c, err := connect(ctx, call, o.scopes)
		if err != nil {
			return toolgroups.Result{}, err
		}
		out, err := o.run(ctx, c, call.Arguments)
		if err != nil && o.writes {
			if res, ok := c.successWithoutResponse(err); ok {
				return res, nil
			}
			if c.Writes.lost.Load() > 0 && !IsToolError(err) {
				return toolgroups.Result{}, unknownOutcome(err)
			}
		}
		if err != nil {
			return toolgroups.Result{}, c.mapError(err)
		}
		res, err := c.encodeResult(out)
		if err != nil {
			return toolgroups.Result{}, c.mapError(err)
		}
		return res, nil
	}
}

// AllScopes returns the scopes of a group and its operations, sorted.
func (g Group) AllScopes() []string {
	scopes := slices.Clone(g.Scopes)
	for _, op := range g.Operations {
		scopes = append(scopes, op.scopes...)
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}
