package seed

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"
	"math"

	"partnerapi/db"
	"partnerapi/domain"
)

// writeBrands writes the brands of the demonstration's two partners.
func (w *writer) writeBrands(ctx context.Context, g *generator, first, second db.PartnerRow) {
	for _, b := range []struct {
		partner db.PartnerRow
		mark    func(x, y float64) bool
		domain.Brand
	}{
		{first, isStar, domain.Brand{
			DisplayName: "Northlight Security", AccentColor: "#0b6e4f", SenderName: "Northlight Security Training",
			ReplyTo: "training@northlight.example", SupportContact: "help@northlight.example",
			PostalLine: "Northlight Security, 200 Harbor Street, Seattle, WA 98101",
		}},
		{second, isWave, domain.Brand{
			DisplayName: "Tidewater IT", AccentColor: "#f2b705", SenderName: "Tidewater IT", SupportContact: "+1 206 555 0142",
			PostalLine: "Tidewater IT, 14 Canal Road, Portland, OR 97209",
		}},
	} {
		logo, err := drawLogo(b.AccentColor, b.mark)
		if err != nil && w.err == nil {
			w.err = err
		}
		b.Logo = logo
		copyAll(ctx, w, db.BrandRow{ID: newID[domain.BrandKind](g.random, b.partner.CreatedAt), PartnerID: &b.partner.ID, Brand: b.Brand})
	}
}

const (
	logoSide    = 128 // pixels
	logoSamples = 4   // in each direction of a pixel
)

// drawLogo draws a round logo: a mark, where mark is true, on the accent color. The coordinates are from -1 to 1.
func drawLogo(accent domain.AccentColor, mark func(x, y float64) bool) ([]byte, error) {
	red, green, blue, _ := accent.RGB()
	m := image.NewNRGBA(image.Rect(0, 0, logoSide, logoSide))
	for px := range logoSide {
		for py := range logoSide {
			round, marked := 0, 0 // samples
			for sx := range logoSamples {
				for sy := range logoSamples {
					x, y := logoPlace(px, sx), logoPlace(py, sy)
					if math.Hypot(x, y) > 1 {
						continue
					}
					if round++; mark(x, y) {
						marked++
					}
				}
			}
			if round == 0 {
				continue
			}
			blend := func(c uint8) uint8 { return uint8((int(c)*(round-marked) + 255*marked) / round) }
			m.SetNRGBA(px, py, color.NRGBA{blend(red), blend(green), blend(blue), uint8(255 * round / (logoSamples * logoSamples))})
		}
	}
	var file bytes.Buffer
	if err := png.Encode(&file, m); err != nil {
		return nil, err
	}
	return domain.ParseLogo(file.Bytes())
}

// logoPlace returns the coordinate of a sample of a pixel.
func logoPlace(pixel, sample int) float64 {
	return 2*(float64(pixel)+(float64(sample)+0.5)/logoSamples)/logoSide - 1
}

// isStar is a star with four points.
func isStar(x, y float64) bool { return math.Sqrt(math.Abs(x))+math.Sqrt(math.Abs(y)) < 0.9 }

// isWave is two waves, one below the other.
func isWave(x, y float64) bool {
	height := 0.12 * math.Sin(4*x)
	return math.Abs(y-height-0.25) < 0.1 || math.Abs(y-height+0.25) < 0.1
}
