package connections

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google"
	"oneclaw/toolgroups/mcp"
	"oneclaw/toolgroups/mcp/oauth"
	"oneclaw/toolgroups/signin"
)

// googleName is the name of Google accounts in commands.
const googleName = "google"

// Commands returns /connect, /disconnect and /mcp.
func (d *Handler) Commands() []bridge.Command {
	return []bridge.Command{
		d.connectCommand(),
		{CommandInfo: chats.CommandInfo{Name: "disconnect", Description: "Disconnect your account: /disconnect google", Personal: true}, Role: toolgroups.RoleStranger, Run: d.disconnect},
		{CommandInfo: chats.CommandInfo{Name: "mcp", Description: "MCP servers: list, add, remove (administrators)"}, Role: toolgroups.RoleAdmin, RunCard: bridge.AsCard(d.mcp)},
	}
}

// cutWord splits a text after its first word.
func cutWord(text string) (first, rest string) {
	first, rest, _ = strings.Cut(strings.TrimSpace(text), " ")
	return first, strings.TrimSpace(rest)
}

func (d *Handler) connect(ctx context.Context, call bridge.CommandCall) (string, error) {
	name, args := cutWord(call.Args)
	confirmed := func(ctx context.Context) error {
		if err := call.ForgetAccounts(ctx); err != nil {
			return err
		}
		return call.Author.Record(ctx, "connect", strings.ToLower(name))
	}
	switch {
	case strings.EqualFold(name, googleName):
		return d.cfg.Google.Connect(ctx, google.ConnectRequest{
			User: call.User, UserName: call.UserName, Chat: call.Chat, Direct: call.Direct, Admin: call.Role >= toolgroups.RoleAdmin, Args: args, OnConfirm: confirmed,
		})
	case name == "" || !d.cfg.Servers.HasServer(name):
		connected, err := d.connectedText(ctx, call)
		return connected + d.connectableText(call), err
	}
	return d.cfg.Servers.ConnectAccount(ctx, name, call.Role, oauth.Request{
		User: call.User, UserName: call.UserName, Chat: call.Chat, Direct: call.Direct, Args: args, OnConfirm: confirmed,
	})
}

// CommandFor returns the /connect command that a code stands for, while a sign-in of its sender waits for one in that
// chat: a person sends what the page shows. It is empty for all other messages. A wrong code belongs to the first such
// sign-in, which counts it.
func (d *Handler) CommandFor(ctx context.Context, m chats.Message) (string, error) {
	code := strings.TrimSpace(m.Text)
	if !signin.IsProof(code) {
		return "", nil
	}
	user, chat, found := m.SenderID(), m.Chat.String(), ""
	names := []string{googleName}
	for _, st := range d.cfg.Servers.Status() {
		if st.Server.Auth == mcp.AuthOAuth {
			names = append(names, st.Name)
		}
	}
	for _, name := range names {
		waits, matches, err := d.awaitsCode(ctx, name, user, chat, code)
		command := "/connect " + name + " " + code
		switch {
		case err != nil:
			return "", err
		case matches:
			return command, nil
		case waits && found == "":
			found = command
		}
	}
	return found, nil
}

func (d *Handler) awaitsCode(ctx context.Context, name, user, chat, code string) (waits, matches bool, err error) {
	if name == googleName {
		return d.cfg.Google.AwaitsCode(ctx, user, chat, code)
	}
	return d.cfg.Servers.AwaitsCode(ctx, name, user, chat, code)
}

// connectedText lists the accounts that the requester has connected. In a shared chat it is empty.
func (d *Handler) connectedText(ctx context.Context, call bridge.CommandCall) (string, error) {
	if !call.Direct {
		return "", nil
	}
	var out []string
	email, has, err := d.cfg.Google.Account(ctx, call.User)
	switch {
	case err != nil:
		return "", err
	case has && email != "":
		out = append(out, "Google ("+wording.EscapeMarkdown(email)+")")
	case has:
		out = append(out, "Google")
	}
	for _, st := range d.cfg.Servers.Status() {
		if st.Server.Auth != mcp.AuthOAuth {
			continue
		}
		has, err := d.cfg.Servers.IsConnected(ctx, st.Name, call.User)
		if err != nil {
			return "", err
		}
		if has {
			out = append(out, wording.EscapeMarkdown(st.Name))
		}
	}
	if len(out) == 0 {
		return "", nil
	}
	return "Connected: " + strings.Join(out, ", ") + ". ", nil
}

// connectableText lists the services at which the requester can connect an account.
func (d *Handler) connectableText(call bridge.CommandCall) string {
	var out []string
	if d.cfg.Google.IsConfigured() {
		out = append(out, "your Google account: `/connect google`")
	}
	for _, st := range d.cfg.Servers.Status() {
		role, _ := toolgroups.ParseRole(cmp.Or(st.Server.Role, "user"))
		if st.Server.Auth == mcp.AuthOAuth && call.Role >= role {
			out = append(out, fmt.Sprintf("your account at %s: `/connect %s`", st.Name, st.Name))
		}
	}
	switch {
	case len(out) > 0:
		return "I can connect " + strings.Join(out, ", ") + "."
	case call.Role >= toolgroups.RoleAdmin:
		return "There is nothing to connect here yet: /connect google says how Google is set up, /mcp how other servers are added."
	}
	return "There is nothing to connect here yet."
}

func (d *Handler) disconnect(ctx context.Context, call bridge.CommandCall) (string, error) {
	name, _ := cutWord(call.Args)
	isGoogle := strings.EqualFold(name, googleName)
	if isGoogle || mcp.ValidName(name) {
		if err := call.Author.Record(ctx, "disconnect", strings.ToLower(name)); err != nil {
			return "", err
		}
	}
	switch {
	case isGoogle:
		return d.cfg.Google.Disconnect(ctx, call.User)
	case name == "" || !mcp.ValidName(name):
		return "Which account? I can disconnect any account that you have connected, such as Google: `/disconnect google`.", nil
	}
	return d.cfg.Servers.Disconnect(ctx, name, call.User)
}

// ConnectedServices returns the names of the services at which a user (platform:id) has an account.
func (d *Handler) ConnectedServices(ctx context.Context, user string) (names []string, err error) {
	if _, has, err := d.cfg.Google.Account(ctx, user); err != nil {
		return nil, err
	} else if has {
		names = append(names, googleName)
	}
	for c, err := range oauth.Connections(ctx, d.cfg.Store) {
		if err != nil {
			return nil, err
		}
		if c.User == user {
			names = append(names, c.Server)
		}
	}
	return names, nil
}

// Forget disconnects a user's accounts, and ends sign-ins in progress. If a service cannot be
// reached, its tokens are deleted nevertheless.
func (d *Handler) Forget(ctx context.Context, user string) error {
	if _, err := d.cfg.Google.Disconnect(ctx, user); err != nil {
		return err
	}
	for c, err := range oauth.UserConnections(ctx, d.cfg.Store, user) {
		if err == nil {
			_, err = d.cfg.Servers.Disconnect(ctx, c.Server, user)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// usage is the answer to an invalid /mcp command.
const usage = "`/mcp` lists the servers, `/mcp NAME` tries one, `/mcp add NAME ADDRESS` adds one " +
	"(with `role=admin` for administrators alone, with `trust=hints` so that tools which only read, by the word of the server, do not ask), " +
	"`/mcp on NAME` adds one that /connect shows, `/mcp remove NAME` removes one."

func (d *Handler) mcp(ctx context.Context, call bridge.CommandCall) (string, error) {
	verb, args := cutWord(call.Args)
	switch {
	case verb == "" || strings.EqualFold(verb, "list"):
		return d.list(ctx)
	case strings.EqualFold(verb, "add"):
		return d.add(ctx, call, args)
	case strings.EqualFold(verb, "on"):
		return d.switchOn(ctx, call, args)
	case strings.EqualFold(verb, "remove"):
		return d.remove(ctx, call, args)
	case strings.EqualFold(verb, "allow"):
		return d.allow(ctx, call, args)
	case args == "" && d.cfg.Servers.HasServer(verb):
		text, err := d.cfg.Servers.Check(ctx, verb, call.User)
		return text + d.waitingNotice(verb), err
	}
	return usage, nil
}

// list returns the servers with their states, the imported ones, and the usage of /mcp.
func (d *Handler) list(ctx context.Context) (string, error) {
	all := d.cfg.Servers.Status()
	offers, err := listOffers(ctx, d.cfg.Store)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	if len(all) == 0 {
		out.WriteString("There are no MCP servers yet.\n")
	}
	for _, st := range all {
		health := d.healthText(st)
		if st.HasNews() {
			health += fmt.Sprintf("; **says what no administrator has allowed yet**, `/mcp %s` shows how", st.Name)
		}
		fmt.Fprintf(&out, "- **%s** (%s): %s\n", wording.EscapeMarkdown(st.Name), strings.Join(serverDetails(st), ", "), health)
	}
	for _, name := range slices.Sorted(maps.Keys(offers)) {
		fmt.Fprintf(&out, "- **%s** (%s): imported, and not switched on\n", wording.EscapeMarkdown(name), wording.InlineCode(offers[name].Host()))
	}
	return out.String() + "\n" + usage, nil
}

// serverDetails describes the configuration of a server.
func serverDetails(st mcp.Status) []string {
	where := "a program"
	if host := (Offer{URL: st.Server.URL}).Host(); host != "" {
		where = wording.InlineCode(host)
	}
	out := []string{where}
	if st.Server.Auth == mcp.AuthOAuth {
		out = append(out, "each person connects an account")
	}
	if st.Server.Role != "" && st.Server.Role != "user" {
		out = append(out, "for the role "+st.Server.Role)
	}
	if st.Added {
		return append(out, "added in a chat")
	}
	return append(out, "from the settings")
}

// healthText describes the state of a server.
func (d *Handler) healthText(st mcp.Status) string {
	tools := "its tools are not known yet"
	if st.Tools > 0 {
		tools = st.CountTools()
	}
	switch {
	case st.Problem != "":
		wait := max(st.NextRetry.Sub(d.cfg.Now()), 0)
		return fmt.Sprintf("does not work: %s; next try in %s (%s)", wording.InlineCode(st.Problem), wording.ShortDuration(wait), tools)
	case st.Connected:
		return "works, " + tools
	}
	return "not in use, " + tools
}

// maxNoticed bounds the changes in a notice, which does not say how to allow them.
const maxNoticed = 20

// changeNotice lists what a server says and no administrator has allowed yet, for administrators. If texts
// is true, it contains the whole new descriptions, and how to allow what it lists.
func changeNotice(st mcp.Status, texts bool) string {
	if len(st.PendingChanges) == 0 {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "The MCP server **%s** says what no administrator has allowed yet:\n\n", wording.EscapeMarkdown(st.Name))
	for i, change := range st.PendingChanges {
		if i == maxNoticed && !texts {
			fmt.Fprintf(&out, "- and %s more\n", wording.Plural(len(st.PendingChanges)-i, "change", "changes"))
			break
		}
		what := "it"
		if change.Tool != "" {
			what = wording.InlineCode(change.Tool)
		}
		out.WriteString("- " + what + " " + change.Description)
		if texts && change.NewText != "" {
			out.WriteString(": " + wording.InlineCode(change.NewText))
		}
		out.WriteString("\n")
	}
	out.WriteString("\nUntil an administrator allows it, the tools keep their old descriptions and ask as before. ")
	if !texts {
		fmt.Fprintf(&out, "`/mcp %s` shows the new words, and how to allow them.", st.Name)
		return out.String()
	}
	fmt.Fprintf(&out, "`/mcp allow %s %s` takes over what is shown here.", st.Name, st.ChangesCode)
	if st.ChangesLeft > 0 {
		fmt.Fprintf(&out, " After that I show %s more.", wording.Plural(st.ChangesLeft, "change", "changes"))
	}
	return out.String()
}

// waitingNotice returns the notice about a server's changes that wait to be allowed.
func (d *Handler) waitingNotice(name string) string {
	for _, st := range d.cfg.Servers.Status() {
		if strings.EqualFold(st.Name, name) && len(st.PendingChanges) > 0 {
			return "\n\n" + changeNotice(st, true)
		}
	}
	return ""
}

// allow allows the changes of a server that the code names; without a code it shows them.
func (d *Handler) allow(ctx context.Context, call bridge.CommandCall, args string) (string, error) {
	name, code := cutWord(args)
	if !d.cfg.Servers.HasServer(name) {
		return usage, nil
	}
	if code == "" {
		return cmp.Or(strings.TrimSpace(d.waitingNotice(name)), fmt.Sprintf("No change of %s waits to be allowed.", name)), nil
	}
	if err := call.Author.Record(ctx, "mcp allow", name); err != nil {
		return "", err
	}
	done, err := d.cfg.Servers.AllowChanges(ctx, name, code)
	switch {
	case err != nil:
		return "", err
	case !done:
		return "That code does not match the waiting change, so nothing was allowed. " +
			cmp.Or(strings.TrimSpace(d.waitingNotice(name)), fmt.Sprintf("No change of %s waits to be allowed.", name)), nil
	}
	d.cfg.Logger.Info("change of an MCP server allowed", "mcp_server", name, "user", call.User)
	return fmt.Sprintf("Allowed: %s now uses its new descriptions.", name) + d.waitingNotice(name), nil
}

// add runs /mcp add.
func (d *Handler) add(ctx context.Context, call bridge.CommandCall, args string) (string, error) {
	name, one, fault := parseAdd(args)
	if fault != "" {
		return fault, nil
	}
	text, _, err := d.addServer(ctx, call, name, one)
	return text, err
}

// addServer adds a server if it can be connected to. It returns the answer as Markdown, and whether the
// server was added.
func (d *Handler) addServer(ctx context.Context, call bridge.CommandCall, name string, one addedServer) (text string, added bool, err error) {
	switch {
	case strings.EqualFold(name, googleName):
		return "That is the name of the Google accounts; choose another.", false, nil
	case len(d.cfg.Servers.Status()) >= maxServers:
		return fmt.Sprintf("There are %d servers, and no more can be added in a chat.", maxServers), false, nil
	}
	if before, err := d.storedServer(ctx, name); err != nil || before.URL != "" {
		return d.answerStored(ctx, call, name, one, before, err)
	}
	tried, err := d.cfg.Servers.Try(ctx, name, one.server())
	if err != nil {
		return "Nothing was added: " + strings.TrimSuffix(err.Error(), ".") + ".", false, nil
	}
	one.Auth, one.AddedBy, one.AddedAt = tried.Server.Auth, call.User, d.cfg.Now()
	if err := call.Author.Record(ctx, "mcp add", name); err != nil {
		return "", false, err
	}
	_, err = storage.Save(ctx, d.cfg.Store, serverPrefix+name, one, storage.Absent)
	if errors.Is(err, storage.ErrConflict) { // added meanwhile through another replica
		before, err := d.storedServer(ctx, name)
		return d.answerStored(ctx, call, name, one, before, err)
	}
	if err != nil {
		return "", false, fmt.Errorf("store the MCP server: %w", err)
	}
	if err := d.cfg.Servers.Pin(ctx, name, tried); err != nil {
		return "", false, err
	}
	if err := d.Load(ctx); err != nil {
		return "", false, err
	}
	d.cfg.Logger.Info("MCP server added", "mcp_server", name, "user", call.User)
	return addedText(name, one, mcp.Status{Name: name, Line: tried.Line, Tools: tried.Tools, LeftOut: tried.LeftOut}), true, nil
}

// storedServer returns the record of an added server; the zero value if there is none.
func (d *Handler) storedServer(ctx context.Context, name string) (addedServer, error) {
	one, _, err := storage.Load[addedServer](ctx, d.cfg.Store, serverPrefix+name)
	return one, err
}

// answerStored answers a command that adds a server which is stored already. If the user has added the
// same one, the command is repeated after a crash.
func (d *Handler) answerStored(ctx context.Context, call bridge.CommandCall, name string, one, before addedServer, err error) (string, bool, error) {
	switch {
	case err != nil:
		return "", false, err
	case before.AddedBy != call.User || before.URL != one.URL || before.Role != one.Role || before.Trust != one.Trust:
		return fmt.Sprintf("Nothing was added: there is a server %s already.", name), false, nil
	}
	if err := d.Load(ctx); err != nil {
		return "", false, err
	}
	state := mcp.Status{Name: name}
	for _, st := range d.cfg.Servers.Status() {
		if st.Name == name {
			state = st
		}
	}
	return addedText(name, before, state), true, nil
}

// addedText returns the answer after adding a server, as Markdown.
func addedText(name string, one addedServer, st mcp.Status) string {
	text := fmt.Sprintf("Added %s with %s.", name, st.CountTools())
	if len(st.LeftOut) > 0 {
		text = strings.TrimSuffix(text, ".") + fmt.Sprintf(": `/mcp %s` says why.", name)
	}
	if st.Tools == 0 { // not known after a restart
		text = fmt.Sprintf("Added %s.", name)
	}
	if one.Auth == mcp.AuthOAuth {
		text = fmt.Sprintf("Added %s. Each person connects their own account with `/connect %s`; I know its tools once the first person has done so.", name, name)
	}
	text += " " + st.DescribeLine()
	switch {
	case one.Trust == mcp.TrustHints && one.Auth == mcp.AuthOAuth:
		return text + " Every call asks before it runs; once I know its tools, administrators can allow those to run at once of which it says that they only read."
	case one.Trust == mcp.TrustHints:
		return text + " They ask before they run, except those that it says only read."
	}
	return text + " Every call asks before it runs (`trust=hints` behind the address lets those run at once of which the server says that they only read)."
}

// parseAdd parses the arguments of /mcp add. fault is the answer to invalid ones.
func parseAdd(args string) (name string, one addedServer, fault string) {
	words := strings.Fields(args)
	if len(words) < 2 {
		return "", addedServer{}, usage
	}
	one.URL, one.Trust = strings.Trim(words[1], "<>"), mcp.TrustNone
	if before, _, ok := strings.Cut(one.URL, "|"); ok {
		one.URL = before // Slack writes links as <address|text>
	}
	for _, w := range words[2:] {
		key, value, ok := strings.Cut(w, "=")
		switch {
		case ok && key == "role" && slices.Contains([]string{"user", "admin", "owner"}, value):
			one.Role = value
		case ok && key == "trust" && (value == mcp.TrustNone || value == mcp.TrustHints):
			one.Trust = value
		default:
			return "", addedServer{}, "I do not understand " + wording.InlineCode(w) + ". " + usage
		}
	}
	return words[0], one, ""
}

// remove removes an added server and the accounts connected there, or an imported server that is not
// switched on. It may be repeated.
func (d *Handler) remove(ctx context.Context, call bridge.CommandCall, args string) (string, error) {
	name, _ := cutWord(args)
	if !mcp.ValidName(name) {
		return usage, nil
	}
	all := d.cfg.Servers.Status() // once: others may add and remove servers meanwhile
	i := slices.IndexFunc(all, func(st mcp.Status) bool { return strings.EqualFold(st.Name, name) })
	if i >= 0 {
		if name = all[i].Name; !all[i].Added {
			return fmt.Sprintf("%s stands in the settings of the bot and is removed there.", name), nil
		}
	}
	_, err := d.cfg.Store.Get(ctx, serverPrefix+name)
	if _, offered := d.cfg.Store.Get(ctx, offerPrefix+name); offered == nil && i < 0 {
		if err := call.Author.Record(ctx, "mcp remove", name); err != nil {
			return "", err
		}
		return fmt.Sprintf("Removed %s.", name), d.cfg.Store.Delete(ctx, offerPrefix+name, storage.Any)
	}
	if errors.Is(err, storage.ErrNotFound) && i < 0 {
		return fmt.Sprintf("There is no server %s.", wording.InlineCode(name)), nil
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return "", fmt.Errorf("read the MCP server: %w", err)
	}
	if err := call.Author.Record(ctx, "mcp remove", name); err != nil {
		return "", err
	}
	people, err := d.cfg.Servers.Forget(ctx, name)
	if err != nil {
		return "", err
	}
	if err := d.cfg.Store.Delete(ctx, serverPrefix+name, storage.Any); err != nil {
		return "", fmt.Errorf("remove the MCP server: %w", err)
	}
	if err := d.Load(ctx); err != nil {
		return "", err
	}
	d.cfg.Logger.Info("MCP server removed", "mcp_server", name, "user", call.User, "people", people)
	text := fmt.Sprintf("Removed %s.", name)
	if people > 0 {
		text += fmt.Sprintf(" %s had connected an account there; I have forgotten the tokens and withdrawn the permissions where that could be told.",
			wording.Plural(people, "person", "people"))
	}
	return text, nil
}
