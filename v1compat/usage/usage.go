// Package usage counts which key calls which operation of version 1, and which of
// the operations of version 2 that follow them, so that it is known who still
// has to move (decisions 11.5). A Counter counts in memory and adds what it
// counted to the database every ten seconds; the other functions read it.
package usage

import (
	"time"

	"partnerapi/domain"
)

const (
	// every is how often a Counter is flushed: the most that a process that is killed
	// has counted in vain.
	every = 10 * time.Second
	// Days is how many days are kept, today included.
	Days = 400
	// MaxAgents is how many user agents are kept of a key, an operation and a day:
	// those that came first.
	MaxAgents = 5
	// maxAgent is how many bytes are kept of a user agent.
	maxAgent = 200
)

// Surface is a version of the interface.
type Surface string

// The versions.
const (
	V1 Surface = "v1"
	V2 Surface = "v2"
)

// Call is a request that was answered.
type Call struct {
	Key domain.KeyID
	// Surface and Operation are what was called; the operation is its method and
	// path, such as "GET /v1/clients/{client_id}/users".
	Surface   Surface
	Operation string
	// Status is the HTTP status of the answer. From 400 on the call failed, and so
	// did one whose caller did not wait for the answer (499).
	Status    int
	UserAgent string
}

// Row is what one key called of one operation on one day.
type Row struct {
	Key       domain.KeyID
	Day       domain.Date // in UTC
	Surface   Surface
	Operation string
	Calls     int64
	// Failures are those of the calls that failed.
	Failures        int64
	FirstAt, LastAt time.Time
	// UserAgents are up to MaxAgents, the first first, each of up to 200 bytes of
	// printable text; none where no call had one.
	UserAgents []string
}

// oldest is the first day that is kept.
func oldest(now time.Time) domain.Date { return domain.DateOf(now).AddDays(1 - Days) }
