package jstools

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/html/charset"

	"oneclaw/internal/guard"
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
	if err := h.checkSending(in.Method, in.URL, in.Headers); err != nil {
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

// checkSending returns an error if the script may only read, and the request might change something: no
// person has approved that. These are the requests for which http_request asks.
func (h *host) checkSending(method, address string, headers map[string]string) error {
	reads := method == http.MethodGet || method == http.MethodHead
	if h.access.sends || reads && !guard.OverridesMethod(address, slices.Collect(maps.Keys(headers))...) {
		return nil
	}
	return errors.New("js_eval only reads the web (GET and HEAD): make this request with http_request, which a person approves")
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
