package signin

import (
	"context"
	"strings"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/toolgroups"
)

// Commands returns the chat commands that sign administrators in, and end all their sessions.
func (svc *Service) Commands() []bridge.Command {
	return []bridge.Command{{
		CommandInfo: chats.CommandInfo{Name: "admin", Description: "Open the admin pages"},
		Role:        toolgroups.RoleAdmin, Ephemeral: true, Run: svc.runCommand,
		Secret: func(ctx context.Context, call bridge.CommandCall) (string, error) {
			return svc.createTicket(ctx, call.User, call.UserName)
		},
	}}
}

// runCommand answers with a placeholder in the link, which is replaced as the answer is sent: no
// record contains the link.
func (svc *Service) runCommand(ctx context.Context, call bridge.CommandCall) (string, error) {
	switch args := strings.TrimSpace(call.Args); {
	case !call.Direct:
		return "That link is only for you. Please ask me in a direct chat.", nil
	case args == "out":
		if err := svc.SignOut(ctx, call.User, "sign-out everywhere"); err != nil {
			return "", err
		}
		return "All your sessions are signed out, and your links no longer work.", nil
	case args != "":
		return "`/admin` gives you a link to my pages, `/admin out` signs you out everywhere.", nil
	case svc.site.closedReason != "":
		return svc.site.closedReason, nil
	}
	text := "This link signs you in to my pages, once, within five minutes. Keep it to yourself.\n\n" + svc.linkURL(queue.SecretPlaceholder)
	if svc.site.publicHost == "" {
		text += "\n\nOpens on the server only. For phones, set `ONECLAW_PUBLIC_URL`."
	}
	return text, nil
}
