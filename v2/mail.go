package v2

import (
	"context"

	"partnerapi/db"
	"partnerapi/domain"
)

// sendMail has mails sent whose requests the transaction of ctx wrote, if it
// commits (db.Change.SendMails).
func (a *API) sendMail(ctx context.Context, client domain.ClientID, ids ...domain.MessageID) error {
	return a.db.Change(ctx, func(ctx context.Context, c *db.Change) error { return c.SendMails(ctx, client, ids...) })
}
