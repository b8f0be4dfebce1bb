package bridge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"oneclaw/agent"
	"oneclaw/bridge/cards"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/sessions"
	"oneclaw/bridge/wording"
	"oneclaw/internal/runes"
	"oneclaw/toolgroups"
)

// cardTools is the kind of the card that /tools answers with.
const cardTools = "tools"

// The buttons of the panel: so many groups at a time, so many in a row.
const (
	panelPage = 8
	panelRow  = 2
)

// maxPanel is up to which length, in bytes, the list of groups stands in the card itself:
// with more it would not fit into one message everywhere.
const maxPanel = 2500

// The values of its buttons begin with these words.
const (
	choiceLoad = "load"
	choicePage = "page"
)

// tools shows the groups, what they cost, and buttons to load one by hand.
func tools(ctx context.Context, b *Bridge, j *jobs.Job, _ string) (string, error) {
	session, err := sessions.Current(ctx, b.store, j.Message.Chat)
	if err != nil {
		return "", err
	}
	scope, err := b.scope(j, session)
	if err != nil {
		return "", err
	}
	card, err := b.panel(ctx, scope, 0)
	if err != nil {
		return "", err
	}
	if len(card.Choices) == 0 {
		return strings.TrimSpace(card.Lead + "\n\n" + card.Text), nil
	}
	return b.answerCard(ctx, j, card)
}

// panel makes the card for a conversation as it is now.
func (b *Bridge) panel(ctx context.Context, scope toolgroups.Scope, page int) (cards.Card, error) {
	loaded, err := sessions.LoadedGroups(ctx, b.store, scope.Session)
	if err != nil {
		return cards.Card{}, err
	}
	registry := b.cfg.Tools()
	offered := toolgroups.NewSet(b.cfg.Tools, loaded).Route(b.cfg.Router, toolgroups.Facts{
		Scope: scope, Recorded: b.recordedRouting(ctx, scope.Session),
	}).Tools()
	all := toolgroups.NewSet(b.cfg.Tools, registry.GroupNames()).Round().Tools()
	text := fmt.Sprintf("The model is offered %d of %d tools here: about %d tokens a request instead of %d.",
		len(offered), len(all), toolgroups.EstimateTokens(offered), toolgroups.EstimateTokens(all))
	if b.cfg.Savings != nil {
		saved, err := b.cfg.Savings(ctx, scope)
		if err != nil {
			b.log.Warn("what was saved is not known", "chat", scope.Chat, "err", err)
		} else if saved != "" {
			text += " " + saved
		}
	}
	card := cards.Card{Kind: cardTools, Choices: panelButtons(loadable(registry, loaded, offered, scope.Role), page)}
	list := groupList(registry, loaded)
	text += "\n\nLoaded in this conversation: " + wording.ListOr(loaded, "none yet") + ". /clear unloads them."
	if len(card.Choices) > 0 {
		text += " The model loads what it needs by itself; a button loads a group now."
	}
	if len(list) > maxPanel {
		card.Lead, card.Text = list, text
	} else {
		card.Text = list + text
	}
	return card, nil
}

// groupList names all groups and marks the loaded ones.
func groupList(registry *toolgroups.Registry, loaded []string) string {
	var text strings.Builder
	for _, g := range registry.Groups() {
		mark := "○"
		if slices.Contains(loaded, g.Name) {
			mark = "●"
		}
		fmt.Fprintf(&text, "%s **%s** (%d) – %s\n\n", mark, g.Name, len(g.Tools), g.Description)
	}
	return text.String()
}

// loadable are the groups that somebody of this role could load and whose tools the model
// is not offered yet.
func loadable(registry *toolgroups.Registry, loaded []string, offered []toolgroups.Tool, role toolgroups.Role) []toolgroups.Group {
	return slices.DeleteFunc(registry.Groups(), func(g toolgroups.Group) bool {
		return len(g.Tools) == 0 || role < g.Role || slices.Contains(loaded, g.Name) ||
			slices.ContainsFunc(offered, func(t toolgroups.Tool) bool { return t.Name == g.Tools[0].Name })
	})
}

// panelButtons are those of one page.
func panelButtons(groups []toolgroups.Group, page int) [][]cards.Choice {
	pages := (len(groups) + panelPage - 1) / panelPage
	page = min(max(page, 0), max(pages-1, 0))
	var rows [][]cards.Choice
	shown := groups[page*panelPage : min((page+1)*panelPage, len(groups))]
	for row := range slices.Chunk(shown, panelRow) {
		var choices []cards.Choice
		for _, g := range row {
			choices = append(choices, cards.Choice{Label: panelLabel(g), Value: choiceLoad + " " + g.Name})
		}
		rows = append(rows, choices)
	}
	var turn []cards.Choice
	if page > 0 {
		turn = append(turn, cards.Choice{Label: "‹ Back", Value: choicePage + " " + strconv.Itoa(page-1)})
	}
	if page < pages-1 {
		turn = append(turn, cards.Choice{Label: "More ›", Value: choicePage + " " + strconv.Itoa(page+1)})
	}
	if turn != nil {
		rows = append(rows, turn)
	}
	return rows
}

func panelLabel(g toolgroups.Group) string {
	return runes.Clip(cmp.Or(g.DisplayName, g.Name), cards.MaxLabel)
}

// pressTools handles the buttons of the panel.
func (b *Bridge) pressTools(ctx context.Context, press cards.Press) (cards.Result, error) {
	what, value, _ := strings.Cut(press.Choice, " ")
	switch {
	case press.Expired:
		return cards.Result{}, nil
	case what == choiceLoad:
		return b.loadLater(ctx, press, value)
	}
	page, _ := strconv.Atoi(value) // the bridge wrote it
	card, err := b.panel(ctx, press.Scope, page)
	if err != nil {
		return cards.Result{}, err
	}
	return cards.Result{Text: card.Text, Choices: keepRows(card.Choices)}, nil
}

// keepRows has no buttons mean none, not that they stay.
func keepRows(rows [][]cards.Choice) [][]cards.Choice {
	if rows == nil {
		return [][]cards.Choice{}
	}
	return rows
}

// loadLater has a group loaded when it is its turn. The job is on disk when it returns.
func (b *Bridge) loadLater(ctx context.Context, press cards.Press, name string) (cards.Result, error) {
	group, ok := b.cfg.Tools().Group(name)
	switch {
	case !ok:
		return cards.Result{Toast: "This tool group is not there any more."}, nil
	case press.Role < group.Role:
		return cards.Result{Toast: "Sorry, this tool group is for administrators."}, nil
	}
	l := b.lanes.Of(press.Place)
	defer b.lanes.Leave(l)
	waiting, running := l.Load()
	if waiting >= b.cfg.MaxWaiting {
		return cards.Result{Toast: toastBusy}, nil
	}
	m := chats.Message{
		Chat: press.Place, ID: jobs.Hash(press.Token, press.Session, name), Kind: jobs.KindLoad, Direct: press.Direct, Text: name, Time: b.cfg.Now(),
		User: strings.TrimPrefix(press.User, press.Place.Platform+":"), UserName: press.UserName,
	}
	if err := b.check(m); err != nil {
		return cards.Result{}, err
	}
	j := &jobs.Job{Message: m, Card: press.Token, Seq: b.nextSeq(), State: jobs.StateOpen, Accepted: b.cfg.Now()}
	if err := b.enqueue(ctx, j); err != nil {
		return cards.Result{}, err
	}
	toast := "Loading " + panelLabel(group) + "."
	if running {
		toast = "I load " + panelLabel(group) + " when I am done with the present answer."
	}
	return cards.Result{Toast: toast}, nil
}

// attemptLoad loads a group and has the card show it.
func (b *Bridge) attemptLoad(ctx context.Context, j *jobs.Job) error {
	session, err := sessions.Current(ctx, b.store, j.Message.Chat)
	if err == nil {
		err = session.Overtaken(j)
	}
	if err != nil {
		return err
	}
	j.Generation = session.Generation
	scope, err := b.scope(j, session)
	if err != nil {
		return err
	}
	refused, err := b.loadByHand(ctx, j, scope)
	if err != nil {
		return err
	}
	card, err := b.panel(ctx, scope, 0)
	if err != nil {
		return err
	}
	if refused != "" {
		card.Text += "\n\n_" + wording.Escape(refused) + "_"
	}
	kept, err := b.cards.Update(ctx, j.Card, func(kept *cards.Kept) {
		if kept.Open() {
			kept.Take(cards.Result{Text: card.Text, Choices: keepRows(card.Choices)})
			kept.Version++
		}
	})
	if err == nil && kept != nil {
		err = b.settled(ctx, kept)
	}
	if err != nil {
		return err
	}
	return b.settle(j, jobs.StateDone)
}

// loadByHand puts a call of load_tool_group and its result into the conversation, as if
// the model had made it, in one write; a group that is loaded already changes nothing. It
// returns why it could not be loaded.
func (b *Bridge) loadByHand(ctx context.Context, j *jobs.Job, scope toolgroups.Scope) (refused string, err error) {
	h, err := b.history.Take(ctx, scope.Session)
	if err != nil {
		return "", err
	}
	defer func() { b.history.Give(h, err) }()
	loaded, err := sessions.LoadedGroups(ctx, b.store, h.Log)
	if err != nil || slices.Contains(loaded, j.Message.Text) {
		return "", err
	}
	round := toolgroups.NewSet(b.cfg.Tools, loaded).Route(b.cfg.Router, toolgroups.Facts{
		Scope: scope, Recorded: b.recordedRouting(ctx, h.Log),
	})
	messages, fault := agent.LoadByHand(ctx, round, scope, j.Message.Text)
	if fault != nil {
		return fault.Message, nil
	}
	if h.Last == 0 {
		if err := b.list(ctx, j, scope); err != nil {
			return "", err
		}
	}
	for i := range messages {
		messages[i].Time = b.cfg.Now()
	}
	if !j.Message.Direct {
		messages[0].Sender = j.Message.UserName
	}
	return "", b.append(context.WithoutCancel(ctx), j, h, messages...)
}
