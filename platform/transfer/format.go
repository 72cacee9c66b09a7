package transfer

import "bytes"

// FormatError says that an input as a whole is in another format, and what to do.
type FormatError string

func (e FormatError) Error() string { return string(e) }

// errOneDocument is the error of JSON that is not one object on each line.
const errOneDocument = FormatError("the input is JSON that spans several lines, or a list; write one object per line with " +
	"jq -c . FILE or, for a list, jq -c '.[]' FILE")

// errNoTable is the error of JSON in place of a table.
const errNoTable = FormatError("the input is JSON, not a table; omit --csv")

// longestMark is the most bytes by which a format is recognized.
const longestMark = 4

// marks are the first bytes of files in other formats.
var marks = []struct {
	mark  string
	error FormatError
}{
	{"\x1f\x8b", "the input is compressed with gzip; decompress it with gzip -dc FILE"},
	{"PK\x03\x04", "the input is a ZIP archive or a spreadsheet; unpack it, or save the sheet as CSV"},
	{"\x28\xb5\x2f\xfd", "the input is compressed with zstd; decompress it with zstd -dc FILE"},
}

// errUTF16 is the error of a text in UTF-16.
const errUTF16 = FormatError("the input is in UTF-16; save it as UTF-8, or convert it with iconv -f UTF-16 -t UTF-8 FILE")

// checkHead returns a FormatError if the first bytes of an input are of another format. UTF-16 is an error unless
// utf16OK is true.
func checkHead(head []byte, utf16OK bool) error {
	for _, m := range marks {
		if bytes.HasPrefix(head, []byte(m.mark)) {
			return m.error
		}
	}
	if _, isUTF16 := utf16Order(head); isUTF16 && !utf16OK {
		return errUTF16
	}
	return nil
}

// CheckText returns a FormatError if a file is no text in UTF-8, judged by its first bytes.
func CheckText(text []byte) error {
	return checkHead(text[:min(len(text), longestMark)], false /* UTF-16 */)
}

// utf16Order reports whether a text is in UTF-16, by its byte order mark or because every other byte is 0 as in ASCII, and
// whether the more significant byte comes first.
func utf16Order(head []byte) (bigEndian, isUTF16 bool) {
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		return false, true
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return true, true
	case len(head) < longestMark:
		return false, false
	}
	return head[0] == 0, (head[0] == 0) == (head[2] == 0) && (head[1] == 0) == (head[3] == 0) && (head[0] == 0) != (head[1] == 0)
}
