package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// Resources are operations by the names of arguments that hold an id, or a list of ids. Each says on one line
// what the resource with an id is, or nothing. It gets the id as [Resource], and the call's other arguments. What Google answers is the word of others, so the line has it as [Quoted].
type Resources map[string]Operation

// Resource is the argument of an operation of [Resources].
type Resource struct {
	ID string `json:"resource"`
}

const (
	// maxResources bounds the resources of an argument that a card names, and the names of a list.
	maxResources = 20
	// maxQuoted bounds a text of others on a card, in characters.
	maxQuoted = 200
)

// Quoted returns a text of others as one quoted line, so that it cannot pass for a word of the card.
func Quoted(text string) string { return wording.Quote(text, maxQuoted) }

// QuotesWhole reports whether [Quoted] shortens nothing.
func QuotesWhole(text string) bool { return wording.QuotesWhole(text, maxQuoted) }

// QuotedWhole is [Quoted] without a limit: for whom a call reaches.
func QuotedWhole(text string) string { return wording.Quote(text, math.MaxInt) }

// Person names a person of whom Google gives an address, a name or both.
func Person(name, address string) string {
	if name == "" || address == "" {
		return Quoted(name + address)
	}
	return fmt.Sprintf("%s (%s)", Quoted(name), Quoted(address))
}

// List joins names, of which a card shows the first ones.
func List(names []string) string {
	if more := len(names) - maxResources; more > 0 {
		names = append(slices.Clip(names[:maxResources]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// describe names the resources of a call, each on a line. What cannot be read may still be changed, such as by
// a user who has not granted all permissions, so the line says so.
func (r Resources) describe(ctx context.Context, c *Conn, arguments json.RawMessage) (any, error) {
	value, err := toolgroups.DecodeJSON(arguments)
	in, _ := value.(map[string]any)
	if len(arguments) > 0 && err != nil {
		return nil, Invalidf("the arguments do not fit the parameters of %s", c.Name)
	}
	type reference struct{ argument, id string }
	var references []reference
	var more []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		ids, isList := in[name].([]any)
		if !isList {
			ids = []any{in[name]}
		}
		var given []reference
		for _, id := range ids {
			if text, ok := id.(string); ok && strings.TrimSpace(text) != "" {
				given = append(given, reference{name, strings.TrimSpace(text)})
			}
		}
		if n := len(given) - maxResources; n > 0 { // for each by itself, so that none hides another
			given = given[:maxResources]
			more = append(more, fmt.Sprintf("%d more of %s are not named here.", n, name))
		}
		references = append(references, given...)
	}
	lines, err := MapConcurrent(ctx, references, func(ctx context.Context, one reference) (string, error) {
		of := maps.Clone(in)
		maps.DeleteFunc(of, func(name string, _ any) bool { return strings.EqualFold(name, "resource") }) // which the model may have given
		of["resource"] = one.id
		data, err := json.Marshal(of)
		if err != nil {
			return "", fmt.Errorf("encode the arguments: %w", err)
		}
		text, err := r[one.argument].run(ctx, c, data)
		if err != nil {
			if err = c.mapError(err); errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
				return "", err
			}
			text = "cannot be read: " + Quoted(err.Error())
			if isPassing(err) {
				return "", err
			}
			if fault, ok := errors.AsType[*toolgroups.Error](err); ok && fault.Code == toolgroups.CodeDenied {
				text = "cannot be read with the permissions that were granted" // the error names those of the tool
			}
		}
		if text == "" {
			return "", nil
		}
		return fmt.Sprintf("%s: %s", label(one.argument), text), nil
	})
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	return strings.Join(append(lines, more...), "\n"), err
}

// isPassing reports whether what failed with an error for the model may work a moment later.
func isPassing(err error) bool {
	fault, ok := errors.AsType[*toolgroups.Error](err)
	return ok && slices.Contains([]string{CodeRateLimited, CodeUnavailable, toolgroups.CodeTimeout}, fault.Code)
}

// label returns the name of an argument as words: File for file_id.
func label(argument string) string {
	words := strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(argument, "s"), "_id"), "_", " ")
	return strings.ToUpper(words[:1]) + words[1:]
}

// Or returns the operation with another, which says less and runs instead if it fails for longer than a moment. If both
// fail, the error is that of the first, unless only a permission for that is missing or the other may work later.
func (o Operation) Or(other Operation) Operation {
	run := o.run
	o.run = func(ctx context.Context, c *Conn, arguments json.RawMessage) (any, error) {
		out, err := run(ctx, c, arguments)
		if err == nil || isPassing(c.mapError(err)) {
			return out, err
		}
		instead, failed := other.run(ctx, c, arguments)
		fault, ok := errors.AsType[*toolgroups.Error](c.mapError(err))
		if failed == nil || isPassing(c.mapError(failed)) || ok && fault.Code == toolgroups.CodeDenied {
			return instead, failed
		}
		return nil, err
	}
	return o
}
