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
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"golang.org/x/term"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/doctor"
	"oneclaw/internal/wording"
)

func setupCommand(load cli.Loader) *cobra.Command {
	return &cobra.Command{
		Use:   "setup",
		Short: "Ask for what the bot needs, check each answer, and write the settings file",
		Long: "Ask for a platform and its tokens and for a model and its key, check each answer, and write them to " +
			config.ConfigName + " in the data directory. Tokens and keys are not shown while they are typed. From a pipe each " +
			"answer is a line, and an empty one takes the default. What the environment sets already is not asked for.",
		Args: cobra.NoArgs,
		RunE: load.WithConfig(setup),
	}
}

// modelService is a service that offers language models.
type modelService struct {
	name, address, model string
	// keySource says where to create a key; empty if the service needs none.
	keySource string
}

const otherAddress = "another address"

func modelServices() []modelService {
	return []modelService{
		{"OpenAI", config.Default().Model.BaseURL, config.Default().Model.Name, "https://platform.openai.com/api-keys"},
		{"Anthropic", "https://api.anthropic.com/v1", "claude-haiku-4-5", "https://console.anthropic.com/settings/keys"},
		{"OpenRouter", "https://openrouter.ai/api/v1", "openai/gpt-5-mini", "https://openrouter.ai/keys"},
		{"Gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-flash", "https://aistudio.google.com/apikey"},
		{"Ollama", "http://127.0.0.1:11434/v1", "", ""},
		{otherAddress, "", "", otherKey},
	}
}

func setup(cmd *cobra.Command, cfg config.Config, _ []string) error {
	path := filepath.Join(cfg.DataDir, config.ConfigName)
	if _, err := os.Stat(path); err == nil {
		return fmt.Errorf("there are settings in %s already: edit the file, or move it away", path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("settings file: %w", err)
	}
	// Before the questions: the answers would be lost.
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return fmt.Errorf("data directory (ONECLAW_DATA_DIR): %w", err)
	}
	q := newQuestioner(cmd.InOrStdin(), cmd.OutOrStdout())
	file := map[string]map[string]string{} // the answers by section and key
	if err := q.askPlatforms(cmd.Context(), &cfg, file); err != nil {
		return err
	}
	if cfg.Model.APIKey == "" {
		if err := q.askModel(cmd.Context(), &cfg, file); err != nil {
			return err
		}
	}
	if len(file) == 0 {
		return errors.New("the environment already has all settings that setup asks for: oneclaw doctor checks them, oneclaw run starts the bot")
	}
	if err := writeSettings(path, file); err != nil {
		return err
	}
	q.printf("Saved in %s, which only you can read. Start the bot:\n\n  %s\n\nIt prints what makes the bot yours: a link to open, or a line to send it.\n", path, runCommandLine(os.Args[0], cfg.DataDir))
	return q.writeErr
}

// runCommandLine returns the command that starts the bot, for a user who started this process as
// program: from the PATH, from a folder, or with go run.
func runCommandLine(program, dataDir string) string {
	command := program
	if strings.Contains(program, "go-build") {
		command = "go run ./cmd/oneclaw"
	}
	command += " run"
	if dataDir != config.Default().DataDir {
		command = "ONECLAW_DATA_DIR=" + strconv.Quote(dataDir) + " " + command
	}
	return command
}

// askPlatforms asks which platforms to use and for their tokens, unless one is configured already.
func (q *questioner) askPlatforms(ctx context.Context, cfg *config.Config, file map[string]map[string]string) error {
	if cfg.Platforms.Check() == nil {
		return nil
	}
	const all = "all"
	var offered []string
	for _, name := range config.PlatformNames() {
		offered = append(offered, strings.ToUpper(name[:1])+name[1:])
	}
	chosen, err := q.choose(ctx, "Where do people reach the bot?", append(offered, all))
	if err != nil {
		return err
	}
	for name, platform := range cfg.All {
		if chosen != all && !strings.EqualFold(chosen, name) {
			continue
		}
		for _, question := range platform.Questions() {
			q.printf("%s\n", question.Explanation)
			given, err := q.ask(ctx, question.Prompt, true, question.Check)
			if err != nil {
				return err
			}
			if file[name] == nil {
				file[name] = map[string]string{}
			}
			file[name][question.Key] = given
		}
	}
	return nil
}

// chooseService asks for a model service, unless the settings have an address.
func (q *questioner) chooseService(ctx context.Context, cfg *config.Config) (modelService, error) {
	if cfg.Model.BaseURL != config.Default().Model.BaseURL {
		q.printf("The language model is at %s (OPENAI_BASE_URL).\n", cfg.Model.BaseURL)
		return modelService{address: cfg.Model.BaseURL, model: cfg.Model.Name, keySource: otherKey}, nil
	}
	var names []string
	for _, s := range modelServices() {
		names = append(names, s.name)
	}
	chosen, err := q.choose(ctx, "Which language model?", names)
	if err != nil {
		return modelService{}, err
	}
	at := modelServices()[slices.Index(names, chosen)]
	if cfg.Model.Name != config.Default().Model.Name {
		at.model = cfg.Model.Name
	}
	return at, nil
}

// askModel asks for a model service, its key and one of its models.
func (q *questioner) askModel(ctx context.Context, cfg *config.Config, file map[string]map[string]string) error {
	at, err := q.chooseService(ctx, cfg)
	if err != nil {
		return err
	}
	var key string
	var offered []string
	if at.name == otherAddress {
		if at.address, err = q.ask(ctx, "Address, such as http://127.0.0.1:8080/v1", false, func(ctx context.Context, address string) (string, error) {
			_, err := listModels(ctx, address, "")
			if refused, ok := errors.AsType[*agent.ModelError](err); ok && refused.Kind == agent.KindAuth {
				return "The server answers.", nil
			}
			return "The server answers.", err
		}); err != nil {
			return err
		}
	}
	if at.keySource != "" {
		q.printf("Make a key at %s.\n", at.keySource)
		key, err = q.ask(ctx, "Key of the model", true, func(ctx context.Context, key string) (news string, err error) {
			offered, err = listModels(ctx, at.address, key)
			return "The key works.", err
		})
	} else {
		q.printf("Looking for %s at %s …\n", at.name, at.address)
		offered, err = listModels(ctx, at.address, "")
		if err == nil && len(offered) == 0 {
			err = errors.New("the server has no model yet: run ollama pull qwen3, then setup again")
		}
	}
	if err != nil {
		return err
	}
	if at.model == "" || len(offered) > 0 && !slices.Contains(offered, at.model) {
		at.model = strings.Join(offered[:min(1, len(offered))], "")
	}
	name, err := q.ask(ctx, fmt.Sprintf("Model [%s]", at.model), false, func(_ context.Context, name string) (string, error) {
		name = cmp.Or(name, at.model)
		if name == "" {
			return "", errors.New("the server does not list its models: enter the name of one")
		}
		if len(offered) > 0 && !slices.Contains(offered, name) {
			near := cmp.Or(wording.NearestName(name, offered), offered[0])
			return "", fmt.Errorf("the service has no model %q; the nearest is %s (of %d)", name, near, len(offered))
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	file["model"] = map[string]string{"base_url": at.address, "name": cmp.Or(name, at.model)}
	if key != "" {
		file["model"]["api_key"] = key
	}
	return nil
}

// otherKey says where to create a key for an address that is not in the list of services.
const otherKey = "the server; an empty line if it wants none"

// listModels asks a service for its models. It returns none for a service without a list.
func listModels(ctx context.Context, address, key string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, doctor.Timeout)
	defer cancel()
	listed, err := openai.ListModels(ctx, openai.Config{BaseURL: address, APIKey: key, Model: "any"})
	refused, ok := errors.AsType[*agent.ModelError](err)
	switch {
	case err == nil:
	case ok && refused.Kind == agent.KindAuth && key == "":
		return nil, fmt.Errorf("the server requires a key: %w", err)
	case ok && refused.Kind == agent.KindAuth:
		return nil, fmt.Errorf("the server refuses the key: %w", err)
	case ok && refused.Status != 0 && refused.Status != 404:
		return nil, fmt.Errorf("the server responds, but cannot be used: %w", err)
	case ok && refused.Status == 404:
		return nil, nil
	default:
		return nil, fmt.Errorf("nothing answers at %s: %w", address, err)
	}
	var names []string
	for _, m := range listed {
		names = append(names, strings.TrimPrefix(m.ID, "models/"))
	}
	return names, nil
}

// writeSettings writes the settings to a new file that only its owner can read.
func writeSettings(path string, file map[string]map[string]string) error {
	data, err := yaml.Marshal(file)
	if err != nil {
		return fmt.Errorf("encode settings: %w", err)
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

// questioner asks questions on a terminal, without echoing secrets, or reads answers from a pipe.
type questioner struct {
	lines    *bufio.Reader
	terminal *os.File // nil for a pipe
	out      io.Writer
	writeErr error // the first error of writing to out
}

func newQuestioner(in io.Reader, out io.Writer) *questioner {
	q := &questioner{lines: bufio.NewReader(io.LimitReader(in, 64<<10)), out: out}
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		q.terminal = f
	}
	return q
}

func (q *questioner) printf(format string, args ...any) {
	_, err := fmt.Fprintf(q.out, format, args...)
	q.writeErr = cmp.Or(q.writeErr, err)
}

// choose asks for a choice from a list, by number or name. An empty answer selects the first.
func (q *questioner) choose(ctx context.Context, what string, names []string) (string, error) {
	q.printf("%s\n", what)
	for i, name := range names {
		q.printf("  %d  %s\n", i+1, name)
	}
	chosen := names[0]
	_, err := q.ask(ctx, fmt.Sprintf("1 to %d [1]", len(names)), false, func(_ context.Context, answer string) (string, error) {
		n, err := strconv.Atoi(cmp.Or(answer, "1"))
		at := n - 1
		if err != nil {
			at = slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, answer) })
		}
		if at < 0 || at >= len(names) {
			return "", fmt.Errorf("%q is none of them", answer)
		}
		chosen = names[at]
		return "", nil
	})
	return chosen, err
}

// ask asks until the answer is valid, and returns it. An invalid answer from a pipe is an error.
func (q *questioner) ask(ctx context.Context, what string, secret bool, check func(context.Context, string) (string, error)) (string, error) {
	for {
		q.printf("%s: ", what)
		answer, err := q.read(ctx, secret)
		if secret || q.terminal == nil {
			q.printf("\n")
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return "", fmt.Errorf("no answer to %q: run oneclaw setup in a terminal, or pipe one line per answer into it", what)
			}
			return "", fmt.Errorf("read the answer to %q: %w", what, err)
		}
		limited, cancel := context.WithTimeout(ctx, doctor.Timeout)
		news, err := check(limited, answer)
		cancel()
		if err == nil {
			if news != "" {
				news += "\n"
			}
			q.printf("%s\n", news)
			return answer, q.writeErr
		}
		if q.terminal == nil || ctx.Err() != nil {
			return "", err
		}
		q.printf("That did not work: %v\n\n", err)
	}
}

// read reads an answer. If ctx ends first, it restores the terminal's echo and leaves the reading
// goroutine behind, because the program is about to exit.
func (q *questioner) read(ctx context.Context, secret bool) (string, error) {
	type read struct {
		line string
		err  error
	}
	done := make(chan read, 1)
	restore := func() error { return nil }
	if secret && q.terminal != nil {
		fd := int(q.terminal.Fd())
		before, err := term.GetState(fd)
		if err != nil {
			return "", err
		}
		restore = func() error { return term.Restore(fd, before) }
		go func() {
			line, err := term.ReadPassword(fd)
			done <- read{string(line), err}
		}()
	} else {
		go func() {
			line, err := q.lines.ReadString('\n')
			if errors.Is(err, io.EOF) && line != "" {
				err = nil
			}
			done <- read{line, err}
		}()
	}
	select {
	case r := <-done:
		return strings.TrimSpace(r.line), r.err
	case <-ctx.Done():
		return "", errors.Join(context.Cause(ctx), restore())
	}
}
