package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	systemUnits = "/etc/systemd/system"
	sysusers    = "/etc/sysusers.d/oneclaw.conf"
	// account is the user of the system's service, for systemd-sysusers.
	account = "u oneclaw - \"OneClaw\" /var/lib/oneclaw\n"
	// ours begins each unit that Install writes.
	ours = "# OneClaw as a service"
)

// Installer installs and removes the unit.
type Installer struct {
	Options
	// Now starts the service at once.
	Now bool
	// Root is prepended to system paths; "" outside of tests.
	Root string
	// Out gets what was done and the next steps.
	Out io.Writer
}

// Install writes the unit and what it needs, and enables it.
func (i Installer) Install(ctx context.Context) error {
	text, err := Unit(i.Options)
	if err != nil {
		return err
	}
	file, err := i.check()
	if err != nil {
		return err
	}
	if !i.User {
		if err := i.visible(); err != nil {
			return err
		}
		if err := i.prepare(ctx); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("make a folder for the unit: %w", err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { // everybody may read units
		return fmt.Errorf("write the unit: %w", err)
	}
	if err := i.systemctl(ctx, "daemon-reload"); err != nil {
		return err
	}
	enable := []string{"enable", Name}
	if i.Now {
		enable = []string{"enable", "--now", Name}
	}
	if err := i.systemctl(ctx, enable...); err != nil {
		return err
	}
	_, err = io.WriteString(i.Out, i.next(file))
	return err
}

// Uninstall stops the service and removes the unit. Data, settings and secrets stay.
func (i Installer) Uninstall(ctx context.Context) error {
	file, err := i.check()
	if err != nil {
		return err
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no service in %s", file)
	}
	if err := i.systemctl(ctx, "disable", "--now", Name); err != nil {
		return err
	}
	if err := os.Remove(file); err != nil {
		return fmt.Errorf("remove the unit: %w", err)
	}
	if err := i.systemctl(ctx, "daemon-reload"); err != nil {
		return err
	}
	stays := "the data in systemd's folder for the state of users (oneclaw), and the settings"
	if !i.User {
		stays = "/var/lib/oneclaw, /etc/oneclaw and the user oneclaw"
	}
	_, err = fmt.Fprintf(i.Out, "The service is stopped and %s is removed. What stays: %s.\n", file, stays)
	return err
}

// check returns the file of the unit, or why it must not be touched.
func (i Installer) check() (string, error) {
	if _, err := exec.LookPath("systemctl"); err != nil {
		hint := "start \"oneclaw run\" with what starts services here"
		if runtime.GOOS == "darwin" {
			hint = "here launchd starts services: give it \"oneclaw run\""
		}
		return "", fmt.Errorf("there is no systemd: %s", hint)
	}
	file, err := i.file()
	if err != nil {
		return "", err
	}
	old, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", fmt.Errorf("read the unit: %w", err)
	case !bytes.HasPrefix(old, []byte(ours)):
		return "", fmt.Errorf("%s was written by somebody else: move it away first", file)
	}
	if !i.User && i.Root == "" && os.Geteuid() != 0 {
		return "", errors.New("a service of the system wants root: use sudo, or --user for a service of your own")
	}
	return file, nil
}

func (i Installer) file() (string, error) {
	if !i.User {
		return filepath.Join(i.Root, systemUnits, Name), nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the folder of user units: %w", err)
	}
	return filepath.Join(dir, "systemd/user", Name), nil
}

// visible refuses a program that the service's sandbox hides from it.
func (i Installer) visible() error {
	for _, hidden := range []string{"/home/", "/root/", "/run/user/", "/tmp/", "/var/tmp/"} {
		if strings.HasPrefix(i.Program, hidden) {
			return fmt.Errorf("the service cannot see %s: copy the program first (install -m 755 %s %s) and call that", i.Program, i.Program, Program)
		}
	}
	return nil
}

// prepare creates the user and the folders of the system's service.
func (i Installer) prepare(ctx context.Context) error {
	for _, dir := range []struct {
		path string
		mode fs.FileMode
	}{{filepath.Dir(Settings), 0o755}, {Secrets, 0o700}, {filepath.Dir(sysusers), 0o755}} { // the second is in the first
		if err := os.MkdirAll(filepath.Join(i.Root, dir.path), dir.mode); err != nil {
			return fmt.Errorf("make a folder of the service: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(i.Root, sysusers), []byte(account), 0o644); err != nil {
		return fmt.Errorf("write who the service runs as: %w", err)
	}
	return run(ctx, "systemd-sysusers", filepath.Join(i.Root, sysusers))
}

// next describes the next steps.
func (i Installer) next(file string) string {
	text := fmt.Sprintf("The service is in %s and starts with the system.\n", file)
	start, logs := "systemctl start oneclaw", "journalctl -u oneclaw -f"
	if i.User {
		start, logs = "systemctl --user start oneclaw", "journalctl --user -u oneclaw -f"
		text = fmt.Sprintf("The service is in %s and starts when you log in (with \"loginctl enable-linger\", when the system starts).\n"+
			"Settings and secrets: oneclaw/oneclaw.env in your folder for settings (~/.config), for you alone (chmod 600).\n", file)
	} else {
		text += fmt.Sprintf("Secrets: one file for each in %s, such as TELEGRAM_BOT_TOKEN and OPENAI_API_KEY. Other settings: %s.\n", Secrets, Settings)
	}
	if i.Now {
		return text + fmt.Sprintf("It is started; its log: %s\n", logs)
	}
	return text + fmt.Sprintf("Then: %s; its log: %s\n", start, logs)
}

func (i Installer) systemctl(ctx context.Context, args ...string) error {
	if i.User {
		args = append([]string{"--user"}, args...)
	}
	return run(ctx, "systemctl", args...)
}

// run runs a program of systemd.
func run(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
