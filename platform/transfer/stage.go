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
	head := binary.AppendUvarint(nil, uint64(l.number))
	head = append(head, byte(l.outcome))
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
	in := bufio.NewReaderSize(s.file, stageBuffer)
	return func() (l staged, err error) {
		number, err := binary.ReadUvarint(in)
		if err != nil {
			return l, err
		}
		outcome, err := in.ReadByte()
		if err != nil {
			return l, err
		}
		size, err := binary.ReadUvarint(in)
		if err != nil {
			return l, err
		}
		l = staged{int(number), domain.ImportOutcome(outcome), make([]byte, size)}
		_, err = io.ReadFull(in, l.text)
		return l, err
	}, nil
}

// close gives the file up. A nil stage has none.
func (s *stage) close() error {
	if s == nil {
		return nil
	}
	return s.file.Close()
}
