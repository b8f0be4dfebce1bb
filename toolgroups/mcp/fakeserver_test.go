package mcp_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// png is a picture of one pixel.
const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

type handler = func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error)

func say(format string, args ...any) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, args...)}}}, nil
}

// fake is the server of most tests. It runs in a child or behind HTTP.
type fake struct {
	*sdk.Server
	hangs     chan struct{} // closed when a call of hang has come
	cancelled chan struct{} // closed when it was cancelled
	come, end sync.Once
}

func newFake() *fake {
	f := &fake{hangs: make(chan struct{}), cancelled: make(chan struct{})}
	f.Server = sdk.NewServer(&sdk.Implementation{Name: "fake", Title: "Fake\u202e Things", Version: "1"},
		&sdk.ServerOptions{Instructions: "Does things for tests. And more of it.\nSecond line."})
	for name, h := range map[string]handler{
		"echo": echo, "env": showEnv, "die": die, "bequeath": bequeath, "content": content, "structured": structured, "twice": twice, "shown": shown, "more": more, "packed": packed, "page": page, "dense": dense,
		"broken": broken, "huge": huge, "files": files, "spawn": spawn, "hang": f.hang, "grow": f.grow, "nothing": nothing, "slowly": slowly,
	} {
		f.add(&sdk.Tool{Name: name, Description: "Does " + name, Annotations: hints(name)}, h)
	}
	f.add(&sdk.Tool{Name: "odd.name/ü", Description: "Odd"}, echo)
	f.add(&sdk.Tool{Name: strings.Repeat("long", 20), Description: "Long"}, echo)
	return f
}

// endSessions ends what a client could not: it was refused, or forgotten.
func (f *fake) endSessions() {
	for session := range f.Sessions() {
		_ = session.Close()
	}
}

func hints(name string) *sdk.ToolAnnotations {
	no := false
	switch name {
	case "echo":
		return &sdk.ToolAnnotations{ReadOnlyHint: true}
	case "grow":
		return &sdk.ToolAnnotations{DestructiveHint: &no}
	}
	return nil
}

func (f *fake) add(t *sdk.Tool, h handler) {
	if t.InputSchema == nil {
		t.InputSchema = json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"},"n":{"type":"integer"}}}`)
	}
	f.AddTool(t, h)
}

func echo(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return say("%s", req.Params.Arguments)
}

func showEnv(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return say("%s", strings.Join(os.Environ(), "\n"))
}

func die(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	fmt.Fprintln(os.Stderr, "secret-value-of-x is my reason")
	os.Exit(3)
	return nil, nil
}

func bequeath(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	cmd := exec.CommandContext(context.Background(), "sleep", "600")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return die(ctx, req)
}

func (f *fake) hang(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	f.come.Do(func() { close(f.hangs) })
	<-ctx.Done()
	f.end.Do(func() { close(f.cancelled) })
	return nil, ctx.Err()
}

func (f *fake) grow(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	f.add(&sdk.Tool{Name: "grown", Description: "New"}, echo)
	return say("grown")
}

// slowly tells how far it is, and of a call that is not there, to who wants to know, and does
// not end then.
func slowly(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return say("nobody asked")
	}
	number, err := strconv.Atoi(fmt.Sprint(token))
	if err != nil {
		return nil, err
	}
	for _, p := range []sdk.ProgressNotificationParams{
		{ProgressToken: number, Progress: 1, Total: 3},
		{ProgressToken: "no such call", Message: "lies"},
		{ProgressToken: token, Progress: 0.5, Total: 2, Message: "reading secret-value-of-x\nnow"},
		{ProgressToken: token, Progress: 1.5, Total: 2},
	} {
		if err := req.Session.NotifyProgress(ctx, &p); err != nil {
			return nil, err
		}
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func content(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{Content: []sdk.Content{
		&sdk.TextContent{Text: "first"},
		&sdk.ImageContent{MIMEType: "image/png", Data: []byte(png)},
		&sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("RIFF")},
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a.txt", Text: "inner text"}},
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a.pdf", MIMEType: "application/pdf", Blob: []byte("%PDF-1.7")}},
		&sdk.ResourceLink{URI: "file:///b", Name: "b"},
		&sdk.TextContent{Text: "last"},
	}}, nil
}

func structured(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{StructuredContent: map[string]any{"a": 1, "b": "<x>"}, Content: []sdk.Content{}}, nil
}

func twice(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{
		StructuredContent: map[string]any{"a": 1},
		Content:           []sdk.Content{&sdk.TextContent{Text: `{ "a": 1 }`}},
	}, nil
}

// shown says in structured content what the content has, as servers of files do.
func shown(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{
		StructuredContent: map[string]any{
			"content": "first\nline", "n": 7, "picture": map[string]any{"type": "image", "mimeType": "image/png", "data": base64.StdEncoding.EncodeToString([]byte(png))},
		},
		Content: []sdk.Content{&sdk.TextContent{Text: "7 files: first\nline"}, &sdk.ImageContent{MIMEType: "image/png", Data: []byte(png)}},
	}, nil
}

// more says in structured content what the content does not have.
func more(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{
		StructuredContent: map[string]any{"city": "Oslo", "degrees": 7}, Content: []sdk.Content{&sdk.TextContent{Text: "Oslo, in 1970"}},
	}, nil
}

// packed has a picture in base64 wherever texts may be.
func packed(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	other := png + strings.Repeat("o", 300)
	inText := base64.StdEncoding.EncodeToString([]byte(png + strings.Repeat("t", 300)))
	return &sdk.CallToolResult{
		StructuredContent: map[string]any{"shot": base64.StdEncoding.EncodeToString([]byte(other)), "n": 5},
		Content: []sdk.Content{
			&sdk.TextContent{Text: `{"image":"` + inText + `"}`}, &sdk.TextContent{Text: "See data:image/png;base64," + inText + " there"},
		},
	}, nil
}

// page is a file of 20 kB, said twice.
func page(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	text := strings.Repeat("a line of the file\n", 1050)
	return &sdk.CallToolResult{StructuredContent: map[string]any{"content": text}, Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
}

// dense answers with more values than anything has to say.
func dense(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{
		StructuredContent: map[string]any{"quote": `a "comma", [`, "all": json.RawMessage("[" + strings.Repeat("[],", 200_000) + "[]]")},
		Content:           []sdk.Content{&sdk.TextContent{Text: strings.Repeat(",[{", 1000)}},
	}, nil
}

func broken(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	res, _ := say("no such city")
	res.IsError = true
	return res, nil
}

func nothing(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{Content: []sdk.Content{}}, nil
}

// huge answers with n characters.
func huge(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var in struct{ N int }
	if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
		return nil, err
	}
	return say("%s", strings.Repeat("x", in.N))
}

// files answers with more pictures than are kept.
func files(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	res := &sdk.CallToolResult{}
	for i := range 12 {
		res.Content = append(res.Content, &sdk.ImageContent{MIMEType: "image/x-own", Data: fmt.Appendf([]byte(png), "%d", i)})
	}
	return res, nil
}

// spawn starts a process that outlives its parent, and answers with both ids.
func spawn(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	cmd := exec.CommandContext(context.Background(), "sleep", "600")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return say("%d %d", os.Getpid(), cmd.Process.Pid)
}

// serveStdio is the main function of a child.
func serveStdio(mode string) int {
	switch mode {
	case "exit":
		return 7
	case "deaf": // reads and never answers
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	case "mute": // neither reads nor ends, and is no deadlock to the runtime
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, os.Interrupt)
		<-ended
		return 0
	case "old": // does not survive a question it does not know
		return serveOld()
	case "raw":
		return serveRaw(os.Stdin, os.Stdout, os.Getenv("RAW_TOOLS"), os.Getenv("RAW_MESSAGE"))
	case "script":
		return runScript(os.Stdin, os.Stdout)
	case "chatty":
		fmt.Println("[info] starting {")
		fmt.Println("{not json}")
	case "stubborn":
		ignoreSignals()
	}
	if err := newFake().Run(context.Background(), &sdk.StdioTransport{}); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
		if mode == "stubborn" {
			select {}
		}
		return 1
	}
	if mode == "stubborn" {
		select {}
	}
	return 0
}
