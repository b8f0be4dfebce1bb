package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"golang.org/x/term"

	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/doctor"
	"oneclaw/internal/redact"
)

const maxTries = 3

func setupCommand(load cli.Loader) *cobra.Command {
	return &cobra.Command{
		Use:   "setup",
		Short: "Ask for a Telegram token and a model key, check them, and write the settings file",
		Long: "Ask for the token of a Telegram bot and the key of the language model, check both, and write them to " +
			config.ConfigName + " in the data directory. What is typed is not shown. From a pipe, the token is the first line " +
			"and the key the second. What the environment sets already is not asked for.",
		Args: cobra.NoArgs,
		RunE: load.Run(setup),
	}
}

func setup(cmd *cobra.Command, cfg config.Config, _ []string) error {
	path := filepath.Join(cfg.DataDir, config.ConfigName)
	if _, err := os.Stat(path); err == nil {
		return fmt.Errorf("there are settings in %s already: change them there, or move the file away", path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("settings file: %w", err)
	}
	q := newQuestioner(cmd.InOrStdin(), cmd.OutOrStdout())
	file := map[string]map[string]string{} // the answers by section and key
	for name, platform := range cfg.All {
		p, ok := platform.(config.Asking)
		if !ok || platform.Missing() == "" {
			continue
		}
		explanation, what, key := p.Question()
		q.say("%s\n", explanation)
		given, err := q.ask(cmd.Context(), what, p.Answer)
		if err != nil {
			return err
		}
		file[name] = map[string]string{key: given}
	}
	if cfg.Model.APIKey == "" {
		q.say("The language model is %s at %s (OPENAI_MODEL and OPENAI_BASE_URL change that).\n", cfg.Model.Name, cfg.Model.BaseURL)
		key, err := q.ask(cmd.Context(), "Key of the model", func(ctx context.Context, key string) (string, error) {
			cfg.Model.APIKey = redact.Secret(key)
			f := app.CheckModel(ctx, cfg)
			if f.Status == doctor.VerdictFail || key == "" && f.Status != doctor.VerdictOK {
				return "", errors.New(f.Text)
			}
			return "The model: " + f.Text, nil
		})
		if err != nil {
			return err
		}
		file["model"] = map[string]string{"api_key": key}
	}
	if len(file) == 0 {
		return errors.New("the environment sets already what setup asks for: oneclaw doctor checks it, oneclaw run starts the bot")
	}
	if err := writeSettings(path, file); err != nil {
		return err
	}
	q.say("\nWritten to %s, readable by you alone. Now start the bot:\n\n  oneclaw run\n\n"+
		"Its log shows a link: open it, and the bot is yours.\n", path)
	return q.err
}

// writeSettings makes a file that nobody else can read.
func writeSettings(path string, file map[string]map[string]string) error {
	data, err := yaml.Marshal(file)
	if err != nil {
		return fmt.Errorf("encode settings: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("data directory (ONECLAW_DATA_DIR): %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write settings: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}

// questioner asks on a terminal without showing the answers, or reads lines from a pipe.
type questioner struct {
	lines    *bufio.Reader
	terminal *os.File // nil for a pipe
	out      io.Writer
	err      error // the first of out
}

func newQuestioner(in io.Reader, out io.Writer) *questioner {
	q := &questioner{lines: bufio.NewReader(io.LimitReader(in, 64<<10)), out: out}
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		q.terminal = f
	}
	return q
}

func (q *questioner) say(format string, args ...any) {
	_, err := fmt.Fprintf(q.out, format, args...)
	q.err = cmp.Or(q.err, err)
}

// ask asks until the answer is good, and returns it; what comes from a pipe has one try.
func (q *questioner) ask(ctx context.Context, what string, check func(context.Context, string) (string, error)) (string, error) {
	for try := 1; ; try++ {
		q.say("%s: ", what)
		answer, err := q.read(ctx)
		if q.say("\n"); err != nil {
			if errors.Is(err, io.EOF) {
				return "", fmt.Errorf("no answer to %q: run oneclaw setup in a terminal, or give it the token and the key as two lines", what)
			}
			return "", fmt.Errorf("read the answer to %q: %w", what, err)
		}
		limited, cancel := context.WithTimeout(ctx, doctor.Patience)
		news, err := check(limited, answer)
		cancel()
		if err == nil {
			q.say("%s\n\n", news)
			return answer, q.err
		}
		if q.terminal == nil || try == maxTries || ctx.Err() != nil {
			return "", err
		}
		q.say("%v\nPlease try again.\n", err)
	}
}

func (q *questioner) read(ctx context.Context) (string, error) {
	if q.terminal != nil {
		return readHidden(ctx, int(q.terminal.Fd()))
	}
	line, err := q.lines.ReadString('\n')
	if errors.Is(err, io.EOF) && line != "" {
		err = nil
	}
	return strings.TrimSpace(line), err
}

// readHidden reads a line from a terminal that does not show it. Where ctx ends first,
// the terminal shows again what is typed, and the read is left behind: the program ends.
func readHidden(ctx context.Context, terminal int) (string, error) {
	before, err := term.GetState(terminal)
	if err != nil {
		return "", err
	}
	type read struct {
		line []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		line, err := term.ReadPassword(terminal)
		done <- read{line, err}
	}()
	select {
	case r := <-done:
		return strings.TrimSpace(string(r.line)), r.err
	case <-ctx.Done():
		return "", errors.Join(context.Cause(ctx), term.Restore(terminal, before))
	}
}
