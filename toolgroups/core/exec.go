package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"oneclaw/internal/rescue"
	"oneclaw/internal/wording"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

// codePermission is the error code if the system refuses to start a command.
const codePermission = "permission_error"

const (
	defaultCommandTime = 30  // seconds
	maxCommandTime     = 120 // seconds
	// killGrace bounds the wait for a killed command.
	killGrace = 5 * time.Second
	// maxStream bounds the kept part of a stream, in bytes. The rest is read and dropped, so that a
	// command never blocks on a full pipe.
	maxStream = 1 << 20
)

type execArgs struct {
	Command   string `json:"command"`
	Timeout   *int   `json:"timeout_seconds"`
	Directory string `json:"working_directory"`
	MaxLength int    `json:"max_length"`
}

// output is the output of a command.
type output struct {
	exitCode       int
	stdout, stderr stream
	killReason     string // why the command was killed; "" if it ended by itself
	note           string // for the model, after the output
}

// checkReady returns an error if no command can run, so that no approval is requested.
func (t *tools) checkReady(context.Context, toolgroups.Call) error {
	if t.cfg.Exec.UnsafeExec {
		return nil
	}
	_, err := t.cfg.Exec.bwrapPath()
	return err
}

func (t *tools) runCommand(ctx context.Context, call toolgroups.Call, in execArgs) (toolgroups.Result, error) {
	if strings.TrimSpace(in.Command) == "" {
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "'command' is blank. Give a command line.")
	}
	seconds := defaultCommandTime
	if in.Timeout != nil {
		seconds = min(max(*in.Timeout, 1), maxCommandTime)
	}
	place, err := newExecPlace(call, in.Directory)
	if err != nil {
		return toolgroups.Result{}, err
	}
	defer func() { _ = place.root.Close() }()
	argv, err := t.cfg.Exec.argv(in.Command, place.root.Dir(), place.dir, place.freeBytes)
	if err != nil {
		return toolgroups.Result{}, err
	}
	timed, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer cancel()
	out, err := t.execute(timed, argv, place)
	switch {
	case ctx.Err() != nil:
		return toolgroups.Result{}, ctx.Err()
	case errors.Is(err, fs.ErrPermission):
		return toolgroups.Result{}, toolgroups.Errorf(codePermission, "The system does not allow commands to start.")
	case err != nil:
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeExecution, "The command did not start: %v.", err)
	case !t.cfg.Exec.UnsafeExec && out.exitCode == 1 && out.stdout.total == 0 && strings.HasPrefix(out.stderr.text(), "bwrap: "):
		t.cfg.Logger.Error("sandbox did not start", "stderr", out.stderr.text())
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeExecution,
			"Commands cannot run: the sandbox did not start on this host (%s).", files.SingleLine(out.stderr.text()))
	case timed.Err() != nil:
		out.killReason = fmt.Sprintf("the time limit of %d s was over", seconds)
	}
	if place.fullErr != nil {
		out.note = fmt.Sprintf("[nothing could be written to files: %v]", place.fullErr)
	}
	return t.formatOutput(call, out, in.MaxLength)
}

// execPlace is the workspace and folder of a command.
type execPlace struct {
	root      *workspace.Root
	dir       string
	freeBytes int64 // bytes that files may take
	fullErr   error // why no bytes are free
}

// newExecPlace opens the workspace of a call and finds the requested folder in it. If the workspace
// is full, a command still runs because it may delete files.
func newExecPlace(call toolgroups.Call, asked string) (*execPlace, error) {
	root, err := workspace.OpenWithin(call.Workspace, call.Quota, call.Reserve)
	if err != nil {
		return nil, err
	}
	rel, err := root.Rel(cmp.Or(asked, "."))
	if err == nil {
		var info fs.FileInfo
		if info, err = root.Stat(rel); err == nil && !info.IsDir() {
			err = workspace.ErrNotFile
		}
	}
	if err != nil {
		return nil, errors.Join(toolgroups.Errorf(toolgroups.CodeInvalid,
			"'working_directory' must be a folder in the workspace; '%s' is not.", files.SingleLine(asked)), root.Close())
	}
	p := &execPlace{root: root, dir: filepath.Join(root.Dir(), rel)}
	p.freeBytes, p.fullErr = root.FreeBytes()
	return p, nil
}

// execute runs a command until it or ctx ends, and then kills its children.
func (t *tools) execute(ctx context.Context, argv []string, at *execPlace) (*output, error) {
	// The sandbox dies with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out := &output{stdout: stream{limit: maxStream}, stderr: stream{limit: maxStream}}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = environment(at.root.Dir())
	cmd.Dir = at.dir
	cmd.Stdout, cmd.Stderr = &out.stdout, &out.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killGrace
	var err error
	if cmd.ExtraFiles, err = t.cfg.Exec.filterFile(); err != nil {
		return nil, err
	}
	defer closeAll(cmd.ExtraFiles)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var watchers sync.WaitGroup
	for _, watch := range []func(context.Context, int) error{t.cfg.Exec.watchProcesses, t.cfg.Exec.watchMemory, at.watchDisk} {
		watchers.Go(func() {
			if err := rescue.Do(func() error { return watch(ctx, cmd.Process.Pid) }); err != nil {
				stop(err)
			}
		})
	}
	err = cmd.Wait()
	killed := ctx.Err() != nil
	stop(nil)
	watchers.Wait()
	if reason, ok := errors.AsType[limitError](context.Cause(ctx)); ok {
		out.killReason = string(reason)
	}
	// Kill the processes that the shell has left in its group.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) && !killed {
		return nil, err
	}
	out.exitCode = cmd.ProcessState.ExitCode()
	return out, nil
}

// formatOutput formats the output of a command. If that is too long, it is saved to a file as well.
func (t *tools) formatOutput(call toolgroups.Call, out *output, asked int) (toolgroups.Result, error) {
	head := fmt.Sprintf("[Exit Code: %d]", out.exitCode)
	stderr := out.stderr.text()
	if out.killReason != "" {
		head = fmt.Sprintf("[Exit Code: -1] (%s)", out.killReason)
		stderr = strings.TrimLeft(stderr+"\n[killed: "+out.killReason+"]", "\n")
	}
	stdout := out.stdout.text()
	inline := files.InlineLimit(call.Scope)
	limit := inline
	if asked > 0 {
		limit = min(asked, inline)
	}
	// Errors matter most: stderr gets the space that stdout leaves free, and at least a quarter.
	errLimit := min(limit, max(inline-utf8.RuneCountInString(stdout), inline/4))
	shownErr, cutErr := cutLines(call.Masked(stderr), errLimit)
	shownOut, cutOut := cutLines(call.Masked(stdout), min(limit, inline-utf8.RuneCountInString(shownErr)))
	note := ""
	if cutErr || cutOut || out.stdout.isTruncated() || out.stderr.isTruncated() {
		where := "the rest was not kept"
		whole := []byte(head + "\n\n" + joinOutput(stdout, stderr))
		if name, err := files.SaveNew(call.Scope, "tool-output/exec", ".txt", t.cfg.Now(), whole); err == nil {
			where = fmt.Sprintf("the first %d of each are in the file %s", maxStream, name)
		}
		note = fmt.Sprintf("\n[cut: stdout had %d bytes, stderr %d; %s]", out.stdout.total, out.stderr.total, where)
	}
	if out.note != "" {
		note += "\n" + out.note
	}
	return toolgroups.Result{Text: head + "\n\n" + joinOutput(shownOut, shownErr) + note}, nil
}

func joinOutput(stdout, stderr string) string {
	switch {
	case stdout == "" && stderr == "":
		return "(no output)"
	case stderr == "":
		return stdout
	case stdout == "":
		return "[stderr]\n" + stderr
	}
	return strings.TrimRight(stdout, "\n") + "\n[stderr]\n" + stderr
}

// cutLines cuts a text after the last whole line that fits, or within the first line.
func cutLines(s string, limit int) (shown string, cut bool) {
	first, rest := wording.SplitAt(s, limit)
	if rest == "" {
		return s, false
	}
	if end := strings.LastIndexByte(first, '\n'); end > 0 {
		first = first[:end]
	}
	return first, true
}

// stream keeps the beginning of the data written to it. It supports one writer.
type stream struct {
	limit int
	kept  []byte
	total int64
}

// Write accepts all data and keeps the part within the limit.
func (s *stream) Write(p []byte) (int, error) {
	s.total += int64(len(p))
	s.kept = append(s.kept, p[:min(len(p), s.limit-len(s.kept))]...)
	return len(p), nil
}

func (s *stream) isTruncated() bool { return s.total > int64(len(s.kept)) }

// text returns the kept bytes as text, dropping an incomplete character at the end.
func (s *stream) text() string {
	return strings.ToValidUTF8(string(wording.TrimPartialRune(s.kept)), "\uFFFD")
}
