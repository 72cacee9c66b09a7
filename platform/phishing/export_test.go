package phishing

import "time"

// AnswerWithin changes how long a page waits.
func (p *Pages) AnswerWithin(d time.Duration) { p.timeout = d }

// TakeTurns takes all turns of the pages, until give is called.
func (p *Pages) TakeTurns() (give func()) {
	for range cap(p.slots) {
		p.slots <- struct{}{}
	}
	return func() {
		for range cap(p.slots) {
			<-p.slots
		}
	}
}
