package job

import (
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"partnerapi/domain"
)

// NoteScan takes note of what a mail scanner did with a simulated mail while a
// worker was handing that over, and so held it.
type NoteScan struct {
	Result domain.ResultID        `json:"result_id" river:"unique"`
	Step   domain.ResultEventKind `json:"step" river:"unique"`
	At     time.Time              `json:"at"`
	Reason string                 `json:"reason"`
}

// Kind names the work in the database.
func (NoteScan) Kind() string { return "scan" }

// InsertOpts says that a step which waits to be noted is not enqueued again,
// however often it is repeated meanwhile.
func (NoteScan) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: Mail, Priority: 3, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateRetryable, rivertype.JobStateScheduled,
	}}}
}
