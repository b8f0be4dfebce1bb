package botapi

import (
	"encoding/json"
	"slices"
)

// Buttons decodes a keyboard that was checked on arrival.
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

// Same compares keyboards by content.
func (k *Keyboard) Same(other *Keyboard) bool {
	return slices.EqualFunc(k.Buttons(), other.Buttons(), slices.Equal[[]Button])
}

// Has reports whether there is a button with this data.
func (k *Keyboard) Has(data string) bool {
	return slices.ContainsFunc(k.Buttons(), func(row []Button) bool {
		return slices.ContainsFunc(row, func(b Button) bool { return b.CallbackData == data })
	})
}
