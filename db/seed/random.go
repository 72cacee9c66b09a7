package seed

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/brianvoe/gofakeit/v7"

	"partnerapi/domain"
)

// random is the source of all random values. The same stream and number give
// the same values.
type random struct {
	*rand.Rand
	fake *gofakeit.Faker
	// shift is how much later objects are made than their ids say.
	shift time.Duration
}

// The streams are independent: a change of one leaves the values of the other.
const (
	demoStream uint64 = 1 + iota
	largeStream
	mailStream
	eventStream
	reportStream
)

func newRandom(stream uint64, number int) *random {
	// Consecutive seeds give similar first values, so spread them.
	source := rand.NewPCG(stream, uint64(number)*0x9E3779B97F4A7C15)
	return &random{Rand: rand.New(source), fake: gofakeit.NewFaker(source, false)}
}

// chance is true with probability p.
func (d *random) chance(p float64) bool { return d.Float64() < p }

// between returns a number from low to high, both included; low where high is
// below it.
func (d *random) between(low, high int) int {
	if high <= low {
		return low
	}
	return low + d.IntN(high-low+1)
}

// oneOf picks one of some values.
func oneOf[T any](d *random, values []T) T { return values[d.IntN(len(values))] }

// at returns a moment of a day, within the hours of work.
func (d *random) at(day domain.Date) time.Time {
	return day.Time().Add(8*time.Hour + time.Duration(d.IntN(9*3600))*time.Second)
}

// newID returns the id of an object that was made at a time: a UUID of version
// 7, so that ids sort as their objects' times do. The ids of a demonstration are those of one that
// was made on ExampleDay, whenever it is made, so that documents can name them.
func newID[K domain.Kind](d *random, at time.Time) (id domain.ID[K]) {
	binary.BigEndian.PutUint64(id[:8], uint64(at.Add(-d.shift).UnixMilli())<<16|7<<12|d.Uint64N(1<<12))
	binary.BigEndian.PutUint64(id[8:], 2<<62|d.Uint64N(1<<62))
	return id
}
