package idmap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Registry looks up ids by numbers, and numbers by ids. It is safe for concurrent use; a process needs only one.
type Registry struct {
	db    *pg.DB
	cache *cache
	// observe is called after each event of Watch, for tests.
	observe func(event)
}

// New returns a registry on the database that caches at most size objects; none if size is below 1. It uses the cache
// only while Watch runs: without Watch, every lookup is a statement.
func New(d *pg.DB, size int) *Registry {
	return &Registry{db: d, cache: newCache(size), observe: func(event) {}}
}

// The LIMITs make the planner use one index lookup per key: with stale statistics of a table that was just filled it
// would read the whole table. For the same reason selectIDs excludes tombstones after the lookup: with the condition
// inside, the planner could use the index of live entries for the kind alone, and read all of it.
const (
	selectIDs = `SELECT w.n, r.id
FROM unnest($1::text[], $2::int[]) WITH ORDINALITY AS w (kind, number, n)
CROSS JOIN LATERAL (
	SELECT id, retired_at FROM id_registry
	WHERE kind = w.kind AND number = w.number LIMIT 1) AS r
WHERE r.retired_at IS NULL`

	selectNumbers = `SELECT w.n, r.number, r.retired_at IS NULL AS live
FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS w (kind, id, n)
CROSS JOIN LATERAL (
	SELECT number, retired_at FROM id_registry
	WHERE kind = w.kind AND id = w.id AND retired_at IS NULL
	UNION ALL (
		SELECT number, retired_at FROM id_registry
		WHERE kind = w.kind AND id = w.id AND retired_at IS NOT NULL
		ORDER BY retired_at DESC LIMIT 1)
	ORDER BY retired_at DESC NULLS FIRST LIMIT 1) AS r`
)

// Lookup holds the pairs that Registry.IDs read from the database and not from the cache. The zero Lookup holds none.
type Lookup struct {
	cache      *cache
	generation uint64
	caller     domain.KeyID
	pairs      []pair
}

// Cache adds the pairs to the cache for the caller that looked them up. Call it only if this caller may access all of
// their objects.
func (l Lookup) Cache() {
	if len(l.pairs) > 0 {
		l.cache.put(l.generation, l.caller, l.pairs)
	}
}

// Only returns the Lookup with the pairs of these objects only.
func (l Lookup) Only(objects map[UUID]bool) Lookup {
	l.pairs = slices.DeleteFunc(slices.Clone(l.pairs), func(p pair) bool { return !objects[p.id] })
	return l
}

// IDs returns the ids of the objects that have the wanted numbers, of any kinds, with at most one statement. Unused
// numbers and tombstones are not in the map. It uses the cache only for objects that the context's caller accessed
// before. The Lookup has the pairs that were not in the cache, for Lookup.Cache.
func (r *Registry) IDs(ctx context.Context, wanted []NumberKey) (map[NumberKey]UUID, Lookup, error) {
	found := make(map[NumberKey]UUID, len(wanted))
	caller := domain.CallerFrom(ctx).Key
	missing, generation := r.cache.getIDs(caller, distinct(wanted), found)

	var keys []NumberKey
	var kinds []string
	var numbers []int32
	for _, key := range missing {
		if key.Number < 1 || key.Number > MaxNumber {
			continue // no object has the number
		}
		keys = append(keys, key)
		kinds = append(kinds, key.Kind.String())
		numbers = append(numbers, int32(key.Number))
	}
	if len(keys) == 0 {
		return found, Lookup{}, nil
	}

	rows, err := pg.All[struct {
		N  int // the place of the key in the arrays, from 1
		ID anyID
	}](ctx, r.db, "look up ids by number", pg.Prepared(pg.Raw(selectIDs, []any{kinds, numbers})))
	if err != nil {
		return nil, Lookup{}, err
	}
	pairs := make([]pair, len(rows))
	for i, row := range rows {
		key := keys[row.N-1]
		found[key] = UUID(row.ID)
		pairs[i] = pair{key.Kind, key.Number, UUID(row.ID)}
	}
	return found, Lookup{r.cache, generation, caller, pairs}, nil
}

// Numbers returns the numbers of the wanted objects, of any kinds, with at most one statement. It returns the last
// number of a deleted object, because other objects may still refer to it (a policy keeps the id of its deleted
// collection, decisions 7.6). Objects that never had a number are not in the map. The context's caller must be allowed
// to access the objects: their numbers are cached for it (see Lookup.Cache).
func (r *Registry) Numbers(ctx context.Context, wanted []IDKey) (map[IDKey]int64, error) {
	found := make(map[IDKey]int64, len(wanted))
	caller := domain.CallerFrom(ctx).Key
	missing, generation := r.cache.getNumbers(caller, distinct(wanted), found)
	if len(missing) == 0 {
		return found, nil
	}
	kinds := make([]string, len(missing))
	ids := make([]anyID, len(missing))
	for i, key := range missing {
		kinds[i], ids[i] = key.Kind.String(), anyID(key.ID)
	}

	rows, err := pg.All[struct {
		N      int // the place of the key in the arrays, from 1
		Number int64
		Live   bool
	}](ctx, r.db, "look up numbers by id", pg.Prepared(pg.Raw(selectNumbers, []any{kinds, pg.IDs(ids)})))
	if err != nil {
		return nil, err
	}
	var pairs []pair
	for _, row := range rows {
		key := missing[row.N-1]
		found[key] = row.Number
		if row.Live {
			pairs = append(pairs, pair{key.Kind, row.Number, key.ID})
		}
	}
	r.cache.put(generation, caller, pairs)
	return found, nil
}

// distinct returns the keys without repetitions, in the order in which they first occur.
func distinct[K comparable](keys []K) []K {
	seen := make(map[K]struct{}, len(keys))
	unique := make([]K, 0, len(keys))
	for _, key := range keys {
		if _, repeated := seen[key]; !repeated {
			seen[key] = struct{}{}
			unique = append(unique, key)
		}
	}
	return unique
}

// Entry is a row of the registry.
type Entry struct {
	Kind      Kind
	Number    int64
	ID        UUID
	RetiredAt time.Time // when the number became a tombstone; zero while an object has it
}

// String returns the entry as the lookup command prints it: kind, number, id in the form of v2, UUID, and whether the
// number is live or a tombstone.
func (e Entry) String() string {
	state := "live"
	if !e.RetiredAt.IsZero() {
		state = "tombstone since " + e.RetiredAt.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s %d %s %s %s", e.Kind, e.Number, e.Shown(), e.UUID(), state)
}

// Shown returns the id in the form of v2.
func (e Entry) Shown() string { return kindInfos[e.Kind].show(e.ID) }

// UUID returns the id as the text of a UUID.
func (e Entry) UUID() string { return anyID(e.ID).UUID() }

// Describe returns all entries of the registry with a number, or with an id in the form of v2 or as a UUID: the live
// entry first, then the tombstones from the latest to the earliest. It returns an error for a text that is neither a
// number up to MaxNumber nor an id of the kind.
func (r *Registry) Describe(ctx context.Context, kind Kind, text string) ([]Entry, error) {
	var condition string
	var value any
	if number, err := strconv.ParseInt(text, 10, 32); err == nil {
		condition, value = "number = ?1::int", number
	} else if errors.Is(err, strconv.ErrRange) {
		return nil, ErrNumber
	} else {
		id, err := ParseID(kind, text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number; it is %w", text, err)
		}
		condition, value = "id = ?1::uuid", anyID(id)
	}

	rows, err := pg.All[struct {
		Number    int64
		ID        anyID
		RetiredAt *time.Time
	}](ctx, r.db, fmt.Sprintf("describe %s %s", kind, text), pg.SQL(`
		SELECT number, id, retired_at FROM id_registry WHERE kind = ?0 AND `+condition+`
		ORDER BY retired_at DESC NULLS FIRST`, kind.String(), value))

	var entries []Entry
	for _, row := range rows {
		entries = append(entries, Entry{kind, row.Number, UUID(row.ID), domain.OrZero(row.RetiredAt)})
	}
	return entries, err
}
