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

// progress forwards progress of the calls on a connection, by their progress tokens.
type progress struct {
	mu   sync.Mutex
	last int
	told map[string]func(step string)
}

// watch forwards the server's progress notifications for a call until end is called. It does
// nothing if the call is not watched.
func (p *progress) watch(ctx context.Context, params *sdk.CallToolParams, redact redactor) (end func()) {
	if !toolgroups.HasReporter(ctx) {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	token := strconv.Itoa(p.last)
	if p.told == nil {
		p.told = make(map[string]func(string))
	}
	p.told[token] = func(step string) { toolgroups.Report(ctx, redact.line(step)) }
	params.SetProgressToken(token)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.told, token)
	}
}

// notified handles a notification of the server.
func (p *progress) notified(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
	token, _ := req.Params.ProgressToken.(string)
	p.mu.Lock()
	tell := p.told[token]
	p.mu.Unlock()
	if tell != nil {
		tell(cmp.Or(req.Params.Message, progressText(req.Params.Progress, req.Params.Total)))
	}
}

// progressText says how much of something is done; the total may be unknown.
func progressText(done, total float64) string {
	switch {
	case total <= 0:
		return ""
	case total == float64(int(total)) && done == float64(int(done)) && total != 100:
		return fmt.Sprintf("%d of %d", int(done), int(total))
	}
	return fmt.Sprintf("%d %%", int(100*done/total))
}
