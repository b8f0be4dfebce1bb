package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"oneclaw/toolgroups"
)

const (
	// DefaultMaxTotalMemory is the default of [ExecConfig].MaxTotalMemory.
	DefaultMaxTotalMemory = 1 << 30
	// defaultProcesses bounds the processes of a command.
	defaultProcesses = 128
	// maxFileSize bounds a file that a command writes, in bytes.
	maxFileSize = 512 << 20
	// maxOpenFiles bounds the open files of a process.
	maxOpenFiles = 256
	// tmpSize is the size of /tmp and of /dev/shm in the sandbox, in bytes.
	tmpSize = 64 << 20
)

// ExecConfig configures the commands of exec. In the sandbox a command sees the programs of the
// host and the workspace of its owner, has no network and none of the bot's environment, and can
// write only to that workspace and to a /tmp of its own.
type ExecConfig struct {
	// Sandbox is the path of bubblewrap. Empty means bwrap in PATH.
	Sandbox string `yaml:"-"`
	// DataDir is the folder with the bot's data, which commands do not see.
	DataDir string `yaml:"-"`
	// Network gives commands the host's network, including internal addresses.
	Network bool `yaml:"exec_network" env:"ONECLAW_TOOLS_EXEC_NETWORK"`
	// UnsafeExec runs commands as the bot's user, without a sandbox, for administrators only: a
	// command can then read the bot's secrets. Otherwise exec needs bubblewrap.
	UnsafeExec bool `yaml:"unsafe_exec" env:"ONECLAW_TOOLS_UNSAFE_EXEC"`
	// MaxProcesses bounds the processes of one command. 0 means 128.
	MaxProcesses int `yaml:"-"`
	// MaxMemory bounds each process, in bytes of address space. 0 means 2 GiB.
	MaxMemory int64 `yaml:"-"`
	// MaxTotalMemory bounds the memory of all processes of a command, in bytes. It is polled, so
	// they can briefly exceed it. 0 means 1 GiB.
	MaxTotalMemory int64 `yaml:"-"`
}

// limitScript returns a shell script that sets the limits of its process and then executes its first
// argument. Shells name the process limit differently. If room is 0, so is the file size limit:
// existing files cannot grow, but can be deleted.
func (c ExecConfig) limitScript(room int64) string {
	processes := cmp.Or(c.MaxProcesses, defaultProcesses)
	memory := cmp.Or(c.MaxMemory, 2<<30)
	return fmt.Sprintf(`{ ulimit -p %d || ulimit -u %d; } 2>/dev/null; ulimit -v %d && ulimit -f %d && ulimit -n %d && `+
		`ulimit -c 0 && exec /bin/sh -c "$1"`, processes, processes, memory>>10, min(maxFileSize, room)/512, maxOpenFiles)
}

// argv returns the command line that runs a command in dir, a folder in workspace. room is the number
// of bytes that the command may write.
func (c ExecConfig) argv(command, workspace, dir string, room int64) ([]string, error) {
	shell := []string{"/bin/sh", "-c", c.limitScript(room), "sh", command}
	if c.UnsafeExec {
		return shell, nil
	}
	bwrap, err := c.bwrapPath()
	if err != nil {
		return nil, err
	}
	args := []string{
		bwrap, "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session",
		"--hostname", "sandbox", "--cap-drop", "ALL", "--clearenv",
	}
	for _, env := range environment(workspace) {
		name, value, _ := strings.Cut(env, "=")
		args = append(args, "--setenv", name, value)
	}
	// Programs and the files that they need, but no settings, homes or data of the host.
	programs := []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store",
		"/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl/certs", "/etc/localtime",
	}
	for _, p := range programs {
		args = append(args, "--ro-bind-try", p, p)
	}
	if c.Network {
		args = append(args, "--share-net", "--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf")
	}
	if seccompFilter() != nil {
		args = append(args, "--seccomp", filterFD)
	}
	args = append(args, procMounts()...)
	// The folders above the mounts are in memory. They are read-only, and /tmp and /dev/shm are limited,
	// so that no command fills the memory.
	args = append(args, "--dev", "/dev", "--size", strconv.Itoa(tmpSize), "--tmpfs", "/dev/shm", "--remount-ro", "/dev",
		"--size", strconv.Itoa(tmpSize), "--tmpfs", "/tmp")
	data, _ := filepath.Abs(c.DataDir)
	data, err = filepath.EvalSymlinks(data)
	for _, p := range programs { // several may be the same folder, such as /lib and /usr/lib
		program, missing := filepath.EvalSymlinks(p)
		if rest, below := strings.CutPrefix(data, program+"/"); below && c.DataDir != "" && err == nil && missing == nil {
			hidden := filepath.Join(p, rest)
			args = append(args, "--tmpfs", hidden)
			if strings.HasPrefix(workspace, hidden+"/") {
				args = append(args, "--dir", workspace)
			}
			args = append(args, "--remount-ro", hidden)
		}
	}
	args = append(args, "--bind", workspace, workspace, "--remount-ro", "/", "--chdir", dir, "--")
	return append(args, shell...), nil
}

// bwrapPath returns the path of bubblewrap.
func (c ExecConfig) bwrapPath() (string, error) {
	path, err := exec.LookPath(cmp.Or(c.Sandbox, "bwrap"))
	if err != nil {
		return "", toolgroups.Errorf(toolgroups.CodeExecution,
			"Commands cannot run here: bubblewrap is not installed (on Debian: apt install bubblewrap; it exists for Linux only). Tell the user, and go on without exec.")
	}
	return path, nil
}

// procMounts returns the arguments for /proc. All of /proc is read-only: bubblewrap leaves
// /proc/sys writable if the bot is root. The files that only root may read, and those that container
// runtimes hide, are covered.
func procMounts() []string {
	args := []string{"--proc", "/proc"}
	// World-readable files about the host: its keys and the state of its kernel.
	covered := []string{"cmdline", "interrupts", "kcore", "key-users", "keys", "latency_stats", "sched_debug", "timer_list", "timer_stats"}
	entries, _ := os.ReadDir("/proc") // without /proc there is nothing to cover
	for _, entry := range entries {
		path := "/proc/" + entry.Name()
		if entry.IsDir() {
			if slices.Contains([]string{"acpi", "asound", "scsi"}, entry.Name()) {
				args = append(args, "--tmpfs", path, "--remount-ro", path)
			}
			continue
		}
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if info.Mode().Perm()&0o004 == 0 || slices.Contains(covered, entry.Name()) {
			args = append(args, "--ro-bind", os.DevNull, path)
		}
	}
	return append(args, "--remount-ro", "/proc")
}

// Check tries the sandbox and returns an error if the host does not permit it.
func (c ExecConfig) Check(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "oneclaw-exec-")
	if err != nil {
		return fmt.Errorf("core: make a folder for trying the sandbox: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	argv, err := c.argv("true", dir, dir, 0)
	if err != nil {
		return errors.New("core: the sandbox (bubblewrap) is not installed")
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = environment(dir)
	if cmd.ExtraFiles, err = c.filterFile(); err != nil {
		return fmt.Errorf("core: %w", err)
	}
	defer closeAll(cmd.ExtraFiles)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("core: the sandbox does not run: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// environment returns the environment of a command.
func environment(home string) []string {
	return []string{
		"PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
		"HOME=" + home, "LANG=C.UTF-8", "TMPDIR=/tmp",
	}
}

// countDescendants counts the descendants of pid and stops once there are more than limit. The
// kernel's process limit does not apply to root, and a bot in a container may run as root.
func countDescendants(pid, limit int) int {
	total := 0
	queue := []string{strconv.Itoa(pid)}
	for len(queue) > 0 && total <= limit {
		tasks, err := filepath.Glob("/proc/" + queue[0] + "/task/*/children")
		queue = queue[1:]
		if err != nil {
			continue
		}
		for _, task := range tasks {
			data, err := os.ReadFile(task)
			if err != nil {
				continue // the process has ended
			}
			children := strings.Fields(string(data))
			total += len(children)
			queue = append(queue, children...)
		}
	}
	return total
}
