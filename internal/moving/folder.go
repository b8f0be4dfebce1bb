package moving

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// Limits of what is read from a folder.
const (
	maxFile    = 4 << 20
	maxTotal   = 64 << 20
	maxEntries = 2_000  // of a folder
	maxNames   = 20_000 // of all folders
)

// Reasons why a file is not read.
var (
	errLink  = errors.New("it is a link, and links are not followed")
	errTotal = fmt.Errorf("the files before it have %d MiB, which is the limit", maxTotal>>20)
	errNames = fmt.Errorf("the folders before it have %d entries, which is the limit", maxNames)
)

// folder reads the files of another bot. It follows no links, and bounds what it reads.
type folder struct {
	root    *os.Root
	size    int64             // bytes that were read
	entries int               // names that were read
	visit   func(name string) // called with each file before it is read; may be nil
}

// check describes the file at a path. It returns an error if any part of the path is a link.
func (f *folder) check(name string) (info fs.FileInfo, err error) {
	parts := strings.Split(path.Clean(name), "/")
	for i := range parts {
		if info, err = f.root.Lstat(path.Join(parts[:i+1]...)); err != nil {
			return nil, cause(err)
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return nil, errLink
		}
	}
	return info, nil
}

// file returns the content of a file. The error wraps fs.ErrNotExist if there is none.
func (f *folder) file(name string) (data []byte, err error) {
	info, err := f.check(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() > maxFile:
		return nil, fmt.Errorf("it has more than %d MiB", maxFile>>20)
	case f.size+info.Size() > maxTotal:
		return nil, errTotal
	}
	// Not to wait for ever if it has become a pipe since.
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, cause(err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if f.visit != nil {
		f.visit(name)
	}
	data, err = io.ReadAll(io.LimitReader(file, maxFile))
	f.size += int64(len(data))
	return data, cause(err)
}

// names returns the sorted names in a folder; none if there is no such folder.
func (f *folder) names(dir string) (names []string, err error) {
	info, err := f.check(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a folder")
	}
	if err != nil {
		return nil, err
	}
	open, err := f.root.Open(dir)
	if err != nil {
		return nil, cause(err)
	}
	defer func() { err = errors.Join(err, open.Close()) }()
	names, err = open.Readdirnames(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, cause(err)
	}
	if len(names) > maxEntries {
		return nil, fmt.Errorf("it has more than %d entries", maxEntries)
	}
	if f.entries += len(names); f.entries > maxNames {
		return nil, errNames
	}
	slices.Sort(names)
	return names, nil
}

// cause returns the cause of an error without the path.
func cause(err error) error {
	if in, ok := errors.AsType[*fs.PathError](err); ok {
		return in.Err
	}
	return err
}
