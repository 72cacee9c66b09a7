package transfer

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"partnerapi/domain"
)

// TestSorted: lines come by their places and, within one, in their order, whatever part
// of them is sorted at a time.
func TestSorted(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int{1, 50, 1000, sortBytes} {
		r := rand.New(rand.NewPCG(7, uint64(bytes)))
		from, err := newStage()
		if err != nil {
			t.Fatal(err)
		}
		const lines = 300
		for n := range lines {
			at := place{client: domain.ClientID{byte(r.IntN(3))}, user: domain.UserID{byte(r.IntN(4))}}
			if err := from.add(staged{number: n, place: at, text: fmt.Appendf(nil, "line %d", n)}); err != nil {
				t.Fatal(err)
			}
		}
		next, shut, err := (&run{sortBytes: bytes}).sorted(t.Context(), from, false)
		if err != nil {
			t.Fatal(err)
		}
		var last staged
		for n := range lines {
			l, err := next()
			if err != nil {
				t.Fatal(err)
			}
			if order := last.place.compare(l.place); n > 0 && (order > 0 || order == 0 && last.number >= l.number) {
				t.Fatalf("%d bytes: line %d comes before line %d", bytes, last.number, l.number)
			}
			if string(l.text) != fmt.Sprintf("line %d", l.number) {
				t.Fatalf("line %d: %s", l.number, l.text)
			}
			last = l
		}
		if _, err := next(); err != io.EOF {
			t.Fatalf("after the last line: %v", err)
		}
		if err := shut(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSeen: an object that was seen is known, also where ids differ in a few bits only,
// and hardly any other is.
func TestSeen(t *testing.T) {
	t.Parallel()
	var s seen
	wrong := 0
	const objects = 200_000
	for n := range objects {
		id := [16]byte{0: 1, 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)}
		if s.before(id) {
			wrong++
		}
		if !s.before(id) {
			t.Fatalf("object %d is forgotten", n)
		}
	}
	if wrong > 3 {
		t.Errorf("%d of %d objects were seen before", wrong, objects)
	}
}
