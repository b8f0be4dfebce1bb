package telegram

import (
	"context"
	"net"
	"net/url"
	"regexp"
	"slices"
	"time"

	"oneclaw/internal/emulator/wire"
)

// allowedUpdates parses allowed_updates. It returns nil if that is missing or invalid.
func allowedUpdates(p *wire.Params) []string {
	var kinds []string
	if there, err := p.DecodeJSON("allowed_updates", &kinds); !there || err != nil {
		return nil
	}
	return append([]string{}, kinds...)
}

func getUpdates(ctx context.Context, a *api, p *wire.Params) (any, *apiError) {
	limit := 100
	if p.Text("limit") != "" {
		limit = int(min(max(p.Int("limit"), 1), 100))
	}
	wait := min(max(time.Duration(p.Int("timeout")), 0)*time.Second, maxPoll)
	ready, conflict := a.updates.longPoll(ctx, p.Int("offset"), limit, wait, allowedUpdates(p))
	if conflict != "" {
		return nil, errorf(409, "%s", conflict) // see conflictPoll
	}
	return ready, nil
}

var secretToken = regexp.MustCompile(`^[A-Za-z0-9_-]*$`)

// setWebhook replaces polling by a webhook. The service permits one call per second, which the emulator
// does not enforce.
func setWebhook(ctx context.Context, a *api, p *wire.Params) (any, *apiError) {
	hook := &webhook{URL: p.Text("url"), secret: p.Text("secret_token"), MaxConnections: defaultConnections, queues: map[string]*webhookQueue{}}
	if hook.URL == "" {
		return deleteWebhook(ctx, a, p)
	}
	if err := a.checkWebhook(hook.URL, hook.secret); err != nil {
		return nil, err
	}
	if p.Text("max_connections") != "" {
		hook.MaxConnections = min(max(p.Int("max_connections"), 1), maxConnections)
	}
	a.updates.replaceWebhook(hook, p.Bool("drop_pending_updates"), allowedUpdates(p))
	return true, nil
}

// checkWebhook refuses addresses to which the service does not post, and invalid secrets.
func (a *api) checkWebhook(raw, secret string) *apiError {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || a.cfg.LocalDir == ""):
		return badRequest("bad webhook: An HTTPS URL must be provided for webhook") // WebhookActor.cpp
	case len(secret) > maxSecret:
		return badRequest("secret token is too long") // Client.cpp
	case !secretToken.MatchString(secret):
		return badRequest("secret token contains unallowed characters") // Client.cpp
	case a.cfg.LocalDir != "" || a.cfg.WebhookClient != nil:
		return nil
	}
	return checkHost(u)
}

func checkHost(u *url.URL) *apiError {
	switch ip := net.ParseIP(u.Hostname()); {
	case u.Port() != "" && !slices.Contains([]string{"80", "88", "443", "8443"}, u.Port()):
		return badRequest("bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443") // WebhookActor.cpp
	case ip != nil && (ip.IsPrivate() || ip.IsLoopback() || ip.IsUnspecified()):
		return badRequest("bad webhook: IP address %s is reserved", ip) // WebhookActor.cpp
	}
	return nil
}

func deleteWebhook(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	a.updates.replaceWebhook(&webhook{}, p.Bool("drop_pending_updates"), nil)
	return true, nil
}

func getWebhookInfo(_ context.Context, a *api, _ *wire.Params) (any, *apiError) {
	return a.updates.webhookInfo(), nil
}
