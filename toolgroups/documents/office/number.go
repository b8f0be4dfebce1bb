package office

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// formatNumber formats the value of a cell; since is how many days later its calendar begins than
// Excel's first.
func formatNumber(raw string, is numberFormat, since int) string {
	value, err := strconv.ParseFloat(raw, 64)
	if err != nil || math.IsInf(value, 0) || math.IsNaN(value) {
		return raw
	}
	// Excel's days end with the year 9999.
	if is >= date && (value < 0 || value+float64(since) > 2_958_466) {
		is = plainNumber
	}
	switch is {
	case percentage:
		return formatDigits(value*100) + "%"
	case duration:
		seconds := int64(math.Round(value * 86_400))
		return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	case date, timeOfDay, dateAndTime:
		return formatTime(value, is, since)
	}
	return formatDigits(value)
}

// formatDigits formats a number with a spreadsheet's 15 digits.
func formatDigits(value float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'e', 14, 64), 64)
	if err != nil {
		rounded = value
	}
	format := byte('f')
	if size := math.Abs(rounded); size != 0 && (size >= 1e21 || size < 1e-9) {
		format = 'g'
	}
	return strconv.FormatFloat(rounded, format, -1, 64)
}

// formatTime formats a day, a time of day or both. It shows a part that the format hides unless that
// part is zero.
func formatTime(value float64, is numberFormat, since int) string {
	days := int(math.Floor(value))
	seconds := int(math.Round((value - float64(days)) * 86_400))
	// 29 February 1900 did not exist, but Excel counts it.
	if since == 0 && days < 60 {
		since = 1
	}
	at := time.Date(1899, time.December, 30+since+days, 0, 0, seconds, 0, time.UTC)
	clock := "15:04"
	if seconds%60 != 0 {
		clock = "15:04:05"
	}
	switch {
	case days == 0 && is != date:
		return at.Format(clock)
	case seconds == 0 && is == date:
		return at.Format(time.DateOnly)
	}
	return at.Format(time.DateOnly + " " + clock)
}
