package transfer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxLine is the maximum length of a line in bytes.
const MaxLine = 1 << 20

// errTooLong is the error of a line longer than MaxLine.
var errTooLong = fmt.Errorf("the line is longer than %d bytes", MaxLine)

// byteOrderMark is written by some editors at the start of a text in UTF-8.
const byteOrderMark = "\uFEFF"

// inputLine is a line of an input, or its end.
type inputLine struct {
	number  int    // from 1; at the end of the input, the number of the last line
	bytes   int64  // the number of bytes read from the input, with this line
	text    []byte // without white space around it; nil if the line is too long
	tooLong bool
	fault   error // why the line is invalid; nil for none, and before its text is read
	err     error // io.EOF at the end of the input, or the error of a read; nil for a line
}

// source is what lines come from. It is read by one goroutine.
type source interface {
	// next returns the next line, which may be empty, or the end of the input.
	next() inputLine
}

// batches reads the lines of an input in batches, which end at batchLines or batchBytes.
type batches struct {
	// take is called with each line.
	take func(*inputLine)
	// apply is called after each batch, also after a batch without lines, with the last line or the end of the input.
	apply func(last *inputLine) error
	// startTimer is called when a batch gets its first line; the batch ends when its channel fires, even if more lines
	// would fit. It may be nil.
	startTimer func() <-chan time.Time
}

// each reads a source to its end, in batches: it calls take with each line of a batch, and then apply once. It stops at
// an error of the source or of apply, or at the end of ctx, which does not interrupt a read.
func (b *batches) each(ctx context.Context, from source) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	lines := linesOf(ctx, from)
	for last := (inputLine{}); last.err == nil; { // until io.EOF: gather returns other errors
		if err := b.gather(ctx, lines, &last); err != nil {
			return err
		}
		if err := b.apply(&last); err != nil {
			return err
		}
	}
	return nil
}

// gather calls take with the lines of the next batch, and sets last to the last line read or the end of the input. The
// batch ends at batchLines or batchBytes, at the end of the input, or when the timer of its first line fires.
func (b *batches) gather(ctx context.Context, lines <-chan inputLine, last *inputLine) error {
	began := last.bytes
	var timer <-chan time.Time // nil, which never fires, until the batch has a line
	for n := 0; n < batchLines && last.bytes-began < batchBytes; n++ {
		select {
		case *last = <-lines:
		case <-timer:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
		switch {
		case errors.Is(last.err, io.EOF):
			return nil
		case errors.As(last.err, new(FormatError)):
			return last.err
		case last.err != nil:
			return fmt.Errorf("read line %d: %w", last.number+1, last.err)
		}
		b.take(last)
		if n == 0 && b.startTimer != nil {
			timer = b.startTimer()
		}
	}
	return nil
}

// linesOf reads a source in the background, and sends its lines and then its end or error. It omits empty lines. It stops
// at the end of ctx, which does not interrupt a read.
func linesOf(ctx context.Context, from source) <-chan inputLine {
	lines := make(chan inputLine)
	go func() {
		for ended := false; !ended; {
			l := from.next()
			ended = l.err != nil
			if len(l.text) == 0 && !l.tooLong && l.fault == nil && !ended {
				continue
			}
			select {
			case lines <- l:
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// lineReader reads lines of JSON. lines and bytes count what it has read.
type lineReader struct {
	in    *bufio.Reader
	lines int
	bytes int64
	begun bool // a line that is not empty was read
}

// newLineReader returns a lineReader of r.
func newLineReader(r io.Reader) *lineReader { return &lineReader{in: bufio.NewReaderSize(r, 64<<10)} }

// next returns the next line. The last line need not have a line end, and a byte order mark before the first is omitted.
// A line of more than MaxLine bytes, besides its line end, is returned without its text, which is not held in memory.
// The error is a FormatError if the input does not begin as lines of JSON do.
func (r *lineReader) next() inputLine {
	if r.lines == 0 {
		head, _ := r.in.Peek(longestMark) // an error returns when the line is read
		if err := checkHead(head, false /* UTF-16 */); err != nil {
			return inputLine{err: err}
		}
	}
	l := r.read()
	if !r.begun && len(l.text) > 0 {
		r.begun = true
		if l.text[0] == '[' || r.continues(l.text) {
			return inputLine{err: errOneDocument}
		}
	}
	return l
}

// continues reports whether a line begins a JSON object that the next line that is not empty continues.
func (r *lineReader) continues(line []byte) bool {
	if string(line) == "{" {
		return true
	}
	err := jsontext.NewDecoder(bytes.NewReader(line), jsontext.AllowDuplicateNames(true)).SkipValue()
	if line[0] != '{' || !errors.Is(err, io.ErrUnexpectedEOF) {
		return false
	}
	for n := 1; ; n++ {
		head, err := r.in.Peek(n)
		if err != nil { // the input ends, or has more white space than the buffer
			return false
		}
		if next := head[n-1]; !bytes.ContainsRune([]byte(" \t\r\n"), rune(next)) {
			return bytes.ContainsRune([]byte(`"}],:`), rune(next)) // what begins no new line
		}
	}
}

// read returns the next line, whatever is in it.
func (r *lineReader) read() inputLine {
	var text []byte
	size := 0
	for {
		part, err := r.in.ReadSlice('\n')
		r.bytes += int64(len(part))
		size += len(part)
		tooLong := size > MaxLine+1 // 1 for the line end, which the last line may lack: see below
		if !tooLong {
			text = append(text, part...)
		}

		switch {
		case errors.Is(err, bufio.ErrBufferFull): // the line continues
			continue
		case err == io.EOF && size > 0, err == nil:
			r.lines++
			text = bytes.TrimSuffix(text, []byte("\n"))
			if r.lines == 1 {
				text = bytes.TrimPrefix(text, []byte(byteOrderMark))
			}
			l := inputLine{number: r.lines, bytes: r.bytes, tooLong: tooLong || len(text) > MaxLine}
			if !l.tooLong {
				l.text = bytes.TrimSpace(text)
			}
			return l
		default:
			return inputLine{number: r.lines, bytes: r.bytes, err: err}
		}
	}
}
