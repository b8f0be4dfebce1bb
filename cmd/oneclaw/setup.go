package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"golang.org/x/term"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/internal/app"
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
			"answer is a line, and an empty one takes the default; only a terminal is asked for the time zone. What the " +
			"environment sets already is not asked for.",
		Args: cobra.NoArgs,
		RunE: load.WithConfig(setup),
	}
}

// modelService is a service that offers language models.
type modelService struct {
	name, address, model string
	// keySource says where to create a key, in a sentence; empty if the service needs none.
	keySource string
}

const otherAddress = "another address"

func modelServices() []modelService {
	return []modelService{
		{"OpenAI", config.Default().Model.BaseURL, config.Default().Model.Name, "Make a key at https://platform.openai.com/api-keys."},
		{"Anthropic", "https://api.anthropic.com/v1", "claude-haiku-4-5", "Make a key at https://console.anthropic.com/settings/keys."},
		{"OpenRouter", "https://openrouter.ai/api/v1", "openai/gpt-5-mini", "Make a key at https://openrouter.ai/keys."},
		{"Gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-flash", "Make a key at https://aistudio.google.com/apikey."},
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
	if q.terminal != nil {
		q.printf("An empty line takes what stands in brackets, and “%s” returns to the question before.\n\n", backWord)
	}
	file, err := q.interview(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	if len(file) == 0 {
		return errors.New("the environment already has all settings that setup asks for: oneclaw doctor checks them, oneclaw run starts the bot")
	}
	if err := writeSettings(path, file); err != nil {
		return err
	}
	q.printf("Saved in %s, which only you can read. Start the bot:\n\n  %s\n\nIt prints what makes the bot yours: a link to open, or a line to send it.\n", path, runCommandLine(cfg.DataDir))
	return q.writeErr
}

// interview asks all questions and returns the answers, by setting or by section and key. To go back, it begins anew
// with the answers before the last one, because which question comes next depends on them.
func (q *questioner) interview(ctx context.Context, cfg config.Config) (map[string]any, error) {
	for {
		file := map[string]any{}
		err := q.askAll(ctx, cfg, file)
		if !errors.Is(err, errBack) {
			return file, err
		}
		q.given, q.asked = q.given[:max(0, len(q.given)-1)], 0
	}
}

func (q *questioner) askAll(ctx context.Context, cfg config.Config, file map[string]any) error {
	if err := q.askPlatforms(ctx, &cfg, file); err != nil {
		return err
	}
	if cfg.Model.APIKey == "" {
		if err := q.askModel(ctx, &cfg, file); err != nil {
			return err
		}
	}
	if cfg.Timezone == "" && q.terminal != nil {
		return q.askZone(ctx, cfg.Runtime.Now, file)
	}
	return nil
}

// runCommandLine returns the command that starts the bot, for a shell in any folder: as the user started this process,
// from the PATH, from a folder, or with go run.
func runCommandLine(dataDir string) string {
	command := shellQuote(os.Args[0])
	if strings.Contains(command, "go-build") {
		command = "go run ./cmd/oneclaw"
	}
	command += " run"
	if dataDir != config.Default().DataDir {
		command = "ONECLAW_DATA_DIR=" + shellQuote(dataDir) + " " + command
	}
	if dir, err := os.Getwd(); err == nil {
		command = "cd " + shellQuote(dir) + " && " + command
	}
	return command
}

// plainWord matches what a shell takes as it is.
var plainWord = regexp.MustCompile(`^[\w./:@%+,-]+$`)

func shellQuote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// askZone asks for the time zone of people, which is seldom that of a server.
func (q *questioner) askZone(ctx context.Context, clock func() time.Time, file map[string]any) error {
	host := cmp.Or(strings.TrimPrefix(app.HostZone(), "Etc/"), "UTC")
	zone := host
	q.printf("Reminders and schedules need the time of day where you live.\n")
	_, err := q.ask(ctx, fmt.Sprintf("Your city or time zone, such as Lisbon or Europe/Lisbon [%s]", host), false, func(_ context.Context, said string) (string, error) {
		if zone = wording.FindZone(cmp.Or(said, host)); zone == "" {
			return "", fmt.Errorf("%q is in no list of time zones: enter a large city of your zone, or its name such as Europe/Lisbon", said)
		}
		local, err := wording.LoadZone(zone)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("In %s it is %s now.", zone, clock().In(local).Format("15:04")), nil
	})
	file["timezone"] = zone
	return err
}

// askPlatforms asks which platforms to use and for their tokens, unless one is configured already.
func (q *questioner) askPlatforms(ctx context.Context, cfg *config.Config, file map[string]any) error {
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
			section, _ := file[name].(map[string]string)
			if section == nil {
				section = map[string]string{}
			}
			section[question.Key] = given
			file[name] = section
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
func (q *questioner) askModel(ctx context.Context, cfg *config.Config, file map[string]any) error { //nolint:cyclop // One question after another.
	at, err := q.chooseService(ctx, cfg)
	if err != nil {
		return err
	}
	var key string
	var offered []string
	if at.name == otherAddress {
		if at.address, err = q.ask(ctx, "Address, such as http://127.0.0.1:8080/v1", false, func(ctx context.Context, address string) (string, error) {
			if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				return "", fmt.Errorf("%q is no address: it begins with http:// or https://, and mostly ends in /v1", address)
			}
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
		q.printf("%s\n", at.keySource)
		key, err = q.ask(ctx, "Key of the model", true, func(ctx context.Context, key string) (news string, err error) {
			offered, err = listModels(ctx, at.address, key)
			return "The key works.", err
		})
	} else {
		q.printf("Looking for %s at %s …\n", at.name, at.address)
		offered, err = listModels(ctx, at.address, "")
		if err == nil && len(offered) == 0 {
			err = errors.New("the server has no model yet: run ollama pull qwen3, then choose it again")
		}
		if err != nil {
			return q.reject(err)
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
	model := map[string]string{"base_url": at.address, "name": cmp.Or(name, at.model)}
	if key != "" {
		model["api_key"] = key
	}
	file["model"] = model
	return nil
}

// otherKey is the keySource of an address that is not in the list of services.
const otherKey = "The server may want a key; an empty line if it wants none."

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
		if ok {
			err = refused.Err
		}
		return nil, fmt.Errorf("nothing answers at %s: %w", address, err)
	}
	var names []string
	for _, m := range listed {
		names = append(names, strings.TrimPrefix(m.ID, "models/"))
	}
	return names, nil
}

// writeSettings writes the settings to a new file that only its owner can read.
func writeSettings(path string, file map[string]any) error {
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

	// given are the answers so far, of which the first asked have been used since the interview began anew. Until all
	// have been, nothing is shown.
	given []string
	asked int
}

// backWord is the answer that returns to the question before.
const backWord = "back"

// errBack ends an interview that continues with the question before.
var errBack = errors.New("back to the question before")

// reject says why the last answer cannot be used, and returns to its question. A pipe has no other answer.
func (q *questioner) reject(why error) error {
	q.given = q.given[:q.asked]
	if q.terminal == nil || q.asked == 0 {
		return why
	}
	q.printf("That did not work: %v\n\n", why)
	return errBack
}

func newQuestioner(in io.Reader, out io.Writer) *questioner {
	q := &questioner{lines: bufio.NewReader(io.LimitReader(in, 64<<10)), out: out}
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		q.terminal = f
	}
	return q
}

func (q *questioner) printf(format string, args ...any) {
	if q.asked < len(q.given) {
		return
	}
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
		var answer string
		var err error
		if q.asked < len(q.given) {
			answer = q.given[q.asked]
		} else {
			hidden := ""
			if secret && q.terminal != nil {
				hidden = " (not shown while you type or paste it)"
			}
			q.printf("%s%s: ", what, hidden)
			answer, err = q.read(ctx, secret)
			if secret || q.terminal == nil {
				q.printf("\n")
			}
		}
		if q.terminal != nil && strings.EqualFold(answer, backWord) && err == nil {
			q.printf("\n")
			return "", errBack
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
			if q.asked == len(q.given) {
				q.given = append(q.given, answer)
			}
			q.asked++
			return answer, q.writeErr
		}
		if q.terminal == nil || ctx.Err() != nil {
			return "", err
		}
		q.given = q.given[:q.asked] // what was right before need not be now
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
