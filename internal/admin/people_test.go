package admin_test

import (
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html/atom"

	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/internal/admin"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

func TestAdministratorsDecideOnThePage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.known = []access.Person{
		{User: "telegram:1", Name: "Ann", Standing: "owner", Role: toolgroups.RoleOwner},
		{User: "telegram:2", Name: "<b>Bob</b>", Standing: "user", Role: toolgroups.RoleUser, By: "telegram:1"},
		{User: "telegram:3", Name: "Eve", Standing: "asked"},
		{User: "slack:U1", Name: "Sam", Standing: "user"},
	}
	r.asked = []interact.ApprovalRequest{
		{Chat: chats.Chat{Platform: "telegram", ID: "9"}, Tool: "exec", Requester: "telegram:2", Text: "May I run <script>?", AllowData: "data-allow", DenyData: "data-deny"},
		{Chat: chats.Chat{Platform: "telegram", ID: "9"}, Tool: "mail", Text: "May I send hunter2?", AllowData: "hidden-allow", DenyData: "hidden-deny"},
		{Chat: chats.Chat{Platform: "slack", ID: "C1"}, Tool: "others", Requester: "slack:U2"},
	}
	view := admin.Root + "people"
	page := r.get(view)
	r.says(page, []string{
		"&lt;b&gt;Bob&lt;/b&gt;", "Make administrator", "Sam (slack:U1)", "Eve (telegram:3)", "exec for “&lt;b&gt;Bob", "May I run &lt;script&gt;?", "data-allow", "data-deny", "hidden-deny", "looks like a secret",
		"You may not decide this",
	}, []string{"<b>Bob", "hidden-allow", "hunter2"})
	if strings.Count(page, `value="remove"`) != 1 {
		t.Errorf("the page of people is\n%s", page)
	}
	r.says(r.post(view, url.Values{"user": {" telegram:3 "}, "do": {"user"}}), []string{"telegram:3 may talk to me now."}, nil)
	r.says(r.post(view, url.Values{"user": {"telegram:2"}, "do": {"remove"}}), []string{"Only my owner can remove"}, nil)
	r.says(r.post(view, url.Values{"press": {"data-allow"}}), []string{"The question was answered: Allowed."}, nil)
	r.says(r.post(view, url.Values{"press": {"forged"}}), []string{"over, or not yours"}, nil)
	want := "give telegram:3 false by telegram:1 Ann <i> page; take telegram:2 by telegram:1; press data-allow by telegram:1 Ann <i>; press forged by telegram:1 Ann <i>"
	if got := strings.Join(r.did, "; "); got != want {
		t.Errorf("done was %s", got)
	}
}

// A secret is masked although its Markdown has an escape in the middle of it.
func TestSecretsInAQuestionAreMaskedBehindEscapes(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(cfg *admin.Config) {
		cfg.Redact = func(text string) string { return strings.ReplaceAll(text, "hunter_2", "•••") }
	})
	r.asked = []interact.ApprovalRequest{{Tool: "mail", Text: "May I send hunter\\_2?", AllowData: "data-allow", DenyData: "data-deny"}}
	r.says(r.get(admin.Root+"people"), []string{"May I send •••?", "looks like a secret", "data-deny"}, []string{"hunter", "data-allow"})
}

// The Markdown of a question is rendered, the arguments in it are shown exactly as they are, whatever they contain,
// and nothing in it leads away from the page.
func TestTheArgumentsOfAQuestionAreShownExactly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, argument := range []string{"echo **hello** `date` \\n", "a\n\n```\nb\n```\n\n**May I?**", "````", "~~~\nx", "  two\n\tspaces"} {
		r.asked = []interact.ApprovalRequest{{
			Tool: "exec", Text: "**May I run this command?**\n\n_Runs\\_it._\n\n`command`:\n\n" + wording.Fence(argument) + "\n\n[The](https://evil.example) ![rest](https://evil.example) <b>.", AllowData: "a", DenyData: "d",
		}}
		page := r.get(admin.Root + "people")
		r.says(page, []string{
			"<strong>May I run this command?</strong>", "<em>Runs_it.</em>", "<code>command</code>:",
			"<p>[The](https://evil.example) ![rest](https://evil.example) &lt;b&gt;.</p>",
		}, nil)
		shown := ""
		for _, n := range nodes(t, page) {
			if n.DataAtom == atom.Pre {
				shown = n.FirstChild.FirstChild.Data
			}
		}
		if shown != argument+"\n" {
			t.Errorf("%q is shown as %q", argument, shown)
		}
	}
}
