package seed

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/brianvoe/gofakeit/v7"

	"partnerapi/domain"
)

// dice decide everything that is left to chance. Those of the same stream and
// number always fall the same way.
type dice struct {
	*rand.Rand
	fake *gofakeit.Faker
}

// The streams of dice: what is seeded by one never changes another.
const (
	demoStream uint64 = 1 + iota
	largeStream
)

func newDice(stream uint64, number int) *dice {
	// Numbers that follow each other begin alike unless they are spread.
	source := rand.NewPCG(stream, uint64(number)*0x9E3779B97F4A7C15)
	return &dice{Rand: rand.New(source), fake: gofakeit.NewFaker(source, false)}
}

// chance is true with probability p.
func (d *dice) chance(p float64) bool { return d.Float64() < p }

// between returns a number from low to high, both included; low where high is
// below it.
func (d *dice) between(low, high int) int {
	if high <= low {
		return low
	}
	return low + d.IntN(high-low+1)
}

// oneOf picks one of some values.
func oneOf[T any](d *dice, values []T) T { return values[d.IntN(len(values))] }

// at returns a moment of a day, within the hours of work.
func (d *dice) at(day domain.Date) time.Time {
	return day.Time().Add(8*time.Hour + time.Duration(d.IntN(9*3600))*time.Second)
}

// newID returns the id of an object that was made at a time: a UUID of version
// 7, so that ids sort as their objects' times do.
func newID[K domain.Kind](d *dice, at time.Time) (id domain.ID[K]) {
	binary.BigEndian.PutUint64(id[:8], uint64(at.UnixMilli())<<16|7<<12|d.Uint64N(1<<12))
	binary.BigEndian.PutUint64(id[8:], 2<<62|d.Uint64N(1<<62))
	return id
}
