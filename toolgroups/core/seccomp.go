package core

import (
	native "encoding/binary"
	"errors"
	"os"
	"runtime"
	"syscall"
)

// refused are the system calls that a command does not get, by number.
type refused struct {
	arch      uint32
	fallocate uint32
	missing   []uint32
}

// refusedCalls lists them for this machine; false where they are not written down.
// fallocate takes a disk at once, beyond every limit of files, and programs write zeros
// where it is not supported. The others make memory that belongs to no process
// (memfd_create, memfd_secret, shmget), reach the keys of the bot's session (add_key,
// request_key, keyctl), or get around this list (io_uring_setup).
func refusedCalls() (refused, bool) {
	switch runtime.GOARCH {
	case "amd64":
		return refused{0xc000003e, 285, []uint32{319, 447, 29, 248, 249, 250, 425}}, true
	case "arm64":
		return refused{0xc00000b7, 47, []uint32{279, 447, 194, 217, 218, 219, 425}}, true
	}
	return refused{}, false
}

// filter is the program with which the kernel judges the system calls of a command
// (seccomp(2)), or nothing where there is none for this machine. Calls of another
// architecture than the machine's are refused: their numbers mean something else.
func filter() []byte {
	const (
		load, jumpEqual, jumpAtLeast, ret = 0x20, 0x15, 0x35, 0x06
		allow, fail                       = 0x7fff0000, 0x00050000
		offsetCall, offsetArch            = 0, 4
		otherABI                          = 0x40000000 // x32 on amd64; no call has such a number elsewhere
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
	for _, call := range calls.missing {
		add(jumpEqual, 0, 1, call)
		add(ret, 0, 0, fail|uint32(syscall.ENOSYS))
	}
	add(ret, 0, 0, allow)
	return program
}

// filterFD is the number under which a sandbox finds its filter.
const filterFD = "3"

// filterFile is a pipe that holds the filter; nothing where there is none.
func (c ExecConfig) filterFile() ([]*os.File, error) {
	program := filter()
	if program == nil || c.UnsafeExec {
		return nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	_, err = w.Write(program) // A pipe holds more.
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
