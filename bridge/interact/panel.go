package interact

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"oneclaw/bridge/queue"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// PanelKind is the kind of the card of /tools.
const PanelKind = "tools"

// Groups per page and per row of buttons.
const (
	panelPage = 8
	panelRow  = 2
)

// maxPanel bounds the list of groups with descriptions, in bytes: a longer one would not fit into one
// message everywhere.
const maxPanel = 2500

// Prefixes of the values of the panel's buttons.
const (
	choiceLoad = "load"
	choicePage = "page"
	choiceAll  = "all"
)

// Rounds computes which tools a model is offered.
type Rounds interface {
	// Round returns the tools that the next request of a conversation would offer its model, and the
	// loaded groups.
	Round(ctx context.Context, scope toolgroups.Scope) (*toolgroups.Round, []string, error)
}

// Panel shows the groups of a conversation.
type Panel struct {
	Rounds Rounds
	// Tools returns the current groups.
	Tools func() *toolgroups.Registry
	// Savings returns a sentence about what loading on demand has saved, or "" for none; it may be nil.
	Savings func(ctx context.Context, scope toolgroups.Scope) (string, error)
	// Scope returns the scope of a job's sender.
	Scope func(ctx context.Context, j *queue.Run) (toolgroups.Scope, error)
	// Answer makes a card the answer of a job. On a platform without buttons, it returns the text to
	// answer with instead.
	Answer func(ctx context.Context, j *queue.Run, card Card) (string, error)
	// Load enqueues a job that loads a group.
	Load func(ctx context.Context, press Press, group string) (Result, error)
	Log  *slog.Logger
}

// HandleCommand answers /tools: it shows what is loaded and its cost, with buttons to load a group and
// to show all.
func (p Panel) HandleCommand(ctx context.Context, j *queue.Run, _ string) (string, error) {
	scope, err := p.Scope(ctx, j)
	if err != nil {
		return "", err
	}
	card, err := p.Card(ctx, scope, 0)
	if err != nil {
		return "", err
	}
	if len(card.Choices) == 0 {
		return card.Text, nil
	}
	return p.Answer(ctx, j, card)
}

// Card returns the card for the current state of a conversation.
func (p Panel) Card(ctx context.Context, scope toolgroups.Scope, page int) (Card, error) {
	round, loaded, err := p.Rounds.Round(ctx, scope)
	if err != nil {
		return Card{}, err
	}
	registry := p.Tools()
	offered := round.Tools()
	shown, turn := panelGroups(loadable(registry, loaded, offered, scope.Role), page)
	text := "Just ask: I load the tools that I need."
	var uses strings.Builder
	for _, g := range shown {
		uses.WriteString("\n- " + describeUse(g))
	}
	if uses.Len() > 0 {
		text += " For example:\n" + uses.String()
	}
	var names []string
	for _, name := range loaded {
		if g, known := registry.Group(name); known {
			name = groupName(g)
		}
		names = append(names, name)
	}
	text += fmt.Sprintf("\n\nLoaded: %s.", wording.JoinOr(names, "none"))
	card := Card{Kind: PanelKind, Text: text, Choices: panelButtons(shown, turn)}
	if len(registry.Groups()) > 0 {
		card.Choices = append(card.Choices, []Choice{{Label: "Show all", Value: choiceAll}})
	}
	return card, nil
}

// describeAll describes each group, and to administrators how much loading them on demand saves.
func (p Panel) describeAll(ctx context.Context, scope toolgroups.Scope) (string, error) {
	round, loaded, err := p.Rounds.Round(ctx, scope)
	if err != nil {
		return "", err
	}
	registry := p.Tools()
	offered, every := round.Tools(), toolgroups.NewSet(p.Tools, registry.GroupNames()).Round().Tools()
	text := groupList(registry, loaded, scope.Role) + fmt.Sprintf("%d of %d tools are loaded.", len(offered), len(every))
	if p.Savings != nil && scope.Role >= toolgroups.RoleAdmin {
		saved, err := p.Savings(ctx, scope)
		if err != nil {
			p.Log.Warn("the savings cannot be computed", "chat", scope.Chat, "err", err)
		} else if saved != "" {
			text += " " + saved
		}
	}
	return text + " A button loads a group now, /clear puts all away.", nil
}

// groupList describes all groups that a user with a role may load, or lists only their names if that is too long for a
// message.
func groupList(registry *toolgroups.Registry, loaded []string, role toolgroups.Role) string {
	var text strings.Builder
	names := make([]string, 0, len(registry.Groups()))
	for _, g := range registry.Groups() {
		if role < g.Role {
			continue
		}
		mark := "○"
		if slices.Contains(loaded, g.Name) {
			mark = "●"
		}
		names = append(names, mark+" "+GroupLabel(g))
		fmt.Fprintf(&text, "%s %s\n\n", mark, describeUse(g))
	}
	if text.Len() > maxPanel {
		return wording.Clip(strings.Join(names, ", "), maxPanel) + "\n\n"
	}
	return text.String()
}

// loadable returns the groups that a user with this role could load and whose tools are not offered to
// the model yet.
func loadable(registry *toolgroups.Registry, loaded []string, offered []toolgroups.Tool, role toolgroups.Role) []toolgroups.Group {
	return slices.DeleteFunc(registry.Groups(), func(g toolgroups.Group) bool {
		return len(g.Tools) == 0 || role < g.Role || slices.Contains(loaded, g.Name) ||
			slices.ContainsFunc(offered, func(t toolgroups.Tool) bool { return t.Name == g.Tools[0].Name })
	})
}

// panelGroups returns the groups on a page, and the buttons that turn it.
func panelGroups(groups []toolgroups.Group, page int) (shown []toolgroups.Group, turn []Choice) {
	pages := (len(groups) + panelPage - 1) / panelPage
	page = min(max(page, 0), max(pages-1, 0))
	if page > 0 {
		turn = append(turn, Choice{Label: "‹ Back", Value: choicePage + " " + strconv.Itoa(page-1)})
	}
	if page < pages-1 {
		turn = append(turn, Choice{Label: "More ›", Value: choicePage + " " + strconv.Itoa(page+1)})
	}
	return groups[page*panelPage : min((page+1)*panelPage, len(groups))], turn
}

func panelButtons(shown []toolgroups.Group, turn []Choice) [][]Choice {
	var rows [][]Choice
	for row := range slices.Chunk(shown, panelRow) {
		var choices []Choice
		for _, g := range row {
			choices = append(choices, Choice{Label: GroupLabel(g), Value: choiceLoad + " " + g.Name})
		}
		rows = append(rows, choices)
	}
	if turn != nil {
		rows = append(rows, turn)
	}
	return rows
}

// GroupLabel returns the label of a group's button.
func GroupLabel(g toolgroups.Group) string {
	return wording.Clip(cmp.Or(g.DisplayName, g.Name), MaxLabel)
}

// describeUse returns the name of a group with what a user could ask for, or with its description, in Markdown.
func describeUse(g toolgroups.Group) string {
	if g.Source != toolgroups.SourceBuiltin || g.Example == "" {
		return "**" + groupName(g) + "** – " + DescribeGroup(g)
	}
	return "**" + groupName(g) + "** – " + wording.EscapeMarkdown("“"+g.Example+"”")
}

// groupName returns the name of a group in Markdown. One that does not come with the program has its own, which no server
// has worded.
func groupName(g toolgroups.Group) string {
	if g.Source != toolgroups.SourceBuiltin {
		return g.Name
	}
	return wording.EscapeMarkdown(GroupLabel(g))
}

// DescribeGroup returns the description of a group in Markdown. One that does not come with the program has that of a
// server, between quotation marks.
func DescribeGroup(g toolgroups.Group) string {
	if g.Source != toolgroups.SourceBuiltin {
		return wording.EscapeRevealed(wording.Quote(g.Description, toolgroups.MaxDescription))
	}
	return wording.EscapeRevealed(g.Description)
}

// HandlePress handles the buttons of the panel.
func (p Panel) HandlePress(ctx context.Context, press Press) (Result, error) {
	what, value, _ := strings.Cut(press.Choice, " ")
	switch {
	case press.Expired:
		return Result{}, nil
	case what == choiceLoad:
		return p.Load(ctx, press, value)
	}
	page, _ := strconv.Atoi(value) // written by the bridge
	card, err := p.Card(ctx, press.Scope, page)
	if err != nil {
		return Result{}, err
	}
	if what == choiceAll {
		if card.Text, err = p.describeAll(ctx, press.Scope); err != nil {
			return Result{}, err
		}
		card.Choices = card.Choices[:max(0, len(card.Choices)-1)]
	}
	return Result{Text: card.Text, Choices: NonNilRows(card.Choices)}, nil
}

// NonNilRows returns rows as a non-nil slice, so that an empty one removes the buttons.
func NonNilRows(rows [][]Choice) [][]Choice {
	if rows == nil {
		return [][]Choice{}
	}
	return rows
}
