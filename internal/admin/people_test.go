package admin_test

import (
	"net/url"
	"strings"
	"testing"

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
	}
	r.asked = []interact.ApprovalRequest{
		{Chat: chats.Chat{Platform: "telegram", ID: "9"}, Tool: "exec", Requester: "telegram:2", Text: "May I run <script>?", AllowData: "data-allow", DenyData: "data-deny"},
		{Chat: chats.Chat{Platform: "telegram", ID: "9"}, Tool: "mail", Text: "May I send hunter2?", AllowData: "hidden-allow", DenyData: "hidden-deny"},
		{Chat: chats.Chat{Platform: "slack", ID: "C1"}, Tool: "others", Requester: "slack:U2"},
	}
	view := admin.Root + "people"
	page := r.get(view)
	r.says(page, []string{
		"&lt;b&gt;Bob&lt;/b&gt;", "Make administrator", "slack:U1", "Eve (telegram:3)", "exec for &lt;b&gt;Bob", "May I run &lt;script&gt;?", "data-allow", "data-deny", "hidden-deny", "looks like a secret",
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

// A question is shown without its marks, and the arguments in it exactly as they are, whatever they contain.
func TestTheArgumentsOfAQuestionAreShownExactly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, argument := range []string{"echo **hello** `date` \\n", "a\n\n```\nb\n```\n\n**May I?**", "````", "~~~\nx", "  two\n\tspaces"} {
		r.asked = []interact.ApprovalRequest{{
			Tool: "exec", Text: "**May I run this command?**\n\n_Runs\\_it._\n\n`command`:\n\n" + wording.Fence(argument) + "\n\nThe rest.", AllowData: "a", DenyData: "d",
		}}
		var blocks []string
		for _, n := range nodes(t, r.get(admin.Root+"people")) {
			if n.Data == "blockquote" {
				blocks = append(blocks, n.FirstChild.Data)
			}
		}
		if len(blocks) != 3 || blocks[1] != argument || !strings.HasPrefix(blocks[0], "May I run this command?\n\nRuns_it.\n\ncommand:") || strings.TrimSpace(blocks[2]) != "The rest." {
			t.Errorf("%q is shown as %q", argument, blocks)
		}
	}
}
