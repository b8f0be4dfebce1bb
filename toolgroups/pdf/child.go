package pdf

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"oneclaw/internal/sandbox"
	"oneclaw/toolgroups"
)

// ChildArgument starts the child process: a program that is started with it as its only argument
// must call [Serve] before anything else.
const ChildArgument = "pdf-child"

const (
	// documentFD is the document's file descriptor in the child.
	documentFD = 3
	// wasmPageSize is the unit in which WebAssembly memory grows.
	wasmPageSize = 64 << 10
	// gcMemoryLimit is the memory limit of Go's garbage collector in a child, besides the memory of
	// PDFium; it includes the document.
	gcMemoryLimit = 128 << 20
	// maxExtraMemory bounds the memory of a child besides that of PDFium.
	maxExtraMemory = 192 << 20
	// maxMapped bounds the address space that a child may map besides the memory of PDFium. It is
	// larger than the memory used, because Go maps in large steps.
	maxMapped = 512 << 20
	// maxCPUTime bounds the processor time of a child. The parent usually kills it sooner.
	maxCPUTime = time.Minute
)

// cacheName is the folder of compiled code. Other users of wazero must not share it, because
// wazero's cache does not distinguish compiler settings.
const cacheName = "pdfium"

// Serve reads one document for the parent process. It reads requests from in and writes replies to
// out. It first sandboxes this process irrevocably, and exits when in is closed.
func Serve(in io.Reader, out io.Writer) error {
	parent := sandbox.NewConn(in, out)
	var s setup
	if err := parent.Receive(&s); err != nil {
		return err
	}
	requests := make(chan request)
	go func() {
		for {
			var q request
			if parent.Receive(&q) != nil {
				os.Exit(1)
			}
			requests <- q
		}
	}()
	instance, err := startConfined(s)
	if err != nil {
		return parent.Send(reply{Fault: startFault, Text: err.Error()})
	}
	if err := parent.Send(reply{}); err != nil {
		return err
	}
	data, err := sandbox.ReadFile(documentFD, s.MaxFile)
	if err != nil {
		return parent.Send(errorReply(fmt.Errorf("read the document: %w", err)))
	}
	doc, err := openDocument(instance, data)
	if err != nil {
		return parent.Send(errorReply(err))
	}
	if err := parent.Send(reply{Count: doc.pageCount, XFA: doc.xfa, Sum: toolgroups.SumOf(data)}); err != nil {
		return err
	}
	for q := range requests {
		last, err := doc.answer(q, parent)
		if err != nil {
			last = errorReply(err)
		}
		if err := parent.Send(last); err != nil {
			return err
		}
	}
	return nil
}

// startConfined compiles PDFium, or reads the compiled code from the cache, and then sandboxes this
// process, which can write no file afterwards.
func startConfined(s setup) (pdfium.Pdfium, error) {
	instance, err := startPDFium(s)
	if err == nil {
		// Return the compiler's memory. From here on the garbage collector runs only if memory gets
		// short: it stops the world until PDFium's code returns, and meanwhile this process would
		// not notice that the parent has ended.
		debug.FreeOSMemory()
		debug.SetGCPercent(-1)
		debug.SetMemoryLimit(gcMemoryLimit)
		err = sandbox.Confine(sandbox.Limits{Memory: maxMapped, CPU: maxCPUTime})
	}
	return instance, err
}

func startPDFium(s setup) (pdfium.Pdfium, error) {
	config := wazero.NewRuntimeConfig().
		WithMemoryLimitPages(uint32(s.MaxMemory / wasmPageSize))
	if cache := openCache(s.CacheDir); cache != nil {
		config = config.WithCompilationCache(cache)
	}
	pool, err := webassembly.Init(webassembly.Config{
		MaxTotal:      1,
		RuntimeConfig: config,
		// By default go-pdfium mounts the host's root.
		FSConfig: wazero.NewFSConfig(),
		Stdout:   io.Discard,
		Stderr:   io.Discard,
	})
	if err != nil {
		return nil, err
	}
	instance, err := pool.GetInstanceWithContext(context.Background())
	if err != nil {
		return nil, err
	}
	return instance, reserveMemory(instance, s.MaxMemory)
}

// reserveMemory moves the memory of PDFium into a mapping of its maximum size; the system commits
// only used pages. Otherwise the memory grows by copying, which leaves a multiple of the limit as
// garbage: wazero reserves memory only if the module declares no more than the limit, and go-pdfium
// accepts no wazero allocator. So reserveMemory sets the fields that wazero reads when memory
// grows, and grows it once so that wazero's engine uses the new mapping.
func reserveMemory(instance pdfium.Pdfium, limit int64) error {
	field := reflect.Indirect(reflect.ValueOf(instance.GetImplementation())).FieldByName("Module")
	if !field.IsValid() {
		return errors.New("no module in this go-pdfium")
	}
	module, ok := reflect.TypeAssert[api.Module](field)
	if !ok {
		return errors.New("no module in this go-pdfium")
	}
	memory := reflect.Indirect(reflect.ValueOf(module.Memory()))
	buffer, capacity := memory.FieldByName("Buffer"), memory.FieldByName("Cap")
	if !buffer.CanSet() || !capacity.CanSet() {
		return errors.New("no memory to move in this wazero")
	}
	space, err := syscall.Mmap(-1, 0, int(limit), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("reserve %d bytes: %w", limit, err)
	}
	buffer.SetBytes(space[:copy(space, buffer.Bytes())])
	capacity.SetUint(uint64(limit / wasmPageSize))
	if _, ok := module.Memory().Grow(1); !ok {
		return errors.New("memory does not grow")
	}
	return nil
}

// openCache opens the cache of compiled code. It returns nil if dir is empty or the cache cannot be opened.
func openCache(dir string) wazero.CompilationCache {
	if dir == "" {
		return nil
	}
	cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(dir, cacheName))
	if err != nil {
		return nil
	}
	return cache
}

// answer handles a request. It sends all messages of the result except the last, which it returns.
func (d *document) answer(q request, parent *sandbox.Conn) (reply, error) {
	data := bufio.NewWriterSize(replyWriter{parent}, maxData)
	switch q.Operation {
	case opMeta:
		value, err := d.metaText(q.Tag)
		return reply{Data: []byte(value[:min(len(value), maxData)])}, err
	case opFiles:
		names := d.attachedFiles()
		return reply{Data: []byte(names[:min(len(names), maxData)])}, nil
	case opText:
		text, total, err := d.text(q.Page, q.Limit)
		if err != nil {
			return reply{}, err
		}
		_, err = data.WriteString(text)
		return reply{Count: total}, errors.Join(err, data.Flush())
	case opPage:
		pic, used, err := d.render(q.Page, q.DPI, q.Limit)
		if err != nil {
			return reply{}, err
		}
		err = png.Encode(data, pic)
		return reply{Width: pic.Rect.Dx(), Height: pic.Rect.Dy(), DPI: used}, errors.Join(err, data.Flush())
	}
	return reply{}, fmt.Errorf("there is nothing called %.64q", q.Operation)
}

// replyWriter sends the data written to it as parts of a result.
type replyWriter struct{ parent *sandbox.Conn }

// Write sends data, in parts that fit into a message.
func (s replyWriter) Write(data []byte) (int, error) {
	for from := 0; from < len(data); from += maxData {
		part := data[from:min(from+maxData, len(data))]
		if err := s.parent.Send(reply{Data: part, More: true}); err != nil {
			return from, err
		}
	}
	return len(data), nil
}
