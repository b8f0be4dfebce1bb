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
	systemUnitDir = "/etc/systemd/system"
	sysusersFile  = "/etc/sysusers.d/oneclaw.conf"
	// sysusersConfig makes systemd-sysusers create the user of the system's service.
	sysusersConfig = "u oneclaw - \"OneClaw\" /var/lib/oneclaw\n"
	// unitHeader begins each unit that Install writes.
	unitHeader = "# OneClaw as a service"
)

// Installer installs and removes the unit.
type Installer struct {
	Options
	// Now makes Install start the service at once.
	Now bool
	// Root is prepended to system paths; "" outside of tests.
	Root string
	// Out receives a description of what was done, and the next steps.
	Out io.Writer
}

// Install writes the unit, creates its user and folders, and enables the service.
func (i Installer) Install(ctx context.Context) error {
	text, err := Unit(i.Options)
	if err != nil {
		return err
	}
	file, err := i.checkUnit()
	if err != nil {
		return err
	}
	if !i.UserService {
		if err := i.checkVisible(); err != nil {
			return err
		}
		if err := i.prepare(ctx); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("create the folder of the unit: %w", err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { // units are world-readable
		return fmt.Errorf("write the unit: %w", err)
	}
	if err := i.systemctl(ctx, "daemon-reload"); err != nil {
		return err
	}
	enable := []string{"enable", Name}
	if i.Now {
		enable = []string{"enable", "--now", Name}
	}
	started := i.systemctl(ctx, enable...)
	if started != nil {
		if !i.Now {
			return started
		}
		i.Now, started = false, fmt.Errorf("the service is installed, but did not start: %w", started)
	}
	_, err = io.WriteString(i.Out, i.nextSteps(file))
	return errors.Join(started, err)
}

// Uninstall stops the service and removes the unit. It keeps data, settings and secrets.
func (i Installer) Uninstall(ctx context.Context) error {
	file, err := i.checkUnit()
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
	if !i.UserService {
		stays = "/var/lib/oneclaw, /etc/oneclaw and the user oneclaw"
	}
	_, err = fmt.Fprintf(i.Out, "The service is stopped and %s is removed. What stays: %s.\n", file, stays)
	return err
}

// checkUnit returns the path of the unit, or an error if Install must not write it.
func (i Installer) checkUnit() (string, error) {
	if _, err := exec.LookPath("systemctl"); err != nil {
		hint := "start \"oneclaw run\" with what starts services here"
		if runtime.GOOS == "darwin" {
			hint = "here launchd starts services: give it \"oneclaw run\""
		}
		return "", fmt.Errorf("there is no systemd: %s", hint)
	}
	file, err := i.unitPath()
	if err != nil {
		return "", err
	}
	old, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", fmt.Errorf("read the unit: %w", err)
	case !bytes.HasPrefix(old, []byte(unitHeader)):
		return "", fmt.Errorf("%s was not written by oneclaw: move it away first", file)
	}
	if !i.UserService && i.Root == "" && os.Geteuid() != 0 {
		return "", errors.New("installing a system service requires root: use sudo, or --user for a user service")
	}
	return file, nil
}

func (i Installer) unitPath() (string, error) {
	if !i.UserService {
		return filepath.Join(i.Root, systemUnitDir, Name), nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the folder of user units: %w", err)
	}
	return filepath.Join(dir, "systemd/user", Name), nil
}

// checkVisible returns an error if the service's sandbox would hide the program.
func (i Installer) checkVisible() error {
	for _, hidden := range []string{"/home/", "/root/", "/run/user/", "/tmp/", "/var/tmp/"} {
		if strings.HasPrefix(i.Program, hidden) {
			return fmt.Errorf("the service cannot see %s: copy the program first (install -m 755 %s %s) and call that", i.Program, i.Program, ProgramPath)
		}
	}
	return nil
}

// prepare creates the user and folders for the system's service.
func (i Installer) prepare(ctx context.Context) error {
	for _, dir := range []struct {
		path string
		mode fs.FileMode
	}{{filepath.Dir(SettingsFile), 0o755}, {SecretsDir, 0o700}, {filepath.Dir(sysusersFile), 0o755}} { // the second is in the first
		if err := os.MkdirAll(filepath.Join(i.Root, dir.path), dir.mode); err != nil {
			return fmt.Errorf("create a folder of the service: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(i.Root, sysusersFile), []byte(sysusersConfig), 0o644); err != nil {
		return fmt.Errorf("write the sysusers file: %w", err)
	}
	return run(ctx, "systemd-sysusers", filepath.Join(i.Root, sysusersFile))
}

// nextSteps describes what to do after the installation.
func (i Installer) nextSteps(file string) string {
	text := fmt.Sprintf("The service is in %s and starts with the system.\n", file)
	start, logs := "systemctl start oneclaw", "journalctl -u oneclaw -f"
	if i.UserService {
		start, logs = "systemctl --user start oneclaw", "journalctl --user -u oneclaw -f"
		text = fmt.Sprintf("The service is in %s and starts when you log in (with \"loginctl enable-linger\", when the system starts).\n"+
			"Settings and secrets: oneclaw/oneclaw.env in your folder for settings (~/.config), for you alone (chmod 600).\n", file)
	} else {
		text += fmt.Sprintf("Secrets: one file for each in %s, such as TELEGRAM_BOT_TOKEN and OPENAI_API_KEY. Other settings: %s.\n", SecretsDir, SettingsFile)
	}
	if i.Now {
		return text + fmt.Sprintf("It is started; its log: %s\n", logs)
	}
	return text + fmt.Sprintf("Then: %s; its log: %s\n", start, logs)
}

func (i Installer) systemctl(ctx context.Context, args ...string) error {
	if i.UserService {
		args = append([]string{"--user"}, args...)
	}
	return run(ctx, "systemctl", args...)
}

// run runs one of systemd's programs. Its error contains the output.
func run(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
