package openai

import (
	"bytes"
	"errors"
	"hash/fnv"
	"image"
	"image/color"
	_ "image/jpeg" // decodes the pictures that are changed
	"image/png"
	"io"
	"strings"
	"unicode"
)

// maxDecodedPixels bounds a picture that is changed.
const maxDecodedPixels = 64 << 20

var errDimensions = errors.New("the picture has too many pixels")

// paint draws a PNG in the colour that the prompt names, or else in those that depend on it: the source if there is one, otherwise a cat if
// the prompt mentions one, otherwise stripes.
func paint(prompt string, width, height int, source []byte) ([]byte, error) {
	hash := fnv.New32a()
	_, _ = io.WriteString(hash, prompt) // a hash never fails
	seed := hash.Sum32()
	palette := color.Palette{
		color.RGBA{uint8(200 + seed%56), uint8(200 + seed>>8%56), uint8(200 + seed>>16%56), 255}, //nolint:gosec // below 256
		color.RGBA{uint8(seed % 160), uint8(seed >> 8 % 160), uint8(seed >> 16 % 160), 255},      //nolint:gosec // below 256
		color.RGBA{255, 255, 255, 255}, color.RGBA{0, 0, 0, 255},
	}
	for _, word := range strings.FieldsFunc(strings.ToLower(prompt), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if colour, ok := colours[word]; ok {
			palette[1] = colour
		}
	}
	draw := stripes
	if strings.Contains(strings.ToLower(prompt), "cat") {
		draw = cat
	}
	if len(source) > 0 {
		old, err := decodePicture(bytes.NewReader(source))
		if err != nil {
			return nil, err
		}
		draw = func(x, y float64) uint8 {
			b := old.Bounds()
			gray := color.GrayModel.Convert(old.At(b.Min.X+int(x*float64(b.Dx())), b.Min.Y+int(y*float64(b.Dy()))))
			return 1 - gray.(color.Gray).Y/128
		}
	}
	picture := image.NewPaletted(image.Rect(0, 0, width, height), palette)
	for y := range height {
		for x := range width {
			picture.SetColorIndex(x, y, draw(float64(x)/float64(width), float64(y)/float64(height)))
		}
	}
	var b bytes.Buffer
	err := png.Encode(&b, picture)
	return b.Bytes(), err
}

// colours are those that a prompt can name.
var colours = map[string]color.RGBA{
	"red": {200, 30, 30, 255}, "green": {30, 140, 60, 255}, "blue": {30, 70, 200, 255}, "yellow": {225, 190, 20, 255},
	"orange": {235, 130, 20, 255}, "purple": {120, 40, 160, 255}, "pink": {235, 120, 170, 255}, "brown": {110, 70, 40, 255},
	"black": {20, 20, 20, 255}, "grey": {120, 120, 120, 255}, "gray": {120, 120, 120, 255},
}

// stripes returns the index of the colour of a place, whose coordinates are from 0 to 1.
func stripes(x, y float64) uint8 { return uint8(int((x+y)*8) % 2) }

// cat returns the index of the colour of a place in a picture of a cat's face.
func cat(x, y float64) uint8 {
	within := func(cx, cy, r float64) bool { return (x-cx)*(x-cx)+(y-cy)*(y-cy) < r*r }
	side := x
	if side > 0.5 {
		side = 1 - side // both halves are alike
	}
	switch {
	case within(0.41, 0.5, 0.015), within(0.59, 0.5, 0.015), within(0.5, 0.62, 0.02):
		return 3
	case within(0.4, 0.5, 0.05), within(0.6, 0.5, 0.05):
		return 2
	case within(0.5, 0.55, 0.28), side > 0.24 && side < 0.42 && y > 0.15+(side-0.24)*0.6 && y < 0.45:
		return 1
	}
	return 0
}

// decodePicture decodes a PNG or JPEG of a bounded size.
func decodePicture(r io.ReadSeeker) (image.Image, error) {
	about, _, err := image.DecodeConfig(r)
	if err != nil {
		return nil, err
	}
	if about.Width*about.Height > maxDecodedPixels {
		return nil, errDimensions
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	picture, _, err := image.Decode(r)
	return picture, err
}
