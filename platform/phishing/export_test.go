package phishing

import (
	"time"

	"github.com/riverqueue/river"

	"partnerapi/db"
	"partnerapi/job"
)

// AnswerWithin changes how long a page waits.
func (p *Pages) AnswerWithin(d time.Duration) { p.within = d }

// TakeTurns takes all turns of the pages, until give is called.
func (p *Pages) TakeTurns() (give func()) {
	for range cap(p.turns) {
		p.turns <- struct{}{}
	}
	return func() {
		for range cap(p.turns) {
			<-p.turns
		}
	}
}

// NewScans is the worker for what scanners did while a mail was handed over.
func NewScans(d *db.DB) river.Worker[job.NoteScan] { return &scans{db: d} }
