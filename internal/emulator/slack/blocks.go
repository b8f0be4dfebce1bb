package slack

import (
	"encoding/json"
	"fmt"
	"regexp"
	"unicode/utf8"
)

func length(s string) int { return utf8.RuneCountInString(s) }

// livePattern finds what notifies people when it stands in a text as it is:
// broadcasts, users and user groups.
var livePattern = regexp.MustCompile(`<(?:!(?:channel|here|everyone)(?:\|[^>]*)?|!subteam\^[A-Z0-9]+(?:\|[^>]*)?|@[UW][A-Z0-9]+(?:\|[^>]*)?)>`)

func calls(text string) []string { return livePattern.FindAllString(text, -1) }

type block struct {
	Type string `json:"type"`
	Text json.RawMessage
}

type textObject struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func invalidBlocks(format string, args ...any) *apiError {
	return refuse("invalid_blocks", "[ERROR] "+fmt.Sprintf(format, args...))
}

// checkBlocks refuses blocks over the limits. Kinds that it does not know pass.
func checkBlocks(raw []byte) *apiError {
	var blocks []block
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return refuse("invalid_blocks_format")
	}
	if len(blocks) > maxBlocks {
		return invalidBlocks("no more than %d items allowed [json-pointer:/blocks]", maxBlocks)
	}
	markdown := 0
	for i, b := range blocks {
		switch b.Type {
		case "":
			return invalidBlocks("missing required field: type [json-pointer:/blocks/%d]", i)
		case "section":
			if err := checkSection(b, i); err != nil {
				return err
			}
		case "markdown":
			var text string
			if json.Unmarshal(b.Text, &text) != nil || text == "" {
				return invalidBlocks("missing required field: text [json-pointer:/blocks/%d]", i)
			}
			markdown += length(text)
		}
	}
	if markdown > maxMarkdown {
		return refuse("msg_blocks_too_long")
	}
	return nil
}

func checkSection(b block, i int) *apiError {
	if len(b.Text) == 0 {
		return nil // it may have fields instead
	}
	var t textObject
	if json.Unmarshal(b.Text, &t) != nil || t.Type != "mrkdwn" && t.Type != "plain_text" {
		return invalidBlocks("unsupported type [json-pointer:/blocks/%d/text/type]", i)
	}
	switch n := length(t.Text); {
	case n == 0:
		return invalidBlocks("must be more than 0 characters [json-pointer:/blocks/%d/text/text]", i)
	case n > maxSection:
		return invalidBlocks("must be less than %d characters [json-pointer:/blocks/%d/text/text]", maxSection+1, i)
	}
	return nil
}
