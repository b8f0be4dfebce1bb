package search

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"oneclaw/toolgroups"
)

func TestDefaultWhenMissing(t *testing.T) {
	want := Config{Enabled: DeferAuto, ThresholdPct: 10, SearchDefaultLimit: 5, MaxSearchLimit: 20}
	for _, v := range []any{nil, map[string]any{}, ""} {
		if diff := cmp.Diff(want, parseConfig(v)); diff != "" {
			t.Errorf("%v: %s", v, diff)
		}
	}
	if diff := cmp.Diff(want, DefaultConfig()); diff != "" {
		t.Error(diff)
	}
}

func modes() map[string]struct {
	in   any
	want DeferMode
	warn int
} {
	type row = struct {
		in   any
		want DeferMode
		warn int
	}
	block := func(v any) any { return map[string]any{"enabled": v} }
	return map[string]row{
		"bool true is auto":            {true, DeferAuto, 0},
		"bool false is off":            {false, DeferOff, 0},
		"explicit on":                  {block("on"), DeferOn, 0},
		"garbage is auto":              {block("perhaps"), DeferAuto, 1},
		"true for block":               {true, DeferAuto, 0},
		"false in block":               {block(false), DeferOff, 0},
		"true in block":                {block(true), DeferAuto, 0},
		"string yes":                   {"Yes", DeferOn, 0},
		"string 0":                     {block("0"), DeferOff, 0},
		"learn, which is gone":         {map[string]any{"learn": true}, DeferAuto, 1},
		"number 1":                     {block(1), DeferOn, 0},
		"off with space":               {block(" OFF "), DeferOff, 0},
		"a list in place of the block": {[]any{"on"}, DeferAuto, 1},
		"empty":                        {block(nil), DeferAuto, 0},
	}
}

func TestModesOfTheBlock(t *testing.T) {
	for name, tt := range modes() {
		t.Run(name, func(t *testing.T) {
			got := parseConfig(tt.in)
			if got.Enabled != tt.want || len(got.Warnings) != tt.warn {
				t.Errorf("got %s with warnings %q, want %s with %d", got.Enabled, got.Warnings, tt.want, tt.warn)
			}
		})
	}
}

func TestThresholdClamped(t *testing.T) {
	for in, want := range map[any]int{150: 100, -5: 0, 0: 0, 100: 100, "25": 25, 1e30: 100} {
		c := parseConfig(map[string]any{"threshold_pct": in})
		if c.ThresholdPct != want {
			t.Errorf("%v became %d, want %d", in, c.ThresholdPct, want)
		}
	}
}

func TestSearchLimitsClamped(t *testing.T) {
	c := parseConfig(map[string]any{"max_search_limit": 999, "search_default_limit": 77})
	if c.MaxSearchLimit != 50 || c.SearchDefaultLimit != 50 || len(c.Warnings) != 2 {
		t.Errorf("got %+v", c)
	}
	c = parseConfig(map[string]any{"max_search_limit": 3})
	if c.MaxSearchLimit != 3 || c.SearchDefaultLimit != 3 || len(c.Warnings) != 0 {
		t.Errorf("a default of 5 does not follow a maximum of 3: %+v", c)
	}
}

// Values out of range are clamped with a message.
func TestOutOfRangeWarns(t *testing.T) {
	c := parseConfig(map[string]any{"threshold_pct": 101, "max_search_limit": 0, "search_default_limit": "many"})
	if c.ThresholdPct != 100 || c.MaxSearchLimit != 1 || c.SearchDefaultLimit != 1 {
		t.Errorf("got %+v", c)
	}
	all := strings.Join(c.Warnings, "\n")
	for _, want := range []string{"threshold_pct is 101", "max_search_limit is 0", `search_default_limit is "many"`} {
		if !strings.Contains(all, want) {
			t.Errorf("no warning has %q:\n%s", want, all)
		}
	}
}

func TestConfigFromYAML(t *testing.T) {
	var file struct {
		ToolSearch Config `yaml:"tool_search"`
	}
	read := func(text string) error {
		file.ToolSearch = DefaultConfig()
		dec := yaml.NewDecoder(strings.NewReader(text))
		dec.KnownFields(true)
		return dec.Decode(&file)
	}
	for text, want := range map[string]Config{
		"tool_search: true":  {Enabled: "auto", ThresholdPct: 10, SearchDefaultLimit: 5, MaxSearchLimit: 20},
		"tool_search: false": {Enabled: "off", ThresholdPct: 10, SearchDefaultLimit: 5, MaxSearchLimit: 20},
		"tool_search: off":   {Enabled: "off", ThresholdPct: 10, SearchDefaultLimit: 5, MaxSearchLimit: 20},
		"tool_search: {enabled: on, threshold_pct: 7, max_search_limit: 9}": {Enabled: "on", ThresholdPct: 7, SearchDefaultLimit: 5, MaxSearchLimit: 9},
	} {
		if err := read(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, file.ToolSearch); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	err := read("tool_search:\n  enabled: on\n  treshold_pct: 3\n")
	if err == nil || !strings.Contains(err.Error(), "line 3") || !strings.Contains(err.Error(), "treshold_pct") {
		t.Errorf("an unknown key gives %v", err)
	}
}

// sized are tools whose schemas cost about so many tokens.
func sized(tokens int) []toolgroups.Tool {
	big := tool("big", "", `"a":{"type":"string"}`)
	for n := toolgroups.EstimateTokens([]toolgroups.Tool{big}); n < tokens; n = toolgroups.EstimateTokens([]toolgroups.Tool{big}) {
		big.Description += strings.Repeat("x", 4*(tokens-n))
	}
	return []toolgroups.Tool{big}
}

// decide asks for tools as they are.
func decide(c Config, tools []toolgroups.Tool, contextTokens int) decision {
	return c.decide(len(tools), toolgroups.EstimateTokens(tools), contextTokens)
}

func TestDecide(t *testing.T) {
	for _, tt := range []struct {
		name            string
		mode            DeferMode
		tokens, context int
		want            bool
	}{
		{"off never activates", "off", 1_000_000, 200_000, false},
		{"off defers nothing", "off", 30_000, 0, false},
		{"on activates with any", "on", 60, 1_000_000, true},
		{"on", "on", 60, 0, true},
		{"auto below threshold", "auto", 19_999, 200_000, false},
		{"auto below", "auto", 100, 128_000, false},
		{"auto at threshold", "auto", 20_000, 200_000, true},
		{"auto above threshold", "auto", 50_000, 200_000, true},
		{"auto above", "auto", 12_800, 128_000, true},
		{"the built-in tools at 128k", "auto", 12_900, 128_000, true},
		{"the built-in tools at 200k", "auto", 12_900, 200_000, false},
		{"unknown context below", "auto", 19_999, 0, false},
		{"unknown context at", "auto", 20_000, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := DefaultConfig()
			c.Enabled = tt.mode
			got := decide(c, sized(tt.tokens), tt.context)
			if got.Active != tt.want || got.Tokens != tt.tokens {
				t.Errorf("got %+v, want active %v with %d tokens", got, tt.want, tt.tokens)
			}
		})
	}
}

func TestZeroDeferrableNeverActivates(t *testing.T) {
	for _, mode := range []DeferMode{"on", "auto", "off"} {
		c := DefaultConfig()
		c.Enabled, c.ThresholdPct = mode, 0
		if decide(c, nil, 8000).Active {
			t.Errorf("%s: active without any tool to defer", mode)
		}
	}
}

func TestTokenEstimateProportional(t *testing.T) {
	small := toolgroups.EstimateTokens(core()[:1])
	var ten []toolgroups.Tool
	for range 10 {
		ten = append(ten, sized(2*small)...)
	}
	if got := toolgroups.EstimateTokens(ten); got <= 10*small {
		t.Errorf("ten large tools cost %d, one small %d", got, small)
	}
}

// Sizes are estimated by four characters a token.
func TestSizeIsCharactersByFour(t *testing.T) {
	tools := []toolgroups.Tool{tool("t", "äöü", "")}
	chars := len([]rune(string(toolgroups.EncodeTools(tools))))
	if got := decide(DefaultConfig(), tools, 1000).Tokens; got != chars/4 {
		t.Errorf("got %d, want %d", got, chars/4)
	}
}

// Many tools on a small context switch auto on, few on a large one do not.
func TestFifteenToolsOnASmallContext(t *testing.T) {
	c := DefaultConfig()
	if !decide(c, toolsOf(many("extra", 15)), 4_000).Active {
		t.Error("fifteen tools do not activate on a context of 4,000 tokens")
	}
	if decide(c, toolsOf(many("extra", 4)), 200_000).Active {
		t.Error("four tools activate on a context of 200,000 tokens")
	}
}

func TestDecisionIsLoggedWithBothNumbers(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	log.LogAttrs(context.Background(), slog.LevelInfo, "routing", slog.Any("search", decide(DefaultConfig(), sized(500), 128_000)))
	for _, want := range []string{"search.tokens=500", "search.threshold=12800", "search.active=false"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %s", want, out.String())
		}
	}
}

func TestConfigIsWrittenAsItIsRead(t *testing.T) {
	for _, c := range []Config{
		{}, DefaultConfig(), {Enabled: DeferOff, ThresholdPct: 0, SearchDefaultLimit: 2, MaxSearchLimit: 7},
	} {
		text, err := yaml.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		want, got := c, Config{}
		if want.Enabled == "" {
			want = DefaultConfig()
		}
		if err := yaml.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}
