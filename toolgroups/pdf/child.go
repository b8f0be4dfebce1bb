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
)

// Argument starts the child: a program started with it as its only argument must call [Serve]
// before anything else.
const Argument = "pdf-child"

const (
	// documentFile is the document's file descriptor in the child.
	documentFile = 3
	// wasmPage is the unit in which WebAssembly memory grows.
	wasmPage = 64 << 10
	// gcMemory is the memory limit of Go's garbage collector in a child, besides the memory of
	// PDFium; it includes the document.
	gcMemory = 128 << 20
	// maxExtraMemory bounds the memory of a child besides that of PDFium.
	maxExtraMemory = 192 << 20
	// maxMapped bounds what a child may map besides the memory of PDFium, which is more than it uses:
	// Go maps in large steps.
	maxMapped = 512 << 20
	// maxTime bounds the processor time of a child; the parent usually ends it sooner.
	maxTime = time.Minute
)

// cacheName is the folder of compiled code. Other users of wazero must not share it: its cache
// does not distinguish compiler settings.
const cacheName = "pdfium"

// Serve reads one document for the parent, with requests on in and answers on out. It first
// confines this process for good, and ends it when in ends.
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
	instance, err := start(s)
	if err != nil {
		return parent.Send(reply{Fault: startFault, Text: err.Error()})
	}
	if err := parent.Send(reply{}); err != nil {
		return err
	}
	data, err := readDocument(s.MaxFile)
	if err != nil {
		return parent.Send(failed(fmt.Errorf("read the document: %w", err)))
	}
	doc, err := openDocument(instance, data)
	if err != nil {
		return parent.Send(failed(err))
	}
	if err := parent.Send(reply{Count: doc.count}); err != nil {
		return err
	}
	for q := range requests {
		last, err := doc.answer(q, parent)
		if err != nil {
			last = failed(err)
		}
		if err := parent.Send(last); err != nil {
			return err
		}
	}
	return nil
}

// start compiles PDFium, or reads the compiled code from the cache, and then confines this
// process: the cache is the last thing that it writes.
func start(s setup) (pdfium.Pdfium, error) {
	instance, err := startPDFium(s)
	if err == nil {
		// Return the compiler's memory. From here on the collector runs only if memory gets short:
		// it stops the world until PDFium's code returns, so the end of the parent would not be
		// seen.
		debug.FreeOSMemory()
		debug.SetGCPercent(-1)
		debug.SetMemoryLimit(gcMemory)
		err = sandbox.Confine(sandbox.Limits{Memory: maxMapped, CPU: maxTime})
	}
	return instance, err
}

// readDocument reads the document, up to the limit, into exactly as much memory.
func readDocument(limit int64) ([]byte, error) {
	file := os.NewFile(documentFile, "document")
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	data := make([]byte, min(info.Size(), limit))
	_, err = io.ReadFull(file, data)
	return data, err
}

func startPDFium(s setup) (pdfium.Pdfium, error) {
	config := wazero.NewRuntimeConfig().
		WithMemoryLimitPages(uint32(s.MaxMemory / wasmPage))
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
	return instance, reserve(instance, s.MaxMemory)
}

// reserve moves the memory of PDFium into a mapping of its largest size; the system commits only
// what is used. Otherwise it grows by copying, which leaves a multiple of its limit as garbage:
// wazero reserves memory only if the module declares no more than the limit, and go-pdfium takes
// no wazero allocator. So reserve sets the fields that wazero reads when memory grows, and
// growing once tells its engine.
func reserve(instance pdfium.Pdfium, limit int64) error {
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
	capacity.SetUint(uint64(limit / wasmPage))
	if _, ok := module.Memory().Grow(1); !ok {
		return errors.New("memory does not grow")
	}
	return nil
}

// openCache returns nil without a cache; PDFium runs without one.
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

// answer runs a request. It sends all of the result except the last message.
func (d *document) answer(q request, parent *sandbox.Conn) (reply, error) {
	data := bufio.NewWriterSize(sink{parent}, maxData)
	switch q.Ask {
	case askMeta:
		value, err := d.meta(q.Tag)
		return reply{Data: []byte(value[:min(len(value), maxData)])}, err
	case askText:
		text, total, err := d.text(q.Page, q.Limit)
		if err != nil {
			return reply{}, err
		}
		_, err = data.WriteString(text)
		return reply{Count: total}, errors.Join(err, data.Flush())
	case askPage:
		pic, used, err := d.render(q.Page, q.DPI, q.Limit)
		if err != nil {
			return reply{}, err
		}
		err = png.Encode(data, pic)
		return reply{Width: pic.Rect.Dx(), Height: pic.Rect.Dy(), DPI: used}, errors.Join(err, data.Flush())
	}
	return reply{}, fmt.Errorf("there is nothing called %.64q", q.Ask)
}

// sink sends what is written to it as parts of a result.
type sink struct{ parent *sandbox.Conn }

// Write sends data, in parts that fit into a message.
func (s sink) Write(data []byte) (int, error) {
	for from := 0; from < len(data); from += maxData {
		part := data[from:min(from+maxData, len(data))]
		if err := s.parent.Send(reply{Data: part, More: true}); err != nil {
			return from, err
		}
	}
	return len(data), nil
}
