package idmap

import (
	"testing"

	"partnerapi/domain"
)

// BenchmarkNumber numbers a page of 500 items in a registry of 100,000, as
// v1's lists do: with nothing in the cache, with all of it there, and, for
// comparison, a page that has no Refs.
func BenchmarkNumber(b *testing.B) {
	db, cold := registry(b)
	exec(b, db, `INSERT INTO clients SELECT ('01000000-0000-0000-0000-' || lpad(to_hex(n), 12, '0'))::uuid, now()
		FROM generate_series(1, 100000) n`)
	exec(b, db, `ANALYZE id_registry`)
	warm := New(cold.db, 1000)
	warm.cache.reset(true) // as if Watch were listening; nothing changes here
	type line struct {
		Client Ref[domain.ClientKind]
		Name   string
	}
	lines := make([]line, 500)
	for _, c := range []struct {
		name string
		reg  *Registry
	}{{"cold", cold}, {"warm", warm}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				for i := range lines {
					lines[i].Client = RefTo(domain.ClientID(object(i*200 + 1)))
				}
				if err := Number(b.Context(), c.reg, &lines); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("no refs", func(b *testing.B) {
		names := make([]struct{ Name string }, 500)
		for b.Loop() {
			if err := Number(b.Context(), cold, &names); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkResolve looks up the ids of 500 numbers in a registry of 100,000.
func BenchmarkResolve(b *testing.B) {
	db, cold := registry(b)
	exec(b, db, `INSERT INTO clients SELECT gen_random_uuid(), now() FROM generate_series(1, 100000)`)
	warm := New(cold.db, 1000)
	warm.cache.reset(true)
	refs := make([]Ref[domain.ClientKind], 500)
	numbers := make([]NumberKey, len(refs))
	for i := range refs {
		numbers[i] = NumberKey{Client, int64(i*200 + 1)}
	}
	_, lookup, err := warm.IDs(b.Context(), numbers)
	if err != nil {
		b.Fatal(err)
	}
	lookup.Reached()
	for _, c := range []struct {
		name string
		reg  *Registry
	}{{"cold", cold}, {"warm", warm}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				for i := range refs {
					refs[i] = Ref[domain.ClientKind]{Number: int64(i*200 + 1)}
				}
				if _, err := Resolve(b.Context(), c.reg, &refs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
