package connections

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// CardKind is the kind of the card that /connect shows to administrators.
const CardKind = "connect"

// switchTime bounds how long a press waits for the server that it switches on.
const switchTime = 15 * time.Second

// maxButtons bounds the servers that the card describes, each with a button.
const maxButtons = 30

// offered returns the servers that can be switched on: those of the catalogue at which the bot can register
// as a client, then imported ones by name. byHand are those of the catalogue that need a client first.
func (d *Handler) offered(ctx context.Context) (offered, byHand []Entry, err error) {
	imported, err := listOffers(ctx, d.cfg.Store)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range d.cfg.Catalogue.Servers {
		switch {
		case d.cfg.Servers.HasServer(e.Name):
		case e.Client == ClientByHand:
			byHand = append(byHand, e)
		default:
			offered = append(offered, e)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(imported)) {
		if !d.cfg.Servers.HasServer(name) && !slices.ContainsFunc(offered, func(e Entry) bool { return strings.EqualFold(e.Name, name) }) {
			offered = append(offered, Entry{Name: name, Title: name, URL: imported[name].URL})
		}
	}
	return offered, byHand, nil
}

// switchCard returns a card with a text, the servers that can be switched on, and a button for each.
func (d *Handler) switchCard(ctx context.Context, text string) (interact.Card, error) {
	offered, byHand, err := d.offered(ctx)
	if err != nil {
		return interact.Card{}, err
	}
	card := interact.Card{Kind: CardKind}
	var out strings.Builder
	out.WriteString(text)
	if len(offered) > 0 {
		out.WriteString("\n\n**You can switch these on.** People sign in with their own accounts, and every call asks first.\n")
	}
	for _, e := range offered[:min(len(offered), maxButtons)] {
		what := e.Purpose
		if what == "" {
			what = "imported, at " + wording.InlineCode(Offer{URL: e.URL}.Host())
		}
		fmt.Fprintf(&out, "- **%s**: %s\n", wording.EscapeMarkdown(e.Title), what)
		card.Choices = append(card.Choices, []interact.Choice{{Label: wording.OneLine("Switch on "+e.Title, interact.MaxLabel), Value: e.Name}})
	}
	if len(offered) > maxButtons {
		var names []string
		for _, e := range offered[maxButtons:] {
			names = append(names, wording.InlineCode(e.Name))
		}
		out.WriteString("\n`/mcp on NAME` switches on the others: " + strings.Join(names, ", ") + ".\n")
	}
	if len(byHand) > 0 {
		out.WriteString("\n**These need a client of yours first**, set as `client_id` under `mcp.servers` in oneclaw.yaml:\n")
	}
	for _, e := range byHand {
		fmt.Fprintf(&out, "- **%s**: %s ([how](%s), address %s)\n", wording.EscapeMarkdown(e.Title), e.Purpose, e.Guide, wording.InlineCode(e.URL))
	}
	if !d.cfg.Catalogue.LookedUp.IsZero() && len(offered)+len(byHand) > 0 {
		fmt.Fprintf(&out, "\nFrom the services' documentation of %s, not tried: `oneclaw doctor --live` tries them.", d.cfg.Catalogue.LookedUp.Format("2 January 2006"))
	}
	card.Text = out.String()
	return card, nil
}

// HandlePress switches on the server whose button was pressed.
func (d *Handler) HandlePress(ctx context.Context, press interact.Press) (interact.Result, error) {
	if press.Expired {
		return interact.Result{}, nil
	}
	if press.Role < toolgroups.RoleAdmin {
		return interact.Result{Toast: "Sorry, this is for my administrators."}, nil
	}
	text, err := d.switchOn(ctx, bridge.CommandCall{Scope: press.Scope, Author: press.Author}, press.Choice)
	if err != nil {
		return interact.Result{}, err
	}
	card, err := d.switchCard(ctx, text)
	return interact.Result{Text: card.Text, Choices: interact.NonNilRows(card.Choices)}, err
}

// switchOn adds a server of the catalogue or an imported one, and returns the result as Markdown.
func (d *Handler) switchOn(ctx context.Context, call bridge.CommandCall, name string) (string, error) {
	if d.cfg.Servers.HasServer(name) {
		return fmt.Sprintf("%s is on already.", wording.InlineCode(name)), nil
	}
	offered, _, err := d.offered(ctx)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(offered, func(e Entry) bool { return strings.EqualFold(e.Name, name) })
	if i < 0 {
		return fmt.Sprintf("No server %s waits to be switched on. /connect shows all.", wording.InlineCode(name)), nil
	}
	asking, cancel := context.WithTimeout(ctx, switchTime)
	defer cancel()
	text, added, err := d.addServer(asking, call, offered[i].Name, offered[i].added())
	if err == nil && added {
		err = d.cfg.Store.Delete(ctx, offerPrefix+offered[i].Name, storage.Any)
	}
	return text, err
}

// connectCommand returns /connect, which shows administrators what can be switched on.
func (d *Handler) connectCommand() bridge.Command {
	return bridge.Command{
		CommandInfo: chats.CommandInfo{Name: "connect", Description: "Connect your account: /connect google", Personal: true}, Role: toolgroups.RoleStranger,
		RunCard: func(ctx context.Context, call bridge.CommandCall) (interact.Card, error) {
			text, err := d.connect(ctx, call)
			if err != nil || call.Args != "" || call.Role < toolgroups.RoleAdmin {
				return interact.Card{Text: text}, err
			}
			return d.switchCard(ctx, text)
		},
	}
}
