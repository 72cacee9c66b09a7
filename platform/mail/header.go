package mail

import (
	"encoding/base64"
	"strings"
)

const (
	// maxWord bounds an encoded word: with the name of any header before it, a line has no
	// more than the 76 characters that RFC 2047 allows.
	maxWord = 64
	// wordBegin and wordEnd are around the text of an encoded word.
	wordBegin, wordEnd = "=?UTF-8?B?", "?="
)

// wordBytes is how much text an encoded word has.
var wordBytes = base64.StdEncoding.DecodedLen(maxWord - len(wordBegin) - len(wordEnd))

// fits reports whether a header can have the text as it is: it is ASCII, and no word of it
// is too long for the first line, which would be empty else.
func fits(text string) bool {
	for word := range strings.SplitSeq(text, " ") {
		if len(word) > maxWord {
			return false
		}
	}
	return ascii(text)
}

// encodedWords is a text as encoded words of RFC 2047, one in a line.
func encodedWords(text string) string {
	var words []string
	part := ""
	end := func() {
		words = append(words, wordBegin+base64.StdEncoding.EncodeToString([]byte(part))+wordEnd)
		part = ""
	}
	for _, r := range text {
		if len(part)+len(string(r)) > wordBytes {
			end()
		}
		part += string(r)
	}
	end()
	return strings.Join(words, "\r\n ")
}
