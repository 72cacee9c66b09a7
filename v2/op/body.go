package op

import (
	"bytes"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
	"partnerapi/domain/rule"
)

// ByteOrderMark is U+FEFF in UTF-8, with which some programs begin a body. It is not part of the body.
var ByteOrderMark = []byte("\ufeff")

// contentEncoding is the header that names the coding of a body, and the field of its fault.
const contentEncoding = "Content-Encoding"

// ErrEncoded returns the error for a body with a content coding, such as gzip.
func ErrEncoded(coding string) error {
	message := "must not be " + coding + ": send the body uncompressed"
	return &domain.Error{
		Code: domain.UnsupportedEncoding, Message: contentEncoding + " " + message,
		Fields: []domain.FieldError{{Field: contentEncoding, Message: message}},
	}
}

// bindBody reads the body into the input v, and adds the faults to f. A byte order mark at its start is ignored.
func (in *Input) bindBody(v reflect.Value, r Request, f *rule.Faults) {
	body := bytes.TrimPrefix(r.Body, ByteOrderMark)
	switch {
	case in.OptionalBody && len(body) == 0: // as an empty object
	case in.Body != nil && r.Coding != "" && len(body) > 0 && !isJSON(body):
		f.Add(contentEncoding, "must not be "+r.Coding+" unless the body is plain JSON")
	case in.Body != nil:
		rule.Reader{Lenient: r.Lenient, Includes: r.Release.Includes}.Read(body, v.FieldByIndex(in.body).Addr().Interface(), f)
	case len(r.Body) > 0 && !r.Lenient:
		f.Add(rule.Whole, "must be empty: this operation takes none")
	}
}

// isJSON reports whether a body is JSON, whatever its kind.
func isJSON(body []byte) bool {
	return jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true))
}
