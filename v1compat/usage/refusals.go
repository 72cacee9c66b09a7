package usage

import (
	"cmp"
	"context"
	"slices"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// CauseKind is the kind of a Cause.
type CauseKind string

// The kinds of causes.
const (
	PhaseCause    CauseKind = "phase"
	BrownoutCause CauseKind = "brownout"
)

// Cause is what refused a request of version 1: the setting of a phase, or a brownout. The zero Cause is none.
type Cause struct {
	Kind CauseKind
	ID   int64
}

// refusalKey identifies a count of refused requests.
type refusalKey struct {
	Cause
	day domain.Date
}

// CountRefusal counts a request that was refused because of a cause. It does nothing for the zero Cause, and for causes
// beyond the limit of a Counter.
func (c *Counter) CountRefusal(cause Cause) {
	if cause == (Cause{}) {
		return
	}
	key := refusalKey{cause, domain.DateOf(c.clock.Now())}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.refusals[key]; known || len(c.refusals) < c.limit {
		c.refusals[key]++
	}
}

// refusalRows are the counts of refused requests of one flush, by column.
type refusalRows struct {
	kinds, days []string
	ids, counts []int64
}

// drainRefusals returns the refusals counted since the previous drain, in the order of the primary key. The caller holds
// c.mu.
func (c *Counter) drainRefusals() (rows refusalRows) {
	keys := make([]refusalKey, 0, len(c.refusals))
	for key := range c.refusals {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b refusalKey) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID), b.day.DaysUntil(a.day))
	})
	for _, key := range keys {
		rows.kinds, rows.ids = append(rows.kinds, string(key.Kind)), append(rows.ids, key.ID)
		rows.days, rows.counts = append(rows.days, key.day.String()), append(rows.counts, c.refusals[key])
	}
	clear(c.refusals)
	return rows
}

// Refusals returns how many requests each cause refused within the retention.
func Refusals(ctx context.Context, d pg.Runner) (map[Cause]int64, error) {
	rows, err := pg.All[struct {
		Kind    CauseKind
		ID      int64
		Refused int64
	}](ctx, d, "count the refusals of v1", pg.SQL("SELECT kind, id, sum(refused)::bigint AS refused FROM v1_refusals GROUP BY kind, id"))
	counts := map[Cause]int64{}
	for _, r := range rows {
		counts[Cause{r.Kind, r.ID}] = r.Refused
	}
	return counts, err
}
