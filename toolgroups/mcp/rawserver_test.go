package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func ignoreSignals() { signal.Ignore(syscall.SIGTERM, syscall.SIGINT) }

// request is what a server of its own reads.
type request struct {
	ID     any    `json:"id"`
	Method string `json:"method"`
}

// lastMessage is answered after the messages before it, unless their handling ended the client.
const lastMessage = `{"jsonrpc":"2.0","id":"last","method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object"}}}`

// serveOld ends at a question from before initialize, as some old servers do.
func serveOld() int {
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	var first request
	if err != nil || json.Unmarshal(line, &first) != nil || first.Method != "initialize" {
		return 9
	}
	reader := io.NopCloser(io.MultiReader(jsonLine(line), in))
	_ = newFake().Run(context.Background(), &sdk.IOTransport{Reader: reader, Writer: os.Stdout})
	return 0
}

func jsonLine(line []byte) io.Reader {
	r, w := io.Pipe()
	go func() {
		_, err := w.Write(line)
		_ = w.CloseWithError(err)
	}()
	return r
}

// serveRaw answers with a tools array as it is given, which no library would send. It answers a call
// once the client has answered a message of its own, if there is one.
func serveRaw(r io.Reader, w io.Writer, tools, message string) int {
	in := bufio.NewScanner(r)
	waits := ""
	for in.Scan() {
		var q request
		if json.Unmarshal(in.Bytes(), &q) != nil || q.ID == nil {
			continue
		}
		id, _ := json.Marshal(q.ID)
		switch q.Method {
		case "tools/call":
			waits = string(id)
			_, _ = fmt.Fprintln(w, message)
			_, _ = fmt.Fprintln(w, lastMessage)
		case "": // an answer
			if q.ID == "last" {
				_, _ = fmt.Fprintln(w, answer(waits, "done"))
			}
		case "initialize":
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}}`+"\n", id)
		case "tools/list":
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":%s}}`+"\n", id, tools)
		default:
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", id)
		}
	}
	return 0
}
