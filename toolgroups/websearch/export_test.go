package websearch

import (
	"net/http"

	"oneclaw/internal/guard"
	"oneclaw/toolgroups"
)

// Read makes sources of what a service answers.
func Read(service string, status int, body []byte, count int) ([]toolgroups.Source, string, error) {
	s, q := Service{Name: service}, query{Text: "x", Count: count}
	pages, err := s.parseReply(guard.Reply{Response: &http.Response{StatusCode: status}, Data: body}, q)
	r := formatResult(q, []answer{{s, pages}}, nil)
	return r.Sources, r.Text, err
}
