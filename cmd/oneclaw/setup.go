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
		RunE: load.Run(setup),
	}
}

// modelService is where a model can be had.
type modelService struct {
	name, address, model string
	// key says where a key is made; it is empty where none is wanted.
	key string
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
		return fmt.Errorf("there are settings in %s already: change them there, or move the file away", path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("settings file: %w", err)
	}
	q := newQuestioner(cmd.InOrStdin(), cmd.OutOrStdout())
	file := map[string]map[string]string{} // the answers by section and key
	if err := q.platforms(cmd.Context(), &cfg, file); err != nil {
		return err
	}
	if cfg.Model.APIKey == "" {
		if err := q.model(cmd.Context(), &cfg, file); err != nil {
			return err
		}
	}
	if len(file) == 0 {
		return errors.New("the environment sets already what setup asks for: oneclaw doctor checks it, oneclaw run starts the bot")
	}
	if err := writeSettings(path, file); err != nil {
		return err
	}
	q.say("Saved in %s, which only you can read. Start the bot:\n\n  %s\n\nIt prints a link: open it, and the bot is yours.\n", path, runCommandLine(os.Args[0], cfg.DataDir))
	return q.err
}

// runCommandLine is how the bot is started by who has typed program: from the PATH, from a folder,
// or with go run.
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

// platforms asks where people reach the bot, unless the environment says so, and for the tokens.
func (q *questioner) platforms(ctx context.Context, cfg *config.Config, file map[string]map[string]string) error {
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
			q.say("%s\n", question.Explanation)
			given, err := q.ask(ctx, question.What, true, question.Check)
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

// model asks for a service, its key and a model of it.
func (q *questioner) model(ctx context.Context, cfg *config.Config, file map[string]map[string]string) error {
	at := modelService{address: cfg.Model.BaseURL, model: cfg.Model.Name, key: otherKey}
	if cfg.Model.BaseURL == config.Default().Model.BaseURL {
		var names []string
		for _, s := range modelServices() {
			names = append(names, s.name)
		}
		chosen, err := q.choose(ctx, "Which language model?", names)
		if err != nil {
			return err
		}
		at = modelServices()[slices.Index(names, chosen)]
		if cfg.Model.Name != config.Default().Model.Name {
			at.model = cfg.Model.Name
		}
	} else {
		q.say("The language model is at %s (OPENAI_BASE_URL).\n", at.address)
	}
	key, offered, err := "", []string(nil), error(nil)
	if at.name == otherAddress {
		if at.address, err = q.ask(ctx, "Address, such as http://127.0.0.1:8080/v1", false, func(ctx context.Context, address string) (string, error) {
			_, err := offers(ctx, address, "")
			if refused, ok := errors.AsType[*agent.ModelError](err); ok && refused.Kind == agent.KindAuth {
				return "The server answers.", nil
			}
			return "The server answers.", err
		}); err != nil {
			return err
		}
	}
	if at.key != "" {
		q.say("Make a key at %s.\n", at.key)
		key, err = q.ask(ctx, "Key of the model", true, func(ctx context.Context, key string) (news string, err error) {
			offered, err = offers(ctx, at.address, key)
			return "The key works.", err
		})
	} else {
		q.say("Looking for %s at %s …\n", at.name, at.address)
		offered, err = offers(ctx, at.address, "")
		if err == nil && len(offered) == 0 {
			err = errors.New("it has no model yet: run ollama pull qwen3, then setup again")
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
		if len(offered) > 0 && !slices.Contains(offered, name) {
			near := cmp.Or(wording.Nearest(name, offered), offered[0])
			return "", fmt.Errorf("no model %q there; the nearest is %s (%d in all)", name, near, len(offered))
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

// otherKey says where the key of an address that the environment gave is made.
const otherKey = "the server; an empty line if it wants none"

// offers asks a service for its models. A service that has no list is taken as it is.
func offers(ctx context.Context, address, key string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, doctor.Patience)
	defer cancel()
	listed, err := openai.ListModels(ctx, openai.Config{BaseURL: address, APIKey: key, Model: "any"})
	refused, ok := errors.AsType[*agent.ModelError](err)
	switch {
	case err == nil:
	case ok && refused.Kind == agent.KindAuth && key == "":
		return nil, fmt.Errorf("the server wants a key: %w", err)
	case ok && refused.Kind == agent.KindAuth:
		return nil, fmt.Errorf("the server refuses the key: %w", err)
	case ok && refused.Status != 0 && refused.Status != 404:
		return nil, fmt.Errorf("the server answers, and cannot be used: %w", err)
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

// writeSettings makes a file that only its owner can read.
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

// questioner asks on a terminal, secrets without showing them, or reads lines from a pipe.
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

// choose asks for one of a list, by number or name; an empty answer is the first.
func (q *questioner) choose(ctx context.Context, what string, names []string) (string, error) {
	q.say("%s\n", what)
	for i, name := range names {
		q.say("  %d  %s\n", i+1, name)
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

// ask asks until the answer is good, and returns it; what comes from a pipe has one try.
func (q *questioner) ask(ctx context.Context, what string, secret bool, check func(context.Context, string) (string, error)) (string, error) {
	for {
		q.say("%s: ", what)
		answer, err := q.read(ctx, secret)
		if secret || q.terminal == nil {
			q.say("\n")
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return "", fmt.Errorf("no answer to %q: run oneclaw setup in a terminal, or give it each answer as a line", what)
			}
			return "", fmt.Errorf("read the answer to %q: %w", what, err)
		}
		limited, cancel := context.WithTimeout(ctx, doctor.Patience)
		news, err := check(limited, answer)
		cancel()
		if err == nil {
			if news != "" {
				news += "\n"
			}
			q.say("%s\n", news)
			return answer, q.err
		}
		if q.terminal == nil || ctx.Err() != nil {
			return "", err
		}
		q.say("That did not work: %v\n\n", err)
	}
}

// read reads an answer. Where ctx ends first, the terminal shows again what is typed, and the
// read is left behind: the program ends.
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
