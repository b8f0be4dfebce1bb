package telegram_test

import (
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// description has the methods and types of the Bot API, by kind and name: the facts of testdata/botapi.
type description struct {
	methods, types map[string][]describedField
}

type describedField struct {
	Name     string   `json:"name"`
	Types    []string `json:"types"`
	Required bool     `json:"required"`
}

func readFacts(t *testing.T) description {
	t.Helper()
	data, err := os.ReadFile("testdata/botapi/facts.txt")
	if err != nil {
		t.Fatal(err)
	}
	d := description{map[string][]describedField{}, map[string][]describedField{}}
	var all map[string][]describedField
	name := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		left, right, _ := strings.Cut(strings.TrimPrefix(line, "\t"), " ")
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "\t"):
			field, required := strings.CutSuffix(left, "!")
			all[name] = append(all[name], describedField{field, strings.Split(right, "|"), required})
		default:
			if all, name = d.types, right; left == "method" {
				all = d.methods
			}
			all[name] = nil
		}
	}
	return d
}

// The facts are those of their source, where that is installed.
func TestTheFactsAreThoseOfTheirSource(t *testing.T) {
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(cache, "oneclaw", "botapi", "api.json")
	if _, err := os.Stat(file); err != nil {
		t.Skip("the description is not installed: run testdata/botapi/install")
	}
	var source struct {
		Methods, Types map[string]struct{ Fields []describedField }
	}
	readJSON(t, file, &source)
	want := description{map[string][]describedField{}, map[string][]describedField{}}
	for name, m := range source.Methods {
		want.methods[name] = m.Fields
	}
	for name, d := range source.Types {
		want.types[name] = d.Fields
	}
	if diff := cmp.Diff(want, readFacts(t), cmp.AllowUnexported(description{})); diff != "" {
		t.Errorf("testdata/botapi/facts.txt (-source +facts):\n%s", diff)
	}
}

// schema is what this test reads of the contract.
type schema struct {
	Ref         string            `json:"$ref"`
	AnyOf       []schema          `json:"anyOf"`
	Not         *struct{}         `json:"not"` // for what may not be there
	Type        any               `json:"type"`
	Properties  map[string]schema `json:"properties"`
	Required    []string          `json:"required"`
	Definitions map[string]schema `json:"definitions"`
}

// known are the differences between the contract, which is Bot API 10.3 by grammY's types and
// holds every request and update of every test, and the description, which is 10.1 by Telegram's
// pages. Parameters that only the contract has are listed too: a request may have nothing else.
var known = map[string]string{
	"editEphemeralMessageText":                   "since Bot API 10.2",
	"sendDocument.ephemeral_message_parameters":  "since Bot API 10.3",
	"sendMessage.ephemeral_message_parameters":   "since Bot API 10.3",
	"sendPhoto.ephemeral_message_parameters":     "since Bot API 10.3",
	"sendVoice.ephemeral_message_parameters":     "since Bot API 10.3",
	"sendMessageDraft.can_stop":                  "since Bot API 10.3",
	"sendMessageDraft.keep_on_stop":              "since Bot API 10.3",
	"copyMessage.reply_to_message_id":            "until Bot API 7.0; grammY has it as deprecated",
	"sendMediaGroup.reply_to_message_id":         "until Bot API 7.0; grammY has it as deprecated",
	"sendDocument.reply_to_message_id":           "until Bot API 7.0; grammY has it as deprecated",
	"sendMessage.reply_to_message_id":            "until Bot API 7.0; grammY has it as deprecated",
	"sendPhoto.reply_to_message_id":              "until Bot API 7.0; grammY has it as deprecated",
	"sendVoice.reply_to_message_id":              "until Bot API 7.0; grammY has it as deprecated",
	"ReplyParameters.message_id":                 "may be left out since Bot API 10.3",
	"BusinessBotRights.can_delete_sent_messages": "grammY calls it can_delete_outgoing_messages",
	"DirectMessagesTopic.user":                   "grammY requires it",
	"Game.animation":                             "grammY requires it",
	"Game.text":                                  "grammY requires it",
	"Game.text_entities":                         "grammY requires it",
	"Sticker.needs_repainting":                   "grammY lacks it",
	"WebhookInfo.url":                            "grammY does not require it",
}

// parted are types that grammY parts otherwise: their fields are in others.
var parted = []string{"KeyboardButton", "Message", "User"}

// The contract that every request, answer and update of the tests is held against says of each
// method and type what Telegram's own pages say, but for what is known.
func TestTheContractIsWhatTheBotAPIDescribes(t *testing.T) {
	api := readFacts(t)
	var contract schema
	readJSON(t, "contract.json", &contract)
	c := comparison{contract.Definitions, map[string]string{}}
	for method, s := range contract.Properties["parameters"].Properties {
		if m, ok := api.methods[method]; ok {
			c.compare(method, s, m, true)
		} else {
			c.found[method] = "not described"
		}
	}
	compared := 0
	for name, d := range api.types {
		if s, ok := contract.Definitions[name]; ok && len(d) > 0 && !slices.Contains(parted, name) {
			c.compare(name, s, d, false)
			compared++
		}
	}
	if compared < 200 {
		t.Errorf("%d types were compared, want 200 and more", compared)
	}
	for _, difference := range slices.Sorted(maps.Keys(c.found)) {
		if known[difference] == "" {
			t.Errorf("%s: %s", difference, c.found[difference])
		}
	}
	for _, difference := range slices.Sorted(maps.Keys(known)) {
		if c.found[difference] == "" {
			t.Errorf("%s is listed, and there is no difference", difference)
		}
	}
}

type comparison struct {
	definitions map[string]schema
	found       map[string]string // by method or type, and field
}

// compare finds the fields that differ; those that only the contract has where that is strict.
func (c comparison) compare(name string, s schema, d []describedField, strict bool) {
	alternatives := c.alternatives(s)
	have := map[string][]schema{}
	for _, a := range alternatives {
		for field, s := range a.Properties {
			have[field] = append(have[field], s)
		}
	}
	for _, field := range d {
		of, ok := have[field.Name]
		delete(have, field.Name)
		required := !slices.ContainsFunc(alternatives, func(a schema) bool { return !slices.Contains(a.Required, field.Name) })
		switch want, got := kindsOf(field.Types), c.kinds(of); {
		case !ok:
			c.found[name+"."+field.Name] = "not in the contract"
		case !cmp.Equal(want, got):
			c.found[name+"."+field.Name] = strings.Join(got, ", ") + ", described as " + strings.Join(want, ", ")
		case required && !field.Required:
			c.found[name+"."+field.Name] = "required, described as optional"
		case !required && field.Required:
			c.found[name+"."+field.Name] = "optional, described as required"
		}
	}
	for field := range have {
		if strict {
			c.found[name+"."+field] = "not described"
		}
	}
}

// alternatives are the objects that a schema allows, without those that are not there.
func (c comparison) alternatives(s schema) (all []schema) {
	for s.Ref != "" {
		name, _ := url.PathUnescape(strings.TrimPrefix(s.Ref, "#/definitions/"))
		s = c.definitions[name]
	}
	switch {
	case s.Not != nil:
		return nil
	case len(s.AnyOf) == 0:
		return []schema{s}
	}
	for _, a := range s.AnyOf {
		all = append(all, c.alternatives(a)...)
	}
	return all
}

// kinds are the types of JSON that schemas allow.
func (c comparison) kinds(of []schema) (kinds []string) {
	for _, s := range of {
		for _, a := range c.alternatives(s) {
			switch t := a.Type.(type) {
			case string:
				kinds = append(kinds, t)
			case []any:
				for _, one := range t {
					kinds = append(kinds, one.(string))
				}
			}
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// kindsOf are the types of JSON of what the description names.
func kindsOf(types []string) (kinds []string) {
	for _, name := range types {
		switch {
		case name == "Integer", name == "Float":
			kinds = append(kinds, "number")
		case name == "String", name == "InputFile":
			kinds = append(kinds, "string")
		case name == "Boolean", name == "True":
			kinds = append(kinds, "boolean")
		case strings.HasPrefix(name, "Array of"):
			kinds = append(kinds, "array")
		case name == "RichText": // "a String, an Array of RichText, or one of", says its description
			kinds = append(kinds, "array", "object", "string")
		default:
			kinds = append(kinds, "object")
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

func readJSON(t *testing.T, file string, v any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
}
