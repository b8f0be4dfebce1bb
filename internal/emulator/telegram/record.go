package telegram

import (
	"encoding/json"
	"errors"
	"os"
)

// textsVariable is the environment variable with the name of a file. If it is set, each text of a bot is added to
// the file, which markup.TestTextsOfOtherTestsAreStoredAsTelegramStoresThem compares with Telegram's own reader.
const textsVariable = "TEST_ONECLAW_TEXTS"

// recordText adds a text to the file, if there is one.
func recordText(text string, html bool) error {
	name := os.Getenv(textsVariable)
	if name == "" {
		return nil
	}
	line, err := json.Marshal(map[string]any{"text": text, "html": html})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) // one write a line: tests run at the same time
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
