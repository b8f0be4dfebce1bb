package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/settings"
	"oneclaw/storage"
)

// ReadChat reads the current conversation of a chat, through the running bot if there is one.
func ReadChat(ctx context.Context, cfg config.Config, name string, read func(iter.Seq2[agent.Message, error]) error) error {
	if err := checkChat(cfg, name); err != nil {
		return err
	}
	running, err := SendOrder(ctx, cfg, "history?chat="+url.QueryEscape(name), nil, func(body io.Reader) error {
		return read(decodeMessages(json.NewDecoder(body)))
	})
	if running {
		return err
	}
	return WithStore(ctx, cfg, slog.New(slog.DiscardHandler), func(store *database.Store) error {
		messages, err := messagesOf(ctx, store, name)
		if err != nil {
			return err
		}
		return read(messages)
	})
}

// checkChat returns an error for an invalid chat, or if the data directory has no database.
func checkChat(cfg config.Config, name string) error {
	if _, err := chats.ParseChat(name); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(cfg.DataDir, database.Name)); err != nil && !cfg.Store.Shared() {
		return fmt.Errorf("there is no database in %s: set ONECLAW_DATA_DIR to the bot's data directory", cfg.DataDir)
	}
	return nil
}

// messagesOf returns the messages of the current conversation of a chat.
func messagesOf(ctx context.Context, store storage.Store, name string) (iter.Seq2[agent.Message, error], error) {
	chat, err := chats.ParseChat(name)
	if err != nil {
		return nil, err
	}
	session, err := conversation.Current(ctx, store, chat)
	if err != nil {
		return nil, err
	}
	return conversation.Messages(ctx, store, session.Log()), nil
}

// writeMessages writes the messages of a chat's current conversation as JSON, one per line.
func writeMessages(ctx context.Context, store storage.Store, name string, w io.Writer) error {
	messages, err := messagesOf(ctx, store, name)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(w)
	for m, err := range messages {
		if err != nil {
			return err
		}
		if err := encoder.Encode(m); err != nil {
			return err
		}
	}
	return nil
}

// decodeMessages yields the messages in the output of writeMessages.
func decodeMessages(decoder *json.Decoder) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		for {
			var m agent.Message
			err := decoder.Decode(&m)
			if errors.Is(err, io.EOF) || !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// maxKey bounds a key, in bytes.
const maxKey = 16 << 10

// SendKey sends the key of a provider to the running bot, or stores it if none is running.
func SendKey(ctx context.Context, cfg config.Config, id string, from io.Reader, w io.Writer) error {
	key, err := readLine(from)
	if err != nil {
		return err
	}
	running, err := SendOrder(ctx, cfg, "key?id="+url.QueryEscape(id), strings.NewReader(key), func(body io.Reader) error {
		_, err := io.Copy(w, body)
		return err
	})
	if running {
		return err
	}
	return WithStore(ctx, cfg, slog.New(slog.DiscardHandler), func(store *database.Store) error {
		return storeKey(ctx, cfg, store, id, strings.NewReader(key), w)
	})
}

// SwitchOnProvider switches a provider on, through the running bot if there is one.
func SwitchOnProvider(ctx context.Context, cfg config.Config, id string, w io.Writer) error {
	return order(ctx, cfg, "provider-on?id="+url.QueryEscape(id), w, func(store storage.KV) error {
		return switchOnProvider(ctx, cfg, store, id, w)
	})
}

// ResetSetting takes back what was set in a chat, through the running bot if there is one.
func ResetSetting(ctx context.Context, cfg config.Config, key string, w io.Writer) error {
	return order(ctx, cfg, "setting-reset?key="+url.QueryEscape(key), w, func(store storage.KV) error {
		return resetSetting(ctx, cfg, store, key, w)
	})
}

// order has the running bot follow an order and writes its answer, or follows it if none is running.
func order(ctx context.Context, cfg config.Config, address string, w io.Writer, follow func(storage.KV) error) error {
	running, err := SendOrder(ctx, cfg, address, nil, func(body io.Reader) error {
		_, err := io.Copy(w, body)
		return err
	})
	if running {
		return err
	}
	return WithStore(ctx, cfg, slog.New(slog.DiscardHandler), func(store *database.Store) error { return follow(store) })
}

func resetSetting(ctx context.Context, cfg config.Config, store storage.KV, key string, w io.Writer) error {
	changing, _, err := OpenSettings(cfg, store, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if err := changing.Values.Reset(ctx, key); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "Setting %s is that of the file or the environment again, or its default.\n", key)
	return err
}

func switchOnProvider(ctx context.Context, cfg config.Config, store storage.KV, id string, w io.Writer) error {
	changing, _, err := OpenSettings(cfg, store, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	_, p, err := changing.Providers.Change(ctx, id, settings.ProviderChange{Active: new(true)})
	if settings.Is(err, settings.NotFound) {
		return unknownProvider(ctx, changing, id)
	}
	if err != nil {
		return err
	}
	text := "Provider %s is on.\n"
	if !p.HasKey {
		text = "Provider %s is on. It has no key yet: oneclaw provider key " + p.ID + " stores one.\n"
	}
	_, err = fmt.Fprintf(w, text, p.Name)
	return err
}

// unknownProvider returns the error for a provider that does not exist, which names those that do.
func unknownProvider(ctx context.Context, changing *settings.Settings, id string) error {
	all, err := changing.Providers.List(ctx)
	if err != nil {
		return err
	}
	var ids []string
	for _, p := range all {
		ids = append(ids, p.ID)
	}
	return fmt.Errorf("there is no provider %q; there are: %s", id, strings.Join(ids, ", "))
}

// readLine reads one line, at most maxKey bytes, without waiting for the end of the input.
func readLine(from io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(from, maxKey)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the key: %w", err)
	}
	return strings.TrimSpace(line), nil
}

// storeKey reads and stores the key of a provider.
func storeKey(ctx context.Context, cfg config.Config, store storage.KV, id string, from io.Reader, w io.Writer) error {
	changing, vault, err := OpenSettings(cfg, store, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	provider, err := changing.Providers.Get(ctx, id)
	if settings.Is(err, settings.NotFound) {
		return unknownProvider(ctx, changing, id)
	}
	if err != nil {
		return err
	}
	key, err := readLine(from)
	if err != nil {
		return err
	}
	if err := vault.SetKey(ctx, id, key); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "The key of %s is stored, encrypted.\n", provider.Name)
	return err
}
