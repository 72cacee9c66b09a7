package job

import (
	"context"
	"fmt"

	"github.com/riverqueue/river/rivertype"

	"partnerapi/db"
)

// Backlog counts the jobs by state: those that are still to be done, and those
// that were given up of late. A state without jobs counts 0.
func Backlog(ctx context.Context, d *db.DB) (map[rivertype.JobState]int, error) {
	counts := map[rivertype.JobState]int{
		rivertype.JobStateAvailable: 0, rivertype.JobStateRunning: 0, rivertype.JobStateRetryable: 0,
		rivertype.JobStateScheduled: 0, rivertype.JobStateDiscarded: 0,
	}
	rows, err := d.SQL().QueryContext(ctx, `
		SELECT state::text, count(*) FROM river_job
		WHERE state IN ('available', 'running', 'retryable', 'scheduled', 'discarded') GROUP BY state`)
	if err != nil {
		return nil, fmt.Errorf("count jobs: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var state rivertype.JobState
		var n int
		if err := rows.Scan(&state, &n); err != nil {
			return nil, fmt.Errorf("count jobs: %w", err)
		}
		counts[state] = n
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("count jobs: %w", err)
	}
	return counts, nil
}
