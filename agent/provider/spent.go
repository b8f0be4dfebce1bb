package provider

import "oneclaw/agent"

// Spent returns the usage of an attempt that failed after the server had sent so many bytes of a reply:
// what the server has reported, and an estimate of the rest. Providers bill such replies, often without
// saying how much.
func Spent(req *agent.Request, reported agent.Usage, received int) agent.Usage {
	if received > 0 && reported.Input == 0 {
		reported.Input = req.EstimateTokens()
	}
	reported.Output = max(reported.Output, received/agent.BytesPerToken)
	return reported
}
