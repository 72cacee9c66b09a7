package v2

import (
	"context"

	"partnerapi/domain"
	"partnerapi/job"
)

// sendMail has mails sent that the transaction of ctx asked for, if it commits.
//
// An operation that mails writes its requests with a method of db, which
// inserts them in one statement, whatever their number, and returns their ids;
// then it calls this, in the same transaction. Together these are two
// statements, for one recipient as for fifty thousand.
func (a *API) sendMail(ctx context.Context, client domain.ClientID, ids ...domain.MessageID) error {
	work := make([]job.SendMail, len(ids))
	for i, id := range ids {
		work[i] = job.SendMail{Client: client, Request: id}
	}
	return a.queue.Enqueue(ctx, job.Now(work...)...)
}
