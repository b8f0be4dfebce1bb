package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// transport returns a transport whose responses hold only messages that the library can decode. Errors
// are recorded in fault.
func (m *messages) transport(next http.RoundTripper, maxMessage int, fault *messageFault) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		id, isCall := m.noteRequest(req)
		resp, err := next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		failed := resp.StatusCode < 200 || resp.StatusCode > 299
		switch {
		case isCall && resp.StatusCode == http.StatusAccepted:
			// The answer comes in the server's stream of events, as in the protocol's TypeScript library.
			_ = resp.Body.Close()
			resp.Header.Set("Content-Type", "text/event-stream")
			resp.Body = waitingBody{req.Context().Done()}
		case !failed && isEventStream(resp):
			resp.Body = &eventReader{body: resp.Body, in: bufio.NewReaderSize(resp.Body, 64<<10), messages: m, maxMessage: maxMessage, fault: fault}
		case isCall && (!failed || isMediaType(resp, "application/json")):
			resp.Header.Set("Content-Type", "application/json")
			resp.Header.Del("Content-Length")
			resp.ContentLength = -1
			resp.Body = &answerReader{body: resp.Body, read: func(data []byte) ([]byte, error) { return m.answerTo(id, data, failed), nil }}
		}
		return resp, nil
	})
}

// waitingBody is a stream without events, which ends with its request.
type waitingBody struct{ ended <-chan struct{} }

func (b waitingBody) Read([]byte) (int, error) {
	<-b.ended
	return 0, context.Canceled
}

func (b waitingBody) Close() error { return nil }

// noteRequest notes the call in the body of a request.
func (m *messages) noteRequest(req *http.Request) (id int64, isCall bool) {
	if req.Method != http.MethodPost || req.GetBody == nil {
		return 0, false
	}
	body, err := req.GetBody()
	if err != nil {
		return 0, false
	}
	defer func() { _ = body.Close() }()
	data, err := io.ReadAll(body)
	if err != nil {
		return 0, false
	}
	return m.noteSent(data)
}

// answerTo returns the answer to a call in the body of its response. failed is true if the response has the
// status of an error; such a body need not be a message.
func (m *messages) answerTo(id int64, data []byte, failed bool) []byte {
	var fields map[string]json.RawMessage
	if !hasTooManyMembers(data) {
		fields = objectFields(data)
	}
	if _, own := answeredID(fields["id"]); !own && isMessage(fields) && fields["error"] != nil && fields["method"] == nil {
		m.take(id)
		return encodeAnswer(id, nil, readError(fields["error"])) // an error without the id can only belong to this call
	}
	received := m.receive(data)
	for _, one := range received {
		if of, ok := answeredID(objectFields(one)["id"]); ok && of == id {
			return one
		}
	}
	switch {
	case len(received) > 0:
		return received[0]
	case failed:
		return data
	}
	return encodeAnswer(id, nil, &jsonrpc.Error{
		Code: jsonrpc.CodeParseError, Message: "its answer cannot be read, so whether the call had its effect is unknown",
	})
}

// answerReader is a body that is read as a whole and replaced.
type answerReader struct {
	body io.ReadCloser
	read func(data []byte) ([]byte, error)
	left *bytes.Reader
}

func (r *answerReader) Read(p []byte) (int, error) {
	if r.left == nil {
		data, err := io.ReadAll(r.body)
		if err == nil {
			data, err = r.read(data)
		}
		if err != nil {
			return 0, err
		}
		r.left = bytes.NewReader(data)
	}
	return r.left.Read(p)
}

func (r *answerReader) Close() error { return r.body.Close() }

// eventReader is a stream of events in which those with messages hold only what the library can decode.
// Comments and unknown fields, which may be endless, are left out.
type eventReader struct {
	body       io.ReadCloser
	in         *bufio.Reader
	messages   *messages
	maxMessage int
	fault      *messageFault

	out    bytes.Buffer // the prepared events
	fields bytes.Buffer // the id and the retry time of the event so far
	data   []byte       // its data, and whether there is any
	isData bool
	name   string
	oldSSE bool // the stream has named an address for requests: version 2024-11-05
	err    error
}

func (r *eventReader) Read(p []byte) (int, error) {
	for r.out.Len() == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.out.Reset()
		if r.err = r.readLine(); errors.Is(r.err, io.EOF) {
			if err := r.endEvent(); err != nil { // servers forget the empty line
				r.err = err
			}
		}
	}
	return r.out.Read(p)
}

func (r *eventReader) Close() error { return r.body.Close() }

// readLine reads one line. A line of a field that does not matter is not kept.
func (r *eventReader) readLine() error {
	var line []byte
	matters := true
	for {
		part, err := r.in.ReadSlice('\n')
		if len(line) == 0 && len(part) > 0 {
			matters = bytes.IndexByte([]byte("deir\r\n"), part[0]) >= 0
		}
		if matters {
			line = append(line, part...)
		}
		switch {
		case len(line)+len(r.data)+r.fields.Len() > r.maxMessage:
			return r.fault.record(errTooLarge)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return err
		}
		if matters {
			if err := r.addLine(bytes.TrimRight(line, "\r\n"), err == nil); err != nil {
				return err
			}
		}
		return err
	}
}

// addLine adds a line to the event; an empty one ends it.
func (r *eventReader) addLine(line []byte, whole bool) error {
	if len(line) == 0 {
		if whole {
			return r.endEvent()
		}
		return nil
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if r.isData {
			r.data = append(r.data, '\n')
		}
		r.data, r.isData = append(r.data, value...), true
	case "event":
		r.name = string(value)
	case "id", "retry":
		r.fields.Write(name)
		r.fields.WriteString(": ")
		r.fields.Write(value)
		r.fields.WriteByte('\n')
	}
	return nil
}

// endEvent writes the event that has been read.
func (r *eventReader) endEvent() error {
	defer func() {
		r.fields.Reset()
		r.data, r.isData, r.name = nil, false, ""
	}()
	var received [][]byte
	switch r.name {
	case "", "message":
		received = r.messages.receive(r.data)
	case "endpoint":
		r.oldSSE = true
		r.out.WriteString("event: endpoint\n")
		received = [][]byte{oneLine(r.data)}
	}
	if len(received) == 0 && r.fields.Len() > 0 && !r.oldSSE {
		r.out.Write(r.fields.Bytes()) // an id counts without a message
		r.out.WriteByte('\n')
	}
	for _, message := range received {
		r.out.Write(r.fields.Bytes())
		r.out.WriteString("data: ")
		r.out.Write(message)
		r.out.WriteString("\n\n")
	}
	return nil
}
