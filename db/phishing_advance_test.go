package db_test

import (
	"slices"
	"testing"
	"time"

	"partnerapi/domain"
)

// TestAdvanceResults: a click moves the result, the day of its sending, the
// user and the events, one for a batch; what is not there is left out.
func TestAdvanceResults(t *testing.T) {
	w := newWorld(t)
	client := w.AddClient()
	user := w.AddUser(client, domain.RoleStandard, 750)
	id := w.AddUnsent(client, user, noon.AddDate(0, 0, -3))
	w.Must(w.AdvanceResults(t.Context(), []domain.ResultStep{
		{Result: domain.ResultID{1}, Kind: domain.MailClicked, At: noon},
		{Result: id, Kind: domain.MailClicked, At: noon},
		{Result: id, Kind: domain.MailOpened, At: noon.Add(-time.Minute)},
		{Result: id, Kind: domain.MailClicked, At: noon},
	}))
	var opened, clicked, phished, score, events int
	w.Scan(`SELECT d.opened, d.clicked, u.phished_clicked, u.score, (SELECT count(*) FROM events WHERE type = 'phishing.result.updated' AND object_id = $1)
		FROM phishing_days AS d, users AS u WHERE d.client_id = $2 AND d.day = $3 AND u.id = $4`,
		[]any{id, client, noon.AddDate(0, 0, -3), user}, &opened, &clicked, &phished, &score, &events)
	if opened != 1 || clicked != 1 || phished != 1 || score >= 750 || events != 1 { // the sending is none
		t.Errorf("opened %d, clicked %d and %d, score %d, %d events", opened, clicked, phished, score, events)
	}
}

// TestOneClickAtOnce: the same click told of many times at once counts once.
func TestOneClickAtOnce(t *testing.T) {
	w := newWorld(t)
	client := w.AddClient()
	a, b := w.AddUser(client, domain.RoleStandard, 750), w.AddUser(client, domain.RoleStandard, 750)
	steps := []domain.ResultStep{
		{Result: w.AddUnsent(client, a, noon.AddDate(0, 0, -1)), Kind: domain.MailClicked, At: noon},
		{Result: w.AddUnsent(client, b, noon.AddDate(0, 0, -1)), Kind: domain.MailClicked, At: noon},
	}
	before := w.ResultUpdates()
	w.atOnce(16, func(i int) error {
		mine := slices.Clone(steps)
		if i%2 == 1 {
			slices.Reverse(mine)
		}
		return w.AdvanceResults(t.Context(), mine)
	})
	clicked := w.Number("SELECT clicked FROM phishing_days WHERE client_id = $1", client)
	if w.ResultUpdates()-before != 2 || clicked != 2 {
		t.Errorf("changed %d, counted %d", w.ResultUpdates()-before, clicked)
	}
	w.WantPhishingCounts(t)
}
