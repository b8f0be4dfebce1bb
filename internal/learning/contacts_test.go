package learning_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"oneclaw/agent"
)

// said is a text as it stands in an export: as a question, and in the arguments of a call.
type said struct{ asked, called string }

// exported returns what becomes of texts, each of a case of its own.
func exported(t *testing.T, texts ...string) (all []said) {
	t.Helper()
	k := newKept(t)
	for i, text := range texts {
		here := private(fmt.Sprint(12345678 + i))
		data, err := json.Marshal(map[string]string{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		k.say(here, here.chat.ID, "Zoltan Quill", text, good(here.chat.String()),
			agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "x", Name: "send", Arguments: string(data)}}},
			agent.Message{Role: agent.RoleTool, CallID: "x", Tool: "send", Status: agent.StatusOK, Text: "sent"}, answer("done"))
		k.tell(here)
	}
	_, cases, counts := k.export()
	if len(cases) != len(texts) {
		t.Fatalf("%+v", counts)
	}
	for i, c := range cases {
		var arguments struct{ Text string }
		if err := json.Unmarshal([]byte(c.Outcome.Messages[0].Calls[0].Arguments), &arguments); err != nil {
			t.Fatalf("the arguments of %q are no JSON any more: %v", texts[i], err)
		}
		all = append(all, said{c.Seen.Messages[0].Text, arguments.Text})
	}
	return all
}

// Each form of a value stands between the words before and behind it, and has one pseudonym
// however it is written.
func TestWhatReachesAPersonIsNotExported(t *testing.T) {
	t.Parallel()
	for kind, values := range map[string][][]string{
		"Email": {
			{"ann.lee@example.com", "Ann.Lee@Example.com", "ann.lee%40example.com"},
			{"bob+news@mail.example.co.uk"},
			{"o'neil_7@sub-domain.example.org"},
			{"jörg@bücher.example"},
			{"@carol@social.example"},
		},
		"Phone": {
			{"+49 30 901820", "+49 (0)30 901820", "+4930901820", "0049 30 / 901820", "%2B49-30-901820"},
			{"+1 (555) 123-4567", "+1-555-123-4567", "+15551234567"},
			{"(555) 234-5678", "555-234-5678", "555.234.5678"},
			{"+44 20 7946 0958"},
			{"020 7946 0958"},
			{"+33 1 23 45 67 89"},
			{"01 23 45 67 89", "01.23.45.67.89"},
			{"0171/1234567", "(0171) 123 45 67"},
			{"+81-3-1234-5678"},
			{"+91 98765 43210"},
			{"+55 11 91234-5678"},
			{"+420 601 123 456"},
			{"+41 44 668 18 00"},
		},
		"IBAN": {
			{"DE89370400440532013000", "DE89 3704 0044 0532 0130 00", "de89 3704 0044 0532 0130 00", "DE89-3704-0044-0532-0130-00"},
			{"GB29 NWBK 6016 1331 9268 19", "GB29NWBK60161331926819"},
			{"FR14 2004 1010 0505 0001 3M02 606"},
			{"NO93 8601 1117 947"},
			{"CH93 0076 2011 6238 5295 7"},
		},
		"Name": {{"@fred_b", "@Fred_B"}, {"@jane.doe"}, {"@x-ray77"}, {"@юрий"}},
	} {
		placeholder := regexp.MustCompile(kind + `-[a-z2-7]{8}`)
		at := ""
		if kind == "Name" {
			at = "@"
		}
		for _, forms := range values {
			var texts, arounds []string
			for _, form := range forms {
				for _, around := range []string{
					"#", "# bitte", "write to #", "to # please", "(#)", "\"#\"", "<#>", "[#]", "so:\n#\nthen", "it is #, or", "ask #.", "is it #?", "#! Yes", "'#'", "„#“", "\t#;",
				} {
					texts, arounds = append(texts, strings.ReplaceAll(around, "#", form)), append(arounds, around)
				}
			}
			stands := map[string]bool{}
			for i, got := range exported(t, texts...) {
				stand := placeholder.FindString(got.asked)
				if want := strings.ReplaceAll(arounds[i], "#", at+stand); stand == "" || got.asked != want || got.called != want {
					t.Errorf("%q is exported as %q, in arguments as %q", texts[i], got.asked, got.called)
				}
				stands[stand] = true
			}
			if len(stands) != 1 {
				t.Errorf("%q have %d pseudonyms", forms, len(stands))
			}
		}
	}
	named := exported(t, "Tel. 612 345 678 or mobile: 87654321")[0].asked
	if !regexp.MustCompile(`^Tel\. Phone-[a-z2-7]{8} or mobile: Phone-[a-z2-7]{8}$`).MatchString(named) {
		t.Errorf("numbers that a word names are exported: %q", named)
	}
}

func TestOrdinaryTextIsExportedAsItIs(t *testing.T) {
	texts := []string{
		"On 2026-11-20 at 12:30:45.012345678Z, 01.02.2026 10:15, from 01.02.26 - 05.03.26 and 11/20/2026.",
		"Between 01.02.2026 and 2026/11/21 12, in 2025-2026.",
		"It costs 1,234,567.89 EUR, 1.234.567,89 €, 1 234 567 or $0.123456789; 100000000 in all, 12 345 678 units, +15 %.",
		"c = a@b and x @ y; a@b.T is a product, mail me @ home at 5",
		"@property\ndef name(self):\n    return 1", "@app.route(\"/x\")\ndef x(): pass", "@functools.cache\nasync def f(a): pass", "    @Override\n    public String x() {",
		"@media (min-width: 3em) {}", "/** @param x the width */", "@one\n@two\nclass A:",
		"npm install @types/node@18.2.1 lodash@4.17.21 \"@angular/core\"", "oneclaw@v1.2.3, go1.25.1, 10.0.26100.1742, 192.168.100.200:8080",
		"550e8400-e29b-41d4-a716-046655440000 and 0xdeadbeef, sha256:0123456789abcdef0123",
		"x = y+12345678901; order 4711-0815; ISBN 978-3-16-148410-0; UTC+0100; 3.0141592653",
		"IT20 years later, AB12 is no account; DE89 3704 0044 0532 0130 01 has a wrong check digit",
	}
	for i, got := range exported(t, texts...) {
		if got.asked != texts[i] || got.called != texts[i] {
			t.Errorf("%q is exported as %q, in arguments as %q", texts[i], got.asked, got.called)
		}
	}
}
