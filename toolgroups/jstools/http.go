package jstools

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html/charset"

	"oneclaw/internal/guard"
	"oneclaw/toolgroups"
)

type fetchArgs struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// response is the result of fetch for a script.
type response struct {
	OK         bool              `json:"ok"`
	Status     int               `json:"status"`
	StatusText string            `json:"statusText"`
	URL        string            `json:"url"`
	Headers    map[string]string `json:"headers"`
	Body       string            `json:"body"`
	// Note is set if the body was cut.
	Note string `json:"note"`
}

func (h *host) fetch(ctx context.Context, in fetchArgs) (any, error) {
	switch in.Method {
	case http.MethodGet, http.MethodHead:
		if in.Body != "" {
			return nil, fmt.Errorf("a %s request has no body", in.Method)
		}
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return nil, fmt.Errorf("the method %.20q is none of GET, HEAD, POST, PUT, PATCH and DELETE", in.Method)
	}
	ctx, err := h.checkSending(ctx, in.Method, in.URL, in.Headers)
	if err != nil {
		return nil, err
	}
	req, err := guard.NewRequest(ctx, in.Method, in.URL, in.Body, in.Headers)
	if err != nil {
		return nil, err
	}
	res, err := guard.Fetch(h.tools.client, req, guard.MaxReply)
	if err != nil {
		return nil, requestError(ctx, err)
	}
	out := response{
		OK: isSuccess(res.Response), Status: res.StatusCode, StatusText: http.StatusText(res.StatusCode),
		URL: res.Request.URL.String(), Headers: map[string]string{}, Body: bodyText(res),
	}
	for name, values := range res.Header {
		out.Headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	if res.Truncated {
		out.Note = fmt.Sprintf("\n[cut: only the first %d bytes of the body were read; downloadToFile keeps all of it]", guard.MaxReply)
	}
	return out, nil
}

// maxRequests bounds the requests of one run of a script.
const maxRequests = 100

// checkSending returns an error if the script may only read, and the request might change something or
// carry data in its headers: no person has approved that. These are the requests for which http_request
// asks. It also returns an error for an address about which webfetch would ask. Neither holds at a host
// that the code of a user tool names, because an administrator has approved that code; elsewhere a user tool
// may send only until the conversation holds words of others, which could name the address. What the script has
// read itself counts as such words, but at hosts that were named before. The context is that of the request.
func (h *host) checkSending(ctx context.Context, method, address string, headers map[string]string) (context.Context, error) {
	if h.requests.Add(1) > maxRequests {
		return nil, fmt.Errorf("one run makes at most %d requests", maxRequests)
	}
	read := h.readOthers.Swap(true) // the reply, before it comes
	name := ""
	if u, err := url.Parse(address); err == nil {
		name = strings.ToLower(u.Hostname())
	}
	if slices.Contains(h.access.hosts, name) {
		if h.scope.HoldsOthers || read { // a host can be made to lead elsewhere with what it is asked
			ctx = guard.WithHosts(ctx, func(to string) bool { return slices.Contains(h.access.hosts, to) })
		}
		return ctx, nil
	}
	others := read && !slices.Contains(h.access.named, name)
	reads := (method == http.MethodGet || method == http.MethodHead) && !guard.OverridesMethod(address) && guard.OnlyNegotiates(headers)
	switch {
	case reads:
	case !h.access.sends:
		return nil, errors.New("js_eval only reads the web (" + onlyReads)
	case h.scope.HoldsOthers || others:
		return nil, errors.New("a tool only reads at hosts that its code does not name (" + onlyReads)
	}
	return ctx, toolgroups.CheckAddress(ctx, address, others)
}

// onlyReads ends the error for a request that does not only read.
const onlyReads = "GET and HEAD, without headers of its own): make this request with http_request, which a person approves"

// hostPattern finds the addresses that a script names.
var hostPattern = regexp.MustCompile(`(?i)https?://(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+))`)

// runsText finds code that may run text that it reads, which then decides where the named hosts are asked for what.
var runsText = regexp.MustCompile(`\b(eval|Function)\b`)

// hostsIn returns the hosts of the addresses in a text.
func hostsIn(source string) (hosts []string) {
	for _, found := range hostPattern.FindAllStringSubmatch(source, -1) {
		hosts = append(hosts, strings.ToLower(found[1]+found[2]))
	}
	return hosts
}

func isSuccess(res *http.Response) bool { return res.StatusCode >= 200 && res.StatusCode <= 299 }

// bodyText returns the body of a reply as UTF-8 text.
func bodyText(res guard.Reply) string {
	data := res.Data
	if encoding, name, certain := charset.DetermineEncoding(data, res.Header.Get("Content-Type")); certain && name != "utf-8" {
		if decoded, err := encoding.NewDecoder().Bytes(data); err == nil {
			data = decoded
		}
	}
	return strings.ToValidUTF8(string(data), "\uFFFD")
}

// requestError returns the reason for a missing reply, without the URL, which may contain secrets.
func requestError(ctx context.Context, err error) error {
	err = guard.Reason(err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("the server did not answer in time")
	}
	return err
}
