package transfer

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"partnerapi/domain"
)

// stage is a file that lines wait in until it is their turn. It has no name: nothing
// is left of it when the process ends, however that does.
type stage struct {
	file *os.File
	out  *bufio.Writer
	n    int
}

// staged is a line that waits.
type staged struct {
	number int
	place  place
	// outcome is what became of the line so far; ImportRefused, which is zero, for
	// nothing yet.
	outcome domain.ImportOutcome
	text    []byte
}

const stageBuffer = 256 << 10

func newStage() (*stage, error) {
	file, err := os.CreateTemp("", "partnerapi-import-")
	if err != nil {
		return nil, fmt.Errorf("make a file for lines that wait: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &stage{file: file, out: bufio.NewWriterSize(file, stageBuffer)}, nil
}

// add puts a line at the end.
func (s *stage) add(l staged) error {
	head := binary.AppendUvarint(make([]byte, 0, 64), uint64(l.number))
	head = append(head, byte(l.outcome))
	head = append(append(head, l.place.client[:]...), l.place.user[:]...)
	head = binary.AppendUvarint(head, uint64(len(l.text)))
	s.n++
	if _, err := s.out.Write(head); err != nil {
		return fmt.Errorf("keep lines that wait: %w", err)
	}
	if _, err := s.out.Write(l.text); err != nil {
		return fmt.Errorf("keep lines that wait: %w", err)
	}
	return nil
}

// lines returns a function that returns one line after another, from the first on;
// io.EOF after the last. Nothing may be added any more.
func (s *stage) lines() (next func() (staged, error), err error) {
	if err := s.out.Flush(); err != nil {
		return nil, fmt.Errorf("keep lines that wait: %w", err)
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return linesOf(bufio.NewReaderSize(s.file, stageBuffer)), nil
}

// linesOf is stage.lines for a part of a stage's file.
func linesOf(in *bufio.Reader) (next func() (staged, error)) {
	return func() (l staged, err error) {
		number, err := binary.ReadUvarint(in)
		if err != nil {
			return l, err
		}
		outcome, err := in.ReadByte()
		if err != nil {
			return l, err
		}
		l = staged{number: int(number), outcome: domain.ImportOutcome(outcome)}
		if _, err := io.ReadFull(in, l.place.client[:]); err != nil {
			return l, err
		}
		if _, err := io.ReadFull(in, l.place.user[:]); err != nil {
			return l, err
		}
		size, err := binary.ReadUvarint(in)
		if err != nil {
			return l, err
		}
		l.text = make([]byte, size)
		_, err = io.ReadFull(in, l.text)
		return l, err
	}
}

// close gives the file up. A nil stage has none.
func (s *stage) close() error {
	if s == nil {
		return nil
	}
	return s.file.Close()
}
