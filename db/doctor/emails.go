package doctor

import (
	"context"
	"fmt"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// MostSharedEmails is the greatest number of keys that SharedEmails returns of users, and of admins.
const MostSharedEmails = 20

// SharedEmail is the key of an email address that several users or admins of a client have.
type SharedEmail struct {
	Client domain.ClientID
	Key    string
	// Holders are their ids and addresses, the oldest first.
	Holders []string
}

// SharedEmails returns the first keys of addresses that several users or admins of a client have. They were stored before
// addresses were compared by their key.
func SharedEmails(ctx context.Context, d *db.DB) (all []SharedEmail, err error) {
	for _, table := range []string{"users", "admins"} {
		rows, err := pg.All[struct {
			Client domain.ClientID
			Key    string
			ID     domain.UserID // of any kind
			Email  string
		}](ctx, d, "find addresses that are stored twice", pg.SQL(`
			SELECT t.client_id AS client, k.key, t.id, t.email FROM (
				SELECT s.client_id, `+db.EmailKeyOf("s")+` AS key FROM `+table+` AS s WHERE s.email_state = 'shared' AND (
					SELECT count(*) FROM `+table+` AS o WHERE o.client_id = s.client_id AND `+db.EmailKeyOf("o")+` = `+db.EmailKeyOf("s")+`) > 1
				GROUP BY 1, 2 ORDER BY 1, 2 LIMIT ?
			) AS k JOIN `+table+` AS t ON t.client_id = k.client_id AND `+db.EmailKeyOf("t")+` = k.key
			ORDER BY k.client_id, k.key, t.created_at, t.id`, MostSharedEmails))
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			id := r.ID.String()
			if table == "admins" {
				id = domain.AdminID(r.ID).String()
			}
			if n := len(all); n == 0 || all[n-1].Client != r.Client || all[n-1].Key != r.Key {
				all = append(all, SharedEmail{Client: r.Client, Key: r.Key})
			}
			last := &all[len(all)-1]
			last.Holders = append(last.Holders, fmt.Sprintf("%s (%s)", id, r.Email))
		}
	}
	return all, nil
}
