package domain

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// Window is the part of a list that is wanted.
type Window struct {
	// Limit is how many rows at the most.
	Limit int
	// After is the row after which to begin; nil begins at the first.
	After *Position
	// Latest, in a list that grows at its end only, begins behind its last row.
	Latest bool
	// Skip is how many further rows to pass over.
	Skip int
	// Total asks for the number of rows of the whole list.
	Total bool
}

// Position is a place in a sorted list: the sort key and the id of a row.
type Position struct {
	Key string `json:"k"`
	ID  string `json:"i"` // UUID text; ties of the key are broken by it
}

// Slice is what a Window shows of a list.
type Slice[T any] struct {
	Rows []T
	// More says that rows follow.
	More bool
	// End is the position of the last row; nil when there are no rows.
	End *Position
	// Total is the number of rows of the whole list, if it was asked for.
	Total int
}

// Sort is an order of a list: a name, and a minus sign before it for the
// descending one.
type Sort string

// Descending reports whether the order runs from the largest key down.
func (s Sort) Descending() bool { return strings.HasPrefix(string(s), "-") }

// By is the name without its direction.
func (s Sort) By() string { return strings.TrimPrefix(string(s), "-") }

// CursorSealer turns positions into opaque cursors and back. A cursor is
// authenticated with a secret and bound to one list: the operation, its filters
// and its sort (decisions 3.3). The zero value has an empty secret; give it the
// one that the database holds. It is safe for concurrent use.
type CursorSealer struct {
	Secret []byte
}

const macSize = 16

var errBadCursor = errors.New("bad cursor")

// Seal returns the cursor for a position in the list that binding describes.
func (s CursorSealer) Seal(binding string, p Position) string {
	body, _ := json.Marshal(p) // two strings: cannot fail
	return base64.RawURLEncoding.EncodeToString(append(s.mac(binding, body), body...))
}

// Open returns the position of a cursor that Seal made with the same binding,
// and an error for every other text.
func (s CursorSealer) Open(binding, cursor string) (Position, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) <= macSize || strings.ContainsAny(cursor, "\r\n") { // which decoding passes over
		return Position{}, errBadCursor
	}
	body := raw[macSize:]
	if !hmac.Equal(raw[:macSize], s.mac(binding, body)) {
		return Position{}, errBadCursor
	}
	var p Position
	if err := json.Unmarshal(body, &p); err != nil {
		return Position{}, errBadCursor
	}
	return p, nil
}

func (s CursorSealer) mac(binding string, body []byte) []byte {
	h := hmac.New(sha256.New, s.Secret)
	h.Write([]byte(binding))
	h.Write([]byte{0})
	h.Write(body)
	return h.Sum(nil)[:macSize]
}
