package transfer

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"partnerapi/domain"
)

// place is where a line belongs among others of its kind: with those of one client
// and, within them, of one user. What a batch has to do for each client and each user
// that it touches, such as a score, it then does for few.
type place struct {
	client domain.ClientID
	user   domain.UserID
}

func (p place) compare(other place) int {
	return cmp.Or(bytes.Compare(p.client[:], other.client[:]), bytes.Compare(p.user[:], other.user[:]))
}

// seen notes of which objects there were lines. It takes some for seen that were not,
// and never the other way: a filter of 8 MiB, which errs in one of 120 cases after six
// million objects.
type seen struct{ bits []uint64 }

const (
	seenBits   = 1 << 26
	seenHashes = 4
)

// before notes an object, and reports whether there was a line of it before.
func (s *seen) before(id [16]byte) bool {
	if s.bits == nil {
		s.bits = make([]uint64, seenBits/64)
	}
	a, b := mixed(binary.LittleEndian.Uint64(id[:8])), binary.LittleEndian.Uint64(id[8:])
	a = mixed(a ^ b)
	b = mixed(a+b) | 1
	was := true
	for range seenHashes {
		word, bit := &s.bits[a%seenBits/64], uint64(1)<<(a%64)
		was = was && *word&bit != 0
		*word |= bit
		a += b
	}
	return was
}

// mixed spreads what differs in a number over all of its bits.
func mixed(n uint64) uint64 {
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

const (
	// sortBytes is how much text of lines is sorted in memory at a time; each line takes
	// some 80 bytes beside.
	sortBytes = 24 << 20
	// mergeBuffer is what is held of each such part when they are merged: memory
	// grows by 3 MB with each GB of lines.
	mergeBuffer = 64 << 10
)

// sorted returns the lines of a stage by their places, those of one place in their
// order, as stage.lines does. It gives the stage up for a file of its own, which close
// gives up.
func (r *run) sorted(ctx context.Context, from *stage, owned bool) (next func() (staged, error), shut func() error, err error) {
	lines, err := from.lines()
	if err != nil {
		return nil, nil, errors.Join(err, from.close())
	}
	into, err := newStage()
	if err != nil {
		return nil, nil, errors.Join(err, from.close())
	}
	parts, err := r.sortParts(ctx, lines, into, owned)
	if err = errors.Join(err, from.close()); err != nil {
		return nil, nil, errors.Join(err, into.close())
	}
	m, err := merged(into.file, parts)
	if err != nil {
		return nil, nil, errors.Join(err, into.close())
	}
	return m.next, into.close, nil
}

// sortParts writes lines to a stage in parts that are sorted, and returns where in the
// file each ends.
func (r *run) sortParts(ctx context.Context, lines func() (staged, error), into *stage, owned bool) (ends []int64, err error) {
	var part []staged
	size := 0
	flush := func() error {
		if owned {
			if err := r.findClients(ctx, part); err != nil {
				return err
			}
		}
		slices.SortStableFunc(part, func(a, b staged) int { return a.place.compare(b.place) })
		for _, l := range part {
			if err := into.add(l); err != nil {
				return err
			}
		}
		if err := into.out.Flush(); err != nil {
			return fmt.Errorf("keep lines that wait: %w", err)
		}
		end, err := into.file.Seek(0, io.SeekCurrent)
		ends, part, size = append(ends, end), part[:0], 0
		return err
	}
	for {
		l, err := lines()
		if err == io.EOF {
			return ends, flush()
		}
		if err == nil {
			part, size = append(part, l), size+len(l.text)
			if size >= r.sortBytes {
				err = flush()
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// findClients sets the clients of the users of lines. A user who is not there has
// none.
func (r *run) findClients(ctx context.Context, part []staged) error {
	users := make([]domain.UserID, 0, len(part))
	for i := range part {
		users = append(users, part[i].place.user)
	}
	clients, err := r.db.ClientsOfUsers(ctx, users)
	for i := range part {
		part[i].place.client = clients[part[i].place.user]
	}
	return err
}

// merging are sorted parts of lines, of which the one with the next line is the first.
type merging []*mergedPart

type mergedPart struct {
	number int
	lines  func() (staged, error)
	line   staged // the next one
}

func merged(file *os.File, ends []int64) (m *merging, err error) {
	m = &merging{}
	begin := int64(0)
	for n, end := range ends {
		part := &mergedPart{number: n, lines: linesOf(bufio.NewReaderSize(io.NewSectionReader(file, begin, end-begin), mergeBuffer))}
		begin = end
		if part.line, err = part.lines(); err == io.EOF {
			continue
		}
		if err != nil {
			return nil, err
		}
		*m = append(*m, part)
	}
	heap.Init(m)
	return m, nil
}

// next returns the next line; io.EOF after the last.
func (m *merging) next() (l staged, err error) {
	if len(*m) == 0 {
		return l, io.EOF
	}
	first := (*m)[0]
	l = first.line
	switch first.line, err = first.lines(); err {
	case nil:
		heap.Fix(m, 0)
	case io.EOF:
		heap.Pop(m)
	default:
		return l, err
	}
	return l, nil
}

// Len, Less, Swap, Push and Pop are those of heap.Interface.
func (m *merging) Len() int { return len(*m) }

// Less orders parts by their next lines, and those of one place as the parts are.
func (m *merging) Less(i, j int) bool {
	a, b := (*m)[i], (*m)[j]
	return cmp.Or(a.line.place.compare(b.line.place), cmp.Compare(a.number, b.number)) < 0
}

// Swap swaps two parts.
func (m *merging) Swap(i, j int) { (*m)[i], (*m)[j] = (*m)[j], (*m)[i] }

// Push adds a part.
func (m *merging) Push(part any) { *m = append(*m, part.(*mergedPart)) }

// Pop takes the last part away.
func (m *merging) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}
