package moving

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"oneclaw/internal/sandbox"
	"oneclaw/internal/wording"
)

// ChildArgument starts the child process: a program that is started with it as its only argument must call
// [Serve] before anything else.
const ChildArgument = "import-child"

const (
	// folderFD is the file descriptor of the other bot's folder in the child; those of a workspace elsewhere and
	// of a file of schedules follow.
	folderFD = 3
	// gcMemory is the memory limit of a child's garbage collector. Above maxMemory the child exits. Both
	// are in bytes.
	gcMemory  = 160 << 20
	maxMemory = 256 << 20
	// maxMapped bounds the address space that a child may map. Go maps more than it uses.
	maxMapped = 1 << 30
	// maxTime bounds reading a folder, and maxCPU the processor time of a child.
	maxTime = 2 * time.Minute
	maxCPU  = time.Minute
	// maxAnswer bounds what was found, in bytes of JSON.
	maxAnswer = 32 << 20
)

// Bot is a bot whose folder can be read.
type Bot string

// The bots.
const (
	OpenClaw Bot = "openclaw"
	Hermes   Bot = "hermes"
)

// task is the request to the child. Its descriptors are the folder and, if they are set, the workspace and the
// schedules.
type task struct {
	Bot       Bot  `json:"bot"`
	Workspace bool `json:"workspace,omitempty"`
	Schedules bool `json:"schedules,omitempty"`
}

// Source is what is read of another bot.
type Source struct {
	Bot Bot
	// Folder is its folder, such as ~/.openclaw.
	Folder *os.Root
	// Workspace is the workspace of an OpenClaw if it is elsewhere, otherwise nil.
	Workspace *os.Root
	// Schedules is a file with its schedules in JSON, or nil.
	Schedules *os.File
}

// Read reads what another bot has. It changes nothing there. The files are parsed in a child process with
// bounded memory and time. The error says why nothing could be read.
func Read(ctx context.Context, source Source) (*Found, error) {
	command, err := sandbox.Command(ChildArgument)
	if err != nil {
		return nil, fmt.Errorf("moving: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	var folders []*os.File
	defer func() {
		for _, f := range folders {
			_ = f.Close() // it is only read
		}
	}()
	for _, one := range []*os.Root{source.Folder, source.Workspace} {
		if one == nil {
			continue
		}
		f, err := one.Open(".")
		if err != nil {
			return nil, cause(err)
		}
		folders = append(folders, f)
	}
	given := folders
	if source.Schedules != nil {
		given = append(slices.Clone(given), source.Schedules)
	}
	child, err := sandbox.Start(limited, command, given...)
	if err != nil {
		return nil, fmt.Errorf("moving: start: %w", err)
	}
	defer func() { _ = child.End() }() // the child's answer reports its fault
	var found Found
	err = sandbox.ErrNoAnswer
	if child.Send(task{Bot: source.Bot, Workspace: source.Workspace != nil, Schedules: source.Schedules != nil}) == nil {
		err = json.NewDecoder(io.LimitReader(child.Answer(), maxAnswer)).Decode(&found)
	}
	if err != nil {
		return nil, cmp.Or(ctx.Err(), err)
	}
	return &found, nil
}

// Serve reads the folder of another bot for the parent process. It first sandboxes this process irrevocably,
// and exits when in is closed or a file takes too much memory.
func Serve(in io.Reader, out io.Writer) error {
	t, parent, err := sandbox.ServeTask[task](sandbox.Limits{Memory: maxMapped, CPU: maxCPU}, in, out)
	if err != nil {
		return fmt.Errorf("moving: %w", err)
	}
	var reading atomic.Value
	reading.Store("the folder")
	sandbox.LimitMemory(gcMemory, maxMemory, func() {
		_ = parent.SendFault(fmt.Sprintf("%s: reading it takes more memory than the limit of %d MiB", reading.Load(), maxMemory>>20))
	})
	found, err := t.read(func(name string) { reading.Store(name) })
	if err != nil {
		return parent.SendFault(wording.OneLine(err.Error(), maxReason))
	}
	data, err := json.Marshal(found)
	if err == nil && len(data) > maxAnswer {
		err = fmt.Errorf("there is more to take over than the limit of %d MiB: move some files of memory, or skills, out of the folder", maxAnswer>>20)
	}
	if err != nil {
		return parent.SendFault(err.Error())
	}
	return parent.SendAnswer(data)
}

// read reads the folders that this process was started with.
func (t task) read(visit func(name string)) (*Found, error) {
	next := folderFD
	dir, err := openFolder(next, visit)
	if err != nil {
		return nil, err
	}
	var workspace *folder
	if t.Workspace {
		next++
		if workspace, err = openFolder(next, visit); err != nil {
			return nil, err
		}
	}
	var schedules []byte
	if t.Schedules {
		visit("--schedules")
		schedules, err = io.ReadAll(io.LimitReader(os.NewFile(uintptr(next+1), "schedules"), maxFile+1))
		if err == nil && len(schedules) > maxFile {
			err = fmt.Errorf("it has more than %d MiB", maxFile>>20)
		}
		if err != nil {
			return nil, fmt.Errorf("--schedules: %w", cause(err))
		}
	}
	switch t.Bot {
	case OpenClaw:
		return readOpenClaw(dir, workspace, schedules)
	case Hermes:
		return readHermes(dir, schedules)
	}
	return nil, errors.New("there is no such bot")
}

// openFolder opens the folder that a file descriptor refers to, and makes it the working directory.
func openFolder(fd int, visit func(name string)) (*folder, error) {
	if err := syscall.Fchdir(fd); err != nil {
		return nil, fmt.Errorf("moving: %w", err)
	}
	root, err := os.OpenRoot(".")
	if err != nil {
		return nil, cause(err)
	}
	return &folder{root: root, visit: visit}, nil
}
