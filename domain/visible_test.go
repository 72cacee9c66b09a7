package domain

import (
	"encoding/json"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, line, lines string }{
		{"", "", ""},
		{"Énergie Boréale, 東京 عربى naïve", "Énergie Boréale, 東京 عربى naïve", "Énergie Boréale, 東京 عربى naïve"},
		{"a\nb\tc", `a\nb\tc`, "a\nb\tc"},
		{"550 no\r\n\x1b[2J\x07", `550 no\r\n\u{1b}[2J\u{7}`, "550 no\\r\n\\u{1b}[2J\\u{7}"},
		{"\u009b31m\x7f\x00", `\u{9b}31m\u{7f}\u{0}`, `\u{9b}31m\u{7f}\u{0}`},
		{"invoice\u202efdp.exe", `invoice\u{202e}fdp.exe`, `invoice\u{202e}fdp.exe`},
		{"\u2066\u2069\u061c\u200e", `\u{2066}\u{2069}\u{61c}\u{200e}`, `\u{2066}\u{2069}\u{61c}\u{200e}`},
		{"z\u200bw\u200c\u2060\ufeff\u00ad", `z\u{200b}w\u{200c}\u{2060}\u{feff}\u{ad}`, `z\u{200b}w\u{200c}\u{2060}\u{feff}\u{ad}`},
		{"tag\U000e0041\U000e007f", `tag\u{e0041}\u{e007f}`, `tag\u{e0041}\u{e007f}`},
		{"\u2028\u2029", `\u{2028}\u{2029}`, `\u{2028}\u{2029}`},
		{"a\xffb\xe2\x80", `a\x{ff}b\x{e2}\x{80}`, `a\x{ff}b\x{e2}\x{80}`},
		{"\u3164\u115f\u2800\u034f\u180e", `\u{3164}\u{115f}\u{2800}\u{34f}\u{180e}`, `\u{3164}\u{115f}\u{2800}\u{34f}\u{180e}`},
		{"👩\u200d👧 ❤\ufe0f", `👩\u{200d}👧 ❤` + "\ufe0f", `👩\u{200d}👧 ❤` + "\ufe0f"},
		{"a\ufe0f\ufe0f\U000e0101\ufe0f", "a\ufe0f" + `\u{fe0f}\u{e0101}\u{fe0f}`, "a\ufe0f" + `\u{fe0f}\u{e0101}\u{fe0f}`},
		{"\ufffd", "\ufffd", "\ufffd"},
	} {
		if got := Visible(tt.text); got != tt.line {
			t.Errorf("%q is shown as %q, want %q", tt.text, got, tt.line)
		}
		if got := VisibleLines(tt.text); got != tt.lines {
			t.Errorf("the lines of %q are shown as %q, want %q", tt.text, got, tt.lines)
		}
	}
}

// TestEscaperInPieces: it does not matter where a text is cut, nothing invisible is
// left, and JSON stays the same JSON.
func TestEscaperInPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		runes := rapid.SliceOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("\x1b\u202e\u200d\ufe0f\U000e0041aé\n")))).Draw(t, "runes")
		text := []byte(string(runes))
		cut := rapid.IntRange(0, len(text)).Draw(t, "cut")
		e := Escaper{}
		out, left := e.Append(nil, text[:cut])
		out, left = e.Append(out, text[cut-left:])
		if want := Visible(string(text)); left != 0 || string(out) != want {
			t.Fatalf("%q cut at %d is %q, want %q", text, cut, out, want)
		}
		for _, r := range string(out) {
			if !unicode.IsGraphic(r) {
				t.Fatalf("%q holds %U", out, r)
			}
		}

		document, err := json.Marshal(string(runes))
		if err != nil {
			t.Fatal(err)
		}
		j := Escaper{JSON: true, Lines: true}
		shown, _ := j.Append(nil, document)
		var read string
		if err := json.Unmarshal(shown, &read); err != nil || !utf8.Valid(shown) || read != string(runes) {
			t.Fatalf("%s is read as %q: %v", shown, read, err)
		}
	})
}
