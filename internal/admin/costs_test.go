package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/bridge/audit"
	"oneclaw/internal/admin"
	"oneclaw/internal/admin/frame"
	"oneclaw/internal/bill"
	"oneclaw/internal/budget"
	"oneclaw/internal/learning"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

// reckoner stands for what plays conversations.
type reckoner struct {
	tables []bill.Provider
	of     func(ctx context.Context, log string, with learning.Selection) (learning.Comparison, error)
	asked  int
}

func (c *reckoner) Providers() []bill.Provider { return c.tables }

func (c *reckoner) Compare(ctx context.Context, log string, with learning.Selection) (learning.Comparison, error) {
	c.asked++
	return c.of(ctx, log, with)
}

// real has conversations played with a registry of one tool.
func (r *harness) real() *reckoner {
	r.Helper()
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Groups: []toolgroups.Group{{Name: "pdf", Tools: []toolgroups.Tool{{
		Name: "read_pdf", Description: "Reads.", Parameters: json.RawMessage(`{"type":"object","properties":{}}`),
		Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
			r.Error("a tool runs")
			return toolgroups.Result{}, nil
		},
	}}}}})
	if err != nil {
		r.Fatal(err)
	}
	prices := func(string) search.Prices { return search.Prices{Write: 1, Read: .1, MinTokens: 1024} }
	money := func(model string) (budget.Price, bool) {
		return budget.Price{Input: 1, Output: 2}, model != "local-model"
	}
	costs := learning.NewCosts(learning.CostsConfig{Store: r.store, Price: money, BillConfig: func() bill.Config {
		return bill.Config{Registry: reg, Prompt: "You help.", Prices: prices, DollarPrice: money, Providers: bill.Providers(prices, func(string) int { return 0 })}
	}})
	return &reckoner{tables: costs.Providers(), of: costs.Compare}
}

// What a conversation would have cost stands beside what it did, for the models and ways of
// routing that are chosen, without a word of what was said. It is played once, until somebody
// who has seen that asks again.
func TestCosts(t *testing.T) {
	r := newRig(t)
	costs := r.real()
	r.cfg.Costs = costs
	r.append("telegram:7/1", r.turn("telegram:7/1/text", `{"w":"my words"}`, r.now))
	handler, err := admin.New(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.handler = handler
	form := []string{"log", "telegram:7/1", "costs", "0"}
	plain := r.get(frame.ViewURL("conversation", "log", "telegram:7/1"))
	if costs.asked != 0 || !strings.Contains(plain, `value="Claude, OpenRouter"`) || !strings.Contains(plain, `value="search"`) {
		t.Errorf("before it is asked for, it is played %d times:\n%s", costs.asked, plain)
	}
	address := frame.ViewURL("conversation", form...) + "&models=gpt-5.6&models=no+cache&routings=groups&routings=auto"
	page := r.get(address)
	for _, want := range []string{"1 call is left out", "As it was", `value="no cache" checked`, `value="auto" checked`, "Nothing is sent anywhere"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "words") || strings.Contains(page, `value="Claude" checked`) {
		t.Errorf("the page shows what was said, or what nobody chose:\n%s", page)
	}
	var lines []string
	for _, row := range r.file(address, "costs")[1:] {
		lines = append(lines, strings.Join([]string{row[0], row[1], row[4], row[3], row[2]}, ","))
		if row[4] == "0" || row[5] == "0" || row[8] == "0" {
			t.Errorf("%q has no requests or tokens", row)
		}
	}
	want := []string{
		"As it was,,2,,$0.0022", // 2100 tokens in, 50 out
		"no cache (local-model),groups,", "no cache (local-model),auto: ", "gpt-5.6,groups,", "gpt-5.6,auto: ",
	}
	if !slices.EqualFunc(lines, want, strings.HasPrefix) || !strings.HasSuffix(lines[2], "not known") || strings.Count(strings.Join(lines, ""), ", the least") == 0 {
		t.Errorf("compared are %q", lines)
	}
	r.now = r.now.Add(time.Minute)
	if again := r.get(address); again != page || costs.asked != 1 {
		t.Errorf("the page that shows itself anew plays it %d times", costs.asked)
	}
	r.get(strings.Replace(address, "costs=0", "costs="+strconv.FormatInt(r.now.Add(-time.Minute).UnixMilli(), 10), 1))
	if costs.asked != 2 {
		t.Errorf("who has seen it and asks again is told what was: played %d times", costs.asked)
	}
	entries, err := audit.List(t.Context(), r.store, 10)
	if err != nil || len(entries) != 1 || entries[0].Action != "export" || entries[0].By != "telegram:1" || entries[0].Chat != audit.PageChat || !entries[0].At.Equal(r.now.Add(-time.Minute)) ||
		!strings.HasPrefix(entries[0].About, "costs.csv of /admin/conversation?") {
		t.Errorf("the audit has %+v, %v", entries, err)
	}
}

func TestCostsThatCannotBeSaid(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
		kept bool
	}{
		"too long":     {learning.ErrTooLong, "too long to be played", true},
		"empty":        {fmt.Errorf("x has %w", bill.ErrEmpty), "no answered message", true},
		"unknown":      {fmt.Errorf("%w the model %q", learning.ErrUnknown, script), "Nothing was played", true},
		"anything":     {errors.New("my words"), "The log says why", true},
		"another goes": {learning.ErrBusy, "only one is at a time", false},
	} {
		t.Run(name, func(t *testing.T) {
			costs := &reckoner{of: func(context.Context, string, learning.Selection) (learning.Comparison, error) {
				return learning.Comparison{}, c.err
			}}
			r := newRig(t, func(cfg *admin.Config) { cfg.Costs = costs })
			r.append("telegram:7/1", r.turn("telegram:7/1/text", "my words", r.now))
			handler, err := admin.New(r.cfg)
			if err != nil {
				t.Fatal(err)
			}
			r.handler = handler
			address := frame.ViewURL("conversation", "log", "telegram:7/1", "costs", "0", "models", script, "routings", script)
			r.get(address)
			page := r.get(address)
			if !strings.Contains(page, c.want) || strings.Contains(page, "words") || strings.Contains(page, "<script>a") || (costs.asked == 1) != c.kept {
				t.Errorf("played %d times, the page is\n%s", costs.asked, page)
			}
			if response := r.serve(http.MethodGet, frame.ViewURL("conversation", "log", "telegram:8/1", "costs", "0"), ""); response.StatusCode != http.StatusNotFound {
				t.Errorf("a conversation that there is not: %s", response.Status)
			}
		})
	}
}

// Playing ends before the page does, and when nobody waits for it.
func TestCostsThatTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		costs := &reckoner{of: func(ctx context.Context, _ string, _ learning.Selection) (learning.Comparison, error) {
			<-ctx.Done()
			return learning.Comparison{}, ctx.Err()
		}}
		r := newRig(t, func(cfg *admin.Config) { cfg.Costs = costs })
		r.append("telegram:7/1", r.turn("telegram:7/1/text", "words", r.now))
		response := r.serve(http.MethodGet, "/admin/conversation?"+url.Values{"log": {"telegram:7/1"}, "costs": {"0"}}.Encode(), "")
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(body), "Choose fewer models") {
			t.Errorf("%s, %v\n%s", response.Status, err, body)
		}
	})
}
