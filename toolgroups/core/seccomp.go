package core

import (
	native "encoding/binary"
	"errors"
	"os"
	"runtime"
	"syscall"
)

// refusedSyscalls are the numbers of the forbidden system calls.
type refusedSyscalls struct {
	arch      uint32
	fallocate uint32
	enosys    []uint32 // refused as calls that the kernel lacks
}

// refusedCalls returns the forbidden system calls of this architecture; false if it is unknown.
// fallocate allocates disk space beyond every limit on files, and programs write zeros instead if it
// is not supported. The others allocate memory that belongs to no process (memfd_create,
// memfd_secret, shmget), reach the keys of the bot's session (add_key, request_key, keyctl), or
// circumvent this list (io_uring_setup).
func refusedCalls() (refusedSyscalls, bool) {
	switch runtime.GOARCH {
	case "amd64":
		return refusedSyscalls{0xc000003e, 285, []uint32{319, 447, 29, 248, 249, 250, 425}}, true
	case "arm64":
		return refusedSyscalls{0xc00000b7, 47, []uint32{279, 447, 194, 217, 218, 219, 425}}, true
	}
	return refusedSyscalls{}, false
}

// seccompFilter returns the BPF program that filters the system calls of a command (seccomp(2)), or
// nil for an unknown architecture. It refuses calls with other ABIs, whose numbers differ.
func seccompFilter() []byte {
	const (
		load, jumpEqual, jumpAtLeast, ret = 0x20, 0x15, 0x35, 0x06
		allow, fail                       = 0x7fff0000, 0x00050000
		offsetCall, offsetArch            = 0, 4
		otherABI                          = 0x40000000 // x32 on amd64; unused elsewhere
	)
	calls, ok := refusedCalls()
	if !ok {
		return nil
	}
	var program []byte
	add := func(code uint16, yes, no uint8, k uint32) {
		program = native.NativeEndian.AppendUint16(program, code)
		program = append(program, yes, no)
		program = native.NativeEndian.AppendUint32(program, k)
	}
	add(load, 0, 0, offsetArch)
	add(jumpEqual, 1, 0, calls.arch)
	add(ret, 0, 0, fail|uint32(syscall.ENOSYS))
	add(load, 0, 0, offsetCall)
	add(jumpAtLeast, 0, 1, otherABI)
	add(ret, 0, 0, fail|uint32(syscall.ENOSYS))
	add(jumpEqual, 0, 1, calls.fallocate)
	add(ret, 0, 0, fail|uint32(syscall.EOPNOTSUPP))
	for _, call := range calls.enosys {
		add(jumpEqual, 0, 1, call)
		add(ret, 0, 0, fail|uint32(syscall.ENOSYS))
	}
	add(ret, 0, 0, allow)
	return program
}

// filterFD is the filter's file descriptor in the sandbox.
const filterFD = "3"

// filterFile returns a pipe that contains the filter, or nil.
func (c ExecConfig) filterFile() ([]*os.File, error) {
	program := seccompFilter()
	if program == nil || c.UnsafeExec {
		return nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	_, err = w.Write(program) // the pipe's buffer is larger
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return []*os.File{r}, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
