package slack

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/internal/emulator/npmtest"
)

//go:embed testdata/samples.cjs
var samplesScript string

// whatSamplesBecome has the samples that are for the bot. Each other one is ignored.
var whatSamplesBecome = map[string]string{
	"SlackEvent agent_session_stopped":           "agent",
	"SlackEvent app_context_changed":             "view",
	"SlackEvent app_home_opened":                 "agent",
	"SlackEvent app_mention":                     "text",
	"SlackEvent assistant_thread_started":        "agent",
	"SlackEvent message":                         "text",
	"SlackEvent message file_share":              "text",
	"SlackEvent message message_changed":         "edit",
	"SlackEvent message me_message":              "text",
	"SlackEvent message message_deleted":         "delete",
	"SlackEvent message thread_broadcast":        "text",
	"SlackEvent reaction_added":                  "rating",
	"SlackEvent reaction_removed":                "rating",
	"BlockAction block_actions button":           "press",
	"BlockAction block_actions feedback_buttons": "press",
	"SlashCommand":                               "command",
}

// What Slack's libraries for Node know of events, presses and commands is read as what it is, or ignored, and no
// field of it has another type than is expected. Of messages each text is read.
func TestWhatSlacksLibrariesReceiveIsRead(t *testing.T) {
	t.Parallel()
	var samples map[string][]json.RawMessage
	if err := json.Unmarshal(npmtest.Run(t, samplesScript, map[string]string{"types": typesDir(t)}, "@slack/bolt"), &samples); err != nil {
		t.Fatal(err)
	}
	envelopes := make([]map[string]json.RawMessage, len(samples["EnvelopedEvent"]))
	for i, sample := range samples["EnvelopedEvent"] {
		if err := json.Unmarshal(sample, &envelopes[i]); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	for name, list := range samples {
		for i, sample := range list {
			var of struct {
				Type, Subtype string
				Actions       []struct{ Type string }
			}
			if err := json.Unmarshal(sample, &of); err != nil {
				t.Fatal(err)
			}
			what := []string{name, of.Type, of.Subtype}
			kind := kindInteractive
			switch {
			case name == "SlackEvent":
				envelope := envelopes[i%len(envelopes)]
				kind, envelope["event"] = kindEvent, sample
				sample, _ = json.Marshal(envelope) // what was decoded can be encoded
			case name == "EnvelopedEvent":
				kind = kindEvent
			case name == "SlashCommand":
				kind = kindCommand
			case len(of.Actions) > 0:
				what = append(what, of.Actions[0].Type)
			}
			is := strings.Join(slices.DeleteFunc(what, func(s string) bool { return s == "" }), " ")
			switch became := readSample(t, kind, sample); {
			case became == "": // ignored, as is one without a text or an author
			case became != whatSamplesBecome[is]:
				t.Errorf("%s becomes %q: %s", is, became, sample)
			default:
				got[is] = became
			}
		}
	}
	if diff := cmp.Diff(whatSamplesBecome, got); diff != "" {
		t.Error(diff)
	}
}

// readSample returns what a payload becomes.
func readSample(t *testing.T, kind string, payload []byte) string {
	t.Helper()
	in, err := me.decode(kind, payload)
	switch {
	case err != nil:
		t.Errorf("%v: %s", err, payload)
	case in.command != nil:
		return "command"
	case in.press != nil:
		return "press"
	case in.agent != nil:
		return "agent"
	case in.view != nil:
		return "view"
	case in.reaction != nil:
		return "rating"
	case in.event != nil:
		msg, err := offline(t).convert(t.Context(), in.event)
		if err != nil || in.event.subject().damaged {
			t.Errorf("damaged %t, %v: %s", in.event.subject().damaged, err, payload)
		}
		if msg == nil {
			return ""
		}
		for _, text := range textsIn(in.event.subject().Blocks) {
			if !strings.Contains(msg.Text, text) {
				t.Errorf("%q does not have %q of %s", msg.Text, text, in.event.subject().Blocks)
			}
		}
		return string(msg.Kind)
	}
	return ""
}

// textsIn returns the texts that people see of blocks, without those of questions that follow a press.
func textsIn(raw json.RawMessage) (texts []string) {
	var list []json.RawMessage
	var fields map[string]json.RawMessage
	var text string
	switch {
	case json.Unmarshal(raw, &list) == nil:
		for _, one := range list {
			texts = append(texts, textsIn(one)...)
		}
	case json.Unmarshal(raw, &fields) == nil:
		for key, field := range fields {
			if key == "text" && json.Unmarshal(field, &text) == nil {
				texts = append(texts, text)
			} else if key != "confirm" {
				texts = append(texts, textsIn(field)...)
			}
		}
	}
	return texts
}
