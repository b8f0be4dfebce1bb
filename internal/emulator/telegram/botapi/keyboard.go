package botapi

import (
	"encoding/json"
	"slices"
)

// Buttons decodes the buttons of a keyboard, which were checked when it was received.
func (k *Keyboard) Buttons() [][]Button {
	if k == nil {
		return nil
	}
	rows := make([][]Button, len(k.InlineKeyboard))
	for i, row := range k.InlineKeyboard {
		for _, raw := range row {
			var b Button
			if json.Unmarshal(raw, &b) == nil {
				rows[i] = append(rows[i], b)
			}
		}
	}
	return rows
}

// Equal reports whether two keyboards have the same buttons.
func (k *Keyboard) Equal(other *Keyboard) bool {
	return slices.EqualFunc(k.Buttons(), other.Buttons(), slices.Equal[[]Button])
}

// HasButton reports whether the keyboard has a button with the given data.
func (k *Keyboard) HasButton(data string) bool {
	return slices.ContainsFunc(k.Buttons(), func(row []Button) bool {
		return slices.ContainsFunc(row, func(b Button) bool { return b.CallbackData == data })
	})
}
