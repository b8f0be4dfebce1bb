package main

import (
	"errors"
	"iter"
	"log/slog"

	"github.com/spf13/cobra"

	"oneclaw/agent"
	"oneclaw/cmd/oneclaw/config"
	"oneclaw/internal/bill"
	"oneclaw/internal/settings"
	"oneclaw/toolgroups/search"
)

func billCommand(load loader) *cobra.Command {
	var chat string
	var asJSON, asMarkdown bool
	command := &cobra.Command{
		Use:   "bill [CONVERSATION…]",
		Short: "Compare what conversations cost under each way of routing tools",
		Long: "Play conversations under each way of routing tools (tools.routing) and print what their input tokens cost at the " +
			"prices of several providers' caches. Nothing is sent anywhere. Without arguments all conversations are played that " +
			"come with the program; --chat plays the present conversation of a chat (stop the bot first).",
		RunE: load.run(func(cmd *cobra.Command, cfg config.Config, args []string) error {
			if chat != "" && len(args) > 0 {
				return errors.New("--chat plays a chat and takes no names of conversations")
			}
			conversations, lines, err := bills(cmd, cfg, chat, args)
			if err != nil {
				return err
			}
			switch {
			case asJSON:
				return search.WriteJSON(cmd.OutOrStdout(), lines)
			case asMarkdown:
				return bill.WriteMarkdown(cmd.OutOrStdout(), conversations, lines)
			}
			return bill.WriteText(cmd.OutOrStdout(), conversations, lines)
		}),
	}
	command.Flags().StringVar(&chat, "chat", "", "play the present conversation of a chat, such as telegram:123")
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON object for each line")
	command.Flags().BoolVar(&asMarkdown, "markdown", false, "print tables in Markdown")
	command.MarkFlagsMutuallyExclusive("json", "markdown")
	return command
}

// bills plays the conversations that come with the program, or that of a chat.
func bills(cmd *cobra.Command, cfg config.Config, chat string, names []string) (conversations []bill.Conversation, lines []bill.Line, err error) {
	ctx := cmd.Context()
	play := func(b *bot) (err error) {
		lines, err = compareBills(cmd, cfg, b, conversations)
		return err
	}
	if chat == "" {
		if conversations, err = bill.Conversations(names); err != nil {
			return nil, nil, err
		}
		err = emptyBot(ctx, cfg, play)
		return conversations, lines, err
	}
	err = readChat(ctx, cfg, chat, func(log iter.Seq2[agent.Message, error]) error {
		c, err := bill.Recorded(chat, log)
		conversations = []bill.Conversation{c}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if cfg.Telegram.Token == "" {
		cfg.Telegram.Token = unusedToken
	}
	// The bot is built with the data of the real one, for its own tools and servers, and
	// not run.
	err = serveBot(ctx, cfg, slog.New(slog.DiscardHandler), play)
	return conversations, lines, err
}

func compareBills(cmd *cobra.Command, cfg config.Config, b *bot, conversations []bill.Conversation) ([]bill.Line, error) {
	as := b.billed(cfg)
	as.Left = func(calls int) {
		cmd.PrintErrf("%d calls are left out: their tools are not there any more.\n", calls)
	}
	comparison, err := bill.New(as)
	if err != nil {
		return nil, err
	}
	var lines []bill.Line
	for _, c := range conversations {
		more, err := comparison.Compare(cmd.Context(), c)
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	return lines, nil
}

// billed is how conversations are played with the tools that the bot has now.
func (b *bot) billed(cfg config.Config) bill.Config {
	prices := cachePrices(cfg)
	return bill.Config{
		Registry: b.tools.Registry(), Prompt: join(prompt, b.tools.skills.Section()), ToolSearch: cfg.Tools.ToolSearch,
		Prices: prices, Tables: bill.Tables(prices, settings.ContextTokens), Money: cfg.Money(),
	}
}
