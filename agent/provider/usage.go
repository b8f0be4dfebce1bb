package provider

import "oneclaw/agent"

// Counts are the token counts that a server reports over one of OpenAI's APIs.
type Counts struct {
	Input, Output, Total, Cached, Written int
}

// Usage returns the usage that counts stand for. In the APIs, Input contains the tokens of the cache, and
// Output those of reasoning. But gateways in front of Anthropic count the cache beside the input (Portkey
// 1.15.2): then the total is the sum of all, or the cache holds more than the input. Gemini and xAI count
// reasoning in the total alone (Clarifai PR 978, vercel/ai PR 12425); Claude never does, so the rest of its
// total is input whose writing to the cache is not reported.
func (c Counts) Usage(family Family) agent.Usage {
	cache := c.Cached + c.Written
	u := agent.Usage{Input: c.Input, Output: c.Output, Cached: c.Cached, CacheWritten: c.Written}
	if cache > c.Input || cache > 0 && c.Total == c.Input+cache+c.Output {
		u.Input += cache
	}
	if rest := c.Total - u.Input - u.Output; rest > 0 && family == FamilyClaude {
		u.Input += rest
	} else if rest > 0 {
		u.Output += rest
	}
	return u
}
