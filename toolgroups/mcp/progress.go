package mcp

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"oneclaw/toolgroups"
)

// progress forwards the progress of the calls on a connection to their reporters.
type progress struct {
	mu        sync.Mutex
	lastToken int
	reporters map[string]func(step string)
}

// watch forwards the server's progress notifications for a call until end is called. It does
// nothing if ctx has no reporter.
func (p *progress) watch(ctx context.Context, params *sdk.CallToolParams, redact redactor) (end func()) {
	if !toolgroups.HasReporter(ctx) {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastToken++
	token := strconv.Itoa(p.lastToken)
	if p.reporters == nil {
		p.reporters = make(map[string]func(string))
	}
	p.reporters[token] = func(step string) { toolgroups.Report(ctx, redact.line(step)) }
	params.SetProgressToken(token)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.reporters, token)
	}
}

// handleNotification handles a progress notification from the server.
func (p *progress) handleNotification(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
	token := fmt.Sprint(req.Params.ProgressToken) // some servers send the number that it looks like
	p.mu.Lock()
	tell := p.reporters[token]
	p.mu.Unlock()
	if tell != nil {
		tell(cmp.Or(req.Params.Message, progressText(req.Params.Progress, req.Params.Total)))
	}
}

// progressText formats a progress; it returns "" if the total is unknown.
func progressText(done, total float64) string {
	switch {
	case total <= 0:
		return ""
	case total == float64(int(total)) && done == float64(int(done)) && total != 100:
		return fmt.Sprintf("%d of %d", int(done), int(total))
	}
	return fmt.Sprintf("%d %%", int(100*done/total))
}
