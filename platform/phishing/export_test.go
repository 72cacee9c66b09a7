package phishing

import "time"

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
