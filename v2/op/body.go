package op

import (
	"bytes"
	"net/http"
	"path"
	"reflect"
	"strings"

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
	message := "must not be " + coding + "; send the body uncompressed"
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
		reader := rule.Reader{Lenient: r.Lenient, Includes: r.Release.Includes, Fixed: func(name string) bool {
			return in.creation != nil && in.creation.hasMember(name, r.Release)
		}}
		reader.Read(body, v.FieldByIndex(in.body).Addr().Interface(), f)
	case len(r.Body) > 0 && !r.Lenient:
		f.Add(rule.Whole, "must be empty; this operation accepts no body")
	}
}

// isJSON reports whether a body is JSON, whatever its kind.
func isJSON(body []byte) bool {
	return jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true))
}

// hasMember reports whether the body has a member in a release.
func (in *Input) hasMember(name string, release Release) bool {
	if in.Body == nil || in.Body.Kind() != reflect.Struct {
		return false
	}
	for _, f := range reflect.VisibleFields(in.Body) {
		if rule.WireName(f) == name {
			return release.Includes(f.Tag.Get("since"))
		}
	}
	return false
}

// InputOf returns the input of an operation of the set. That of a PATCH knows the operation that creates what it changes,
// so that Bind says of a member that only the creation has that it cannot be changed (decisions 2.5).
func (s *Set) InputOf(o Operation) *Input {
	creation := s.creationOf(o)
	if creation == nil {
		return o.Input()
	}
	in := *o.Input()
	in.creation = creation.Input()
	return &in
}

// creationOf returns the operation that creates the objects that a PATCH changes: the POST of the same resource to a path
// that ends as that of the PATCH does before the object's ID. It returns nil for other operations, and without such a POST.
func (s *Set) creationOf(o Operation) Operation {
	patch := o.Meta()
	list, ok := listSegment(patch.Path)
	if patch.Method != http.MethodPatch || !ok {
		return nil
	}
	for _, other := range s.ops {
		post := other.Meta()
		if post.Method == http.MethodPost && post.Resource() == patch.Resource() && path.Base(post.Path) == list {
			return other
		}
	}
	return nil
}

// listSegment returns the segment of an object's path before the object's ID, such as users; false if the path does not
// end in an ID.
func listSegment(objectPath string) (string, bool) {
	list, id := path.Split(objectPath)
	return path.Base(list), strings.HasPrefix(id, ":")
}
