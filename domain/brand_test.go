package domain

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// noise returns an image of random colors.
func noise(width, height int) *image.NRGBA64 {
	m := image.NewNRGBA64(image.Rect(0, 0, width, height))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range m.Pix {
		m.Pix[i] = uint8(random.Uint32())
	}
	return m
}

// encoded returns the file of an image.
func encoded[Options any](t testing.TB, m image.Image, options Options) []byte {
	t.Helper()
	var out bytes.Buffer
	var err error
	switch options := any(options).(type) {
	case *jpeg.Options:
		err = jpeg.Encode(&out, m, options)
	case *png.Encoder:
		err = options.Encode(&out, m)
	case *gif.Options:
		err = gif.Encode(&out, m, options)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestParseLogo verifies that a logo is the image alone, at most 8 bits deep, and that a logo is parsed as itself.
func TestParseLogo(t *testing.T) {
	t.Parallel()
	palette := image.NewPaletted(image.Rect(0, 0, 9, 7), color.Palette{color.NRGBA{1, 2, 3, 0}, color.White, color.Black})
	palette.Pix[4] = 2
	full := noise(30, 20)
	quick := &png.Encoder{CompressionLevel: png.BestSpeed}
	for name, file := range map[string][]byte{
		"16 bits":   encoded(t, full, quick),
		"gray":      encoded(t, image.NewGray16(image.Rect(0, 0, 3, 4)), quick),
		"palette":   encoded(t, palette, quick),
		"photo":     encoded(t, full, &jpeg.Options{Quality: 75}),
		"gray JPEG": encoded(t, image.NewGray(image.Rect(0, 0, 5, 5)), &jpeg.Options{Quality: 100}),
		"appended":  append(encoded(t, full, quick), "<script>"...),
		"comment":   slices.Concat([]byte{0xff, 0xd8, 0xff, 0xfe, 0, 8}, []byte("secret"), encoded(t, full, &jpeg.Options{Quality: 90})[2:]),
		"polyglot":  append(encoded(t, full, &jpeg.Options{Quality: logoQuality}), "<script>"...),
	} {
		logo, err := ParseLogo(file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if bytes.Contains(logo, []byte("<script>")) || bytes.Contains(logo, []byte("secret")) {
			t.Errorf("%s: the logo contains more than the image", name)
		}
		if again, err := ParseLogo(logo); err != nil || !bytes.Equal(again, logo) {
			t.Errorf("%s: parsed again, the logo is another one: %v", name, err)
		}
		if depth := logo[24]; bytes.HasPrefix(logo, []byte("\x89PNG")) && depth > 8 {
			t.Errorf("%s: the PNG has %d bits a channel", name, depth)
		}
		want, _ := png.DecodeConfig(bytes.NewReader(file))
		if _, size, err := LogoType(logo); err != nil || want.Width > 0 && size != image.Pt(want.Width, want.Height) {
			t.Errorf("%s: got size %v, %v; want %d × %d", name, size, err, want.Width, want.Height)
		}
	}
}

// TestParseLogoRejects verifies the bounds of logos, of which the size is checked before the image is decoded.
func TestParseLogoRejects(t *testing.T) {
	t.Parallel()
	small := encoded(t, image.NewGray(image.Rect(0, 0, 2, 2)), &png.Encoder{})
	bomb := slices.Clone(small)
	copy(bomb[16:], []byte{0, 1, 0, 0, 0, 1, 0, 0}) // 65536 × 65536, with a checksum that is wrong by now
	for name, tt := range map[string]struct {
		file []byte
		want error
	}{
		"GIF":       {encoded(t, image.NewPaletted(image.Rect(0, 0, 2, 2), color.Palette{color.Black}), &gif.Options{}), errLogoFormat},
		"SVG":       {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`), errLogoFormat},
		"nothing":   {nil, errLogoFormat},
		"cut off":   {small[:len(small)-20], errLogoFormat},
		"wide":      {encoded(t, image.NewGray(image.Rect(0, 0, 2001, 1)), &png.Encoder{}), Fault("must be an image of at most 2000 pixels per side")},
		"tall JPEG": {encoded(t, image.NewGray(image.Rect(0, 0, 1, 2001)), &jpeg.Options{}), Fault("must be an image of at most 2000 pixels per side")},
		"bomb":      {bomb, errLogoFormat},
		"large":     {append(slices.Clone(small), make([]byte, MaxLogoBytes)...), errLargeLogo},
		"larger once encoded": {encoded(t, noise(750, 750), &jpeg.Options{Quality: 55}),
			Fault("is larger than 256 kB after it is encoded again; make the image smaller or use fewer colors")},
	} {
		if _, err := ParseLogo(tt.file); err != tt.want {
			t.Errorf("%s of %d bytes: got %v, want %v", name, len(tt.file), err, tt.want)
		}
	}
	var logo Logo
	if err := logo.UnmarshalText([]byte(base64.StdEncoding.EncodeToString(make([]byte, MaxLogoBytes+3)))); err != errLargeLogo {
		t.Errorf("large base64: %v", err)
	}
	if err := logo.UnmarshalText([]byte("not base64")); err != Fault("must be a base64-encoded file") {
		t.Errorf("not base64: %v", err)
	}
}

// FuzzParseLogo verifies that no file is parsed as another logo the second time, and that none panics.
func FuzzParseLogo(f *testing.F) {
	f.Add(encoded(f, noise(3, 2), &png.Encoder{}))
	f.Add(encoded(f, noise(3, 2), &jpeg.Options{Quality: logoQuality}))
	f.Fuzz(func(t *testing.T, file []byte) {
		logo, err := ParseLogo(file)
		if err != nil {
			return
		}
		if again, err := ParseLogo(logo); err != nil || !bytes.Equal(again, logo) {
			t.Errorf("parsed again, the logo of %d bytes has %d: %v", len(logo), len(again), err)
		}
	})
}

// TestAccentColor verifies the form of colors, that text on any of them has a contrast of at least 4.5, and that a
// button in one that is nearly white has a gray border.
func TestAccentColor(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]AccentColor{"": "", "#1F5fbf": "#1f5fbf"} {
		var c AccentColor
		if err := c.UnmarshalText([]byte(text)); err != nil || c != want {
			t.Errorf("%q: got %q, %v; want %q", text, c, err, want)
		}
	}
	for _, text := range []string{"red", "#fff", "1f5fbf", "#1f5fbg", "#1f5fbf ", "#+1+1+1", "##1f5fb"} {
		if err := new(AccentColor).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is a color", text)
		}
	}
	for color, want := range map[AccentColor]string{"": blackText, "#ffffff": blackText, "#000000": whiteText, "#1f5fbf": whiteText, "#ffd400": blackText, "#777777": blackText, "#757575": whiteText} {
		if got := color.TextColor(); got != want {
			t.Errorf("%s: got text %s, want %s", color, got, want)
		}
	}
	for color, want := range map[AccentColor]string{"": grayBorder, "#ffffff": grayBorder, "#ffd400": grayBorder, "#c8c8c8": "#c8c8c8", "#1f5fbf": "#1f5fbf", "#000000": "#000000"} {
		if got := color.BorderOnWhite(); got != want {
			t.Errorf("%s: got border %s, want %s", color, got, want)
		}
	}
	for r := range 16 {
		for g := range 16 {
			for b := range 16 {
				l := luminance(uint8(17*r), uint8(17*g), uint8(17*b))
				if max(contrast(1, l), contrast(l, 0)) < 4.5 {
					t.Errorf("no text is readable on %d %d %d", r, g, b)
				}
			}
		}
	}
}

// TestContact verifies which contacts are valid, and where they lead.
func TestContact(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Help@Acme.Example":             "mailto:help@acme.example",
		"+1 (206) 555-0100":             "tel:+12065550100",
		"https://help.acme.example/a?b": "https://help.acme.example/a?b",
		"":                              "",
	} {
		var c Contact
		if err := c.UnmarshalText([]byte(text)); err != nil || c.Link() != want {
			t.Errorf("%q: got %q, %v; want %q", text, c.Link(), err, want)
		}
	}
	for _, text := range []string{
		"http://acme.example", "javascript:alert(1)", "https://", "https://user:pw@acme.example", "1234", "1+2345678", "1234567890123456", "call us",
		"https://acme.example/a b", "https://acme.example/\u202e", "https://acme.example/" + strings.Repeat("a", maxContact),
	} {
		if err := new(Contact).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is a contact", text)
		}
	}
}

// TestMailDomains verifies which senders' addresses are accepted.
func TestMailDomains(t *testing.T) {
	t.Parallel()
	domains, err := ParseMailDomains([]string{"Mail.Example.com", "bücher.example"})
	if err != nil {
		t.Fatal(err)
	}
	for email, ok := range map[string]bool{
		"a@mail.example.com": true, "a@xn--bcher-kva.example": true, "a@example.com": false, "a@x.mail.example.com": false, "a@notmail.example.com": false,
	} {
		if err := domains.Check(email); (err == nil) != ok {
			t.Errorf("%s: %v", email, err)
		}
	}
	if err := (MailDomains{}).Check("a@mail.example.com"); err == nil {
		t.Error("an address is accepted without domains")
	}
	for _, name := range []string{"", "localhost", "a@b.example", "https://b.example"} {
		if _, err := ParseMailDomains([]string{name}); err == nil {
			t.Errorf("%q is a domain", name)
		}
	}
}

// TestResolveBrand verifies that each field has the value of the first level that has one.
func TestResolveBrand(t *testing.T) {
	t.Parallel()
	got := ResolveBrand(
		BrandLevel{ClientBrand, Brand{AccentColor: "#000000"}},
		BrandLevel{PartnerBrand, Brand{AccentColor: "#ffffff", Logo: []byte("logo"), SenderName: "Acme"}},
		BrandLevel{DefaultBrand, Brand{DisplayName: "Acme IT", SenderName: "x"}},
	)
	if got.AccentColor != "#000000" || string(got.Logo) != "logo" || got.SenderName != "Acme" || got.DisplayName != "Acme IT" {
		t.Errorf("got %+v", got)
	}
	want := map[string]BrandSource{
		"display_name": DefaultBrand, "logo": PartnerBrand, "accent_color": ClientBrand, "sender_name": PartnerBrand,
		"sender_email": NoBrand, "reply_to": NoBrand, "support_contact": NoBrand, "postal_line": NoBrand,
	}
	if !maps.Equal(got.Sources, want) {
		t.Errorf("got sources %v, want %v", got.Sources, want)
	}
}
