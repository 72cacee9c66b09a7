// Package output prints what commands say, and writes their files.
package output

import (
	"encoding/json"
	"io"
	"sync"

	"partnerapi/domain"
)

// Visible is a writer that escapes control characters, so that outside text, such as a mail server's answer, cannot
// control a terminal (decisions 9). It is safe for concurrent use.
type Visible struct {
	to io.Writer

	mu      sync.Mutex
	escaper domain.Escaper
	rest    []byte // the beginning of a character whose rest is to come
}

// NewVisible returns a Visible for another writer. With isJSON, it uses the escapes of JSON.
func NewVisible(to io.Writer, isJSON bool) *Visible {
	return &Visible{to: to, escaper: domain.Escaper{JSON: isJSON, Lines: true}}
}

// Write writes text with its invisible characters escaped. It keeps an incomplete last character for the next call.
func (w *Visible) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := p
	if len(w.rest) > 0 {
		text = append(w.rest, p...)
	}
	out, left := w.escaper.Append(make([]byte, 0, len(text)), text)
	w.rest = append([]byte(nil), text[len(text)-left:]...) // a copy, as p is the caller's
	if len(out) == 0 {
		return len(p), nil
	}
	if _, err := w.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Finish writes an incomplete last character, if there is one.
func (w *Visible) Finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) > 0 {
		_, _ = w.to.Write(w.escaper.AppendRest(nil, w.rest)) // the program ends, and does not fail by an error here
	}
	w.rest = nil
}

// raw returns the writer below a Visible, for what the program itself draws, such as a bar; it returns others unchanged.
func raw(to io.Writer) io.Writer {
	if w, ok := to.(*Visible); ok {
		return w.to
	}
	return to
}

// ForJSON replaces a Visible by another one, which uses the escapes of JSON. It returns other writers unchanged.
func ForJSON(to io.Writer) io.Writer {
	if w, ok := to.(*Visible); ok {
		return NewVisible(w.to, true)
	}
	return to
}

// JSON writes one value as indented JSON.
func JSON(to io.Writer, value any) error {
	encoder := json.NewEncoder(ForJSON(to))
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
