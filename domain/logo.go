package domain

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/draw"
	"image/jpeg"
	"image/png"
)

const (
	// MaxLogoBytes is the greatest size of a logo's file, before and after it is encoded again.
	MaxLogoBytes = 256 << 10
	// MaxLogoSide is the greatest width and height of a logo, in pixels.
	MaxLogoSide = 2000

	logoQuality = 90 // of a JPEG
)

// The formats of logos, as package image names them.
const (
	pngFormat  = "png"
	jpegFormat = "jpeg"
)

// Logo is the file of a logo, as ParseLogo returns it. In JSON it is in base64. Empty means none.
type Logo struct{ File []byte }

// UnmarshalText parses a file in base64, or the empty text. The error is a Fault.
func (l *Logo) UnmarshalText(text []byte) error {
	if base64.StdEncoding.DecodedLen(len(text)) > MaxLogoBytes+2 { // 2 for the padding
		return errLargeLogo
	}
	file, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return Fault("must be a base64-encoded file")
	}
	if len(file) > 0 {
		file, err = ParseLogo(file)
	}
	l.File = file
	return err
}

// MarshalText returns the file in base64. It never fails.
func (l Logo) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, l.File), nil
}

// The faults of logos.
const (
	errLogoFormat = Fault("must be a PNG or JPEG image")
	errLargeLogo  = Fault("must be a file of at most 256 kB")
)

// ParseLogo decodes a PNG or JPEG file and encodes it again, so that the result contains nothing but the image. It
// returns such a result unchanged. The image is at most 8 bits deep and not interlaced, as PDF files need it.
// The error is a Fault. The size of the image is checked before it is decoded.
func ParseLogo(file []byte) ([]byte, error) {
	if len(file) > MaxLogoBytes {
		return nil, errLargeLogo
	}
	format, size, err := logoConfig(file)
	if err != nil {
		return nil, err
	}
	if size.X > MaxLogoSide || size.Y > MaxLogoSide {
		return nil, Fault(fmt.Sprintf("must be an image of at most %d pixels per side", MaxLogoSide))
	}
	decoded, _, err := image.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, errLogoFormat
	}
	var out bytes.Buffer
	switch format {
	case pngFormat:
		encoder := png.Encoder{CompressionLevel: png.BestCompression}
		err = encoder.Encode(&out, eightBits(decoded))
	default:
		err = jpeg.Encode(&out, decoded, &jpeg.Options{Quality: logoQuality})
		if isEncoded(file, out.Bytes()) {
			return file, nil
		}
	}
	if err == nil && out.Len() > MaxLogoBytes {
		err = Fault("is larger than 256 kB after it is encoded again; make the image smaller or use fewer colors")
	}
	return out.Bytes(), err
}

// LogoType returns the media type and the size of a logo.
func LogoType(file []byte) (mediaType string, size image.Point, err error) {
	format, size, err := logoConfig(file)
	return "image/" + format, size, err
}

// FitLogo returns the size in which a logo is shown within bounds, in pixels: its own, unless it is too large.
func FitLogo(logo image.Point, width, height int) image.Point {
	scale := min(1, float64(width)/float64(logo.X), float64(height)/float64(logo.Y))
	return image.Pt(max(1, int(float64(logo.X)*scale)), max(1, int(float64(logo.Y)*scale)))
}

// LogoURL returns the data: URL of a logo of a media type.
func LogoURL(mediaType string, file []byte) string {
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(file)
}

// logoConfig reads the format and the size of an image, without decoding it. Other formats may be registered by other
// packages: they are refused.
func logoConfig(file []byte) (format string, size image.Point, err error) {
	config, format, err := image.DecodeConfig(bytes.NewReader(file))
	if err != nil || format != pngFormat && format != jpegFormat {
		return "", size, errLogoFormat
	}
	return format, image.Pt(config.Width, config.Height), nil
}

// eightBits returns an image with at most 8 bits a channel.
func eightBits(m image.Image) image.Image {
	switch m.(type) {
	case *image.Gray16, *image.RGBA64, *image.NRGBA64:
		to := image.NewNRGBA(m.Bounds())
		draw.Draw(to, to.Bounds(), m, m.Bounds().Min, draw.Src)
		return to
	}
	return m
}

// isEncoded reports whether a JPEG file is an output of the encoder of again, the file's image encoded again. Each
// encoding of a JPEG loses something, so a file that the encoder wrote is kept: an exported logo stays what it is. The
// encoder writes the same header for all images of a size, then the data of the image, in which a zero follows each
// byte of a marker, and the end.
func isEncoded(file, again []byte) bool {
	start := bytes.Index(again, []byte{0xff, 0xda}) // the header of the data
	if start < 0 || len(again) < start+4 {
		return false
	}
	header := start + 2 + int(again[start+2])<<8 + int(again[start+3])
	if len(file) < header+2 || len(again) < header || !bytes.Equal(file[:header], again[:header]) {
		return false
	}
	data, ended := bytes.CutSuffix(file[header:], []byte{0xff, 0xd9})
	for i, b := range data {
		if b == 0xff && (i+1 == len(data) || data[i+1] != 0) {
			return false
		}
	}
	return ended
}
