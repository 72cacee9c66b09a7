package records

import (
	"context"

	"partnerapi/db"
	"partnerapi/domain"
)

// SentEmails is the kind of emails sent to users. An import only stores them. Emails of two users may have the same id,
// so each record names its user.
var SentEmails = declare[sentEmails](kind[domain.SentEmailRecord, db.SentEmailRow]{
	object: "sent_email", partner: ofPartner("e"), order: "e.client_id, e.user_id, e.id",
})

type sentEmails struct {
	batch[domain.SentEmailRecord, db.SentEmailRow]
}

func (b *sentEmails) lock(ctx context.Context) error {
	return lockHistory(ctx, &b.batch, "id", "uuid", func(in *domain.SentEmailRecord) (domain.UserID, [16]byte) {
		return in.User.Value.ID, in.ID.ID
	})
}

func (b *sentEmails) key(in *domain.SentEmailRecord) any {
	return historyKey{in.User.Value.ID, in.ID.ID}
}

func (b *sentEmails) create(in *domain.SentEmailRecord, row *db.SentEmailRow) {
	row.ID, row.ClientID = in.ID.ID, b.found.find(in.User.Value).ClientID
}
