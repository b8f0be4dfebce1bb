package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/internal/app"
	"oneclaw/internal/bill"
	"oneclaw/internal/budget"
	"oneclaw/internal/config"
	"oneclaw/internal/settings"
	"oneclaw/toolgroups/search"
)

// pointedBegin is the mark in front of what quotes, threads and pictures cost.
const pointedBegin = "<!-- what is pointed at -->\n"

// addition is what the messages of a conversation bring besides their words.
type addition struct {
	name string
	// to is what a turn brings, behind the answer of the one before.
	to func(turn int, before string) string
}

func additions() []addition {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	others := func(how chats.ReferenceKind, n int) string {
		var list []conversation.Quote
		for i := range n {
			list = append(list, conversation.Quote{Quoted: chats.Quoted{Kind: how, By: []string{"Ann Lee", "Bob"}[i%2], Time: at, Text: strings.Repeat("We could do it on Monday. ", 6)}})
		}
		return conversation.FormatQuotes(list, 1500, true)
	}
	return []addition{
		{"each question replies to the answer before it", func(_ int, before string) string {
			if before == "" {
				return ""
			}
			return conversation.FormatQuotes([]conversation.Quote{{Quoted: chats.Quoted{Kind: chats.RefReply, FromBot: true, Text: before, Time: at}, Known: true}}, 2500, true)
		}},
		{"every fourth passes on a text of 2,000 characters", func(turn int, _ string) string {
			if turn%4 != 0 {
				return ""
			}
			return conversation.FormatQuotes([]conversation.Quote{{Quoted: chats.Quoted{Kind: chats.RefForward, By: "Ann Lee", Time: at, Text: strings.Repeat("We could do it on Monday. ", 77)}}}, 2500, true)
		}},
		{"a thread: its last 20 messages, then 2 new ones with each question", func(turn int, _ string) string {
			if turn == 0 {
				return others(chats.RefThread, 20)
			}
			return others(chats.RefThread, 2)
		}},
		{"a photo with the first question, kept", func(turn int, _ string) string {
			if turn > 0 {
				return ""
			}
			return strings.Repeat(" a", 1600) // what stands for one of 1280 x 960 pixels
		}},
	}
}

// TestBillDocsOfWhatIsPointedAt writes down what quotes, threads and kept pictures add to the
// conversations of the bill, and compares that of the shortest with the docs.
func TestBillDocsOfWhatIsPointedAt(t *testing.T) {
	t.Parallel()
	names, begins := []string{"chat"}, "| chat |"
	if updatesDocs() {
		names, begins = nil, "|"
	}
	conversations, err := bill.Conversations(names)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if updatesDocs() {
		b.WriteString("| conversation | what comes with its messages | tokens | billed |\n|---|---|---|---|\n")
	}
	cfg := config.Default()
	err = app.WithEmptyBot(t.Context(), cfg, func(bot *app.Bot) error {
		prices := app.CachePrices(cfg)
		tables := slices.DeleteFunc(bill.Providers(prices, settings.ContextTokens), func(table bill.Provider) bool { return table.Name != "gpt-5" })
		comparison, err := bill.New(bill.Config{
			Registry: bot.Registry(), Prompt: bot.Prompt(), ToolSearch: cfg.Tools.ToolSearch,
			Prices: prices, Providers: tables, DollarPrice: func(string) (budget.Price, bool) { return budget.Price{}, false }, Routings: []search.Routing{search.RoutingAuto},
		})
		if err != nil {
			return err
		}
		for _, c := range conversations {
			plain, err := comparison.Compare(t.Context(), c)
			if err != nil {
				return err
			}
			for _, a := range additions() {
				with, before := c, ""
				with.Turns = slices.Clone(c.Turns)
				for i := range with.Turns {
					turn := &with.Turns[i]
					if brings := a.to(i, before); brings != "" {
						turn.User = brings + "\n" + turn.User
					}
					before = turn.Answer
				}
				lines, err := comparison.Compare(t.Context(), with)
				if err != nil {
					return err
				}
				sent, billed := lines[0].Input-plain[0].Input, lines[0].Billed-plain[0].Billed
				fmt.Fprintf(&b, "| %s | %s | %s (+%.0f %%) | %s (+%.0f %%) |\n", c.Name, a.name,
					budget.FormatCount(int64(sent)), float64(sent)/float64(plain[0].Input)*100, budget.FormatCount(int64(math.RoundToEven(billed))), billed/plain[0].Billed*100)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	compareDocs(t, pointedBegin, begins, b.String())
}
