package seed

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/brianvoe/gofakeit/v7"

	"partnerapi/domain"
)

// random is a source of random values. The same stream and number give the same values.
type random struct {
	*rand.Rand
	fake *gofakeit.Faker
	// shift is subtracted from the times of objects in their ids; see newID.
	shift time.Duration
}

// The streams are independent: drawing more values of one stream does not change the values of the others.
const (
	demoStream uint64 = 1 + iota
	largeStream
	mailStream
	eventStream
	reportStream
	auditStream
)

// newRandom returns a source of the random values that belong to a stream and a number in it, such as a client's.
func newRandom(stream uint64, number int) *random {
	// Consecutive seeds give similar first values, so spread them.
	source := rand.NewPCG(stream, uint64(number)*0x9E3779B97F4A7C15)
	return &random{Rand: rand.New(source), fake: gofakeit.NewFaker(source, false)}
}

// chance returns true with probability p.
func (d *random) chance(p float64) bool { return d.Float64() < p }

// between returns a random number from low to high, both included. If high is less than low, it returns low.
func (d *random) between(low, high int) int {
	if high <= low {
		return low
	}
	return low + d.IntN(high-low+1)
}

// oneOf returns a random element of values.
func oneOf[T any](d *random, values []T) T { return values[d.IntN(len(values))] }

// at returns a random time of a day, from 8:00 to 17:00 UTC.
func (d *random) at(day domain.Date) time.Time {
	return day.Time().Add(8*time.Hour + time.Duration(d.IntN(9*3600))*time.Second)
}

// newID returns the id of an object that was created at a time. It is a UUID of version 7, so that ids sort like the
// times of their objects. The demonstration has the same ids on every day, because shift makes its times relative to
// ExampleDay: so the documentation can name them.
func newID[K domain.Kind](d *random, at time.Time) (id domain.ID[K]) {
	binary.BigEndian.PutUint64(id[:8], uint64(at.Add(-d.shift).UnixMilli())<<16|7<<12|d.Uint64N(1<<12)) // version 7
	binary.BigEndian.PutUint64(id[8:], 2<<62|d.Uint64N(1<<62))                                          // variant 2
	return id
}
