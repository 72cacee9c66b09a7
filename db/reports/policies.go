package reports

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// EveryPolicy reads all pages of Tenant.Policies, without the descriptions.
func EveryPolicy(ctx context.Context, t *db.Tenant) (all []domain.Policy, err error) {
	for w := (domain.Window{Limit: pg.EachBatch}); ; {
		page, err := t.Policies(ctx, nil /* since any time */, w)
		if err != nil {
			return nil, err
		}
		for _, p := range page.Rows {
			p.Description = nil // it may be long, and reports do not need it
			all = append(all, p)
		}
		if !page.More {
			return all, nil
		}
		w.After = page.End
	}
}

// ScopeName is the name of a group or a collection.
type ScopeName struct {
	Type domain.ScopeType
	ID   [16]byte
	Name string
}

// ScopeNames reads the names of the client's groups and collections.
var ScopeNames = Statement[ScopeName]{"read the names of audiences", `
	SELECT 'user_container' AS type, id, name FROM groups WHERE client_id = ?client
	UNION ALL SELECT 'collection', id, name FROM collections WHERE client_id = ?client`}

// AskedUsers reads the active users from whom policies require a signature, one row for each user and policy. The
// conditions are the same as in db.Policy.Users.
var AskedUsers = Statement[domain.AskedUser]{"read who has to sign", `
	SELECT ` + person + `, p.title, p.version, p.renewal_period_days AS renewal_days, s.signed_at
	FROM ` + reportedUsers + `
	JOIN policies AS p ON p.client_id = ?client AND p.archived_at IS NULL AND p.requires_acknowledgment AND (
		p.scope_type = 'tenant' OR p.scope_type = 'user_container' AND u.group_id = p.scope_id
		OR p.scope_type = 'collection' AND EXISTS (SELECT 1 FROM collection_members AS m
			WHERE m.client_id = ?client AND m.collection_id = p.scope_id AND m.user_id = u.id))
	LEFT JOIN policy_signatures AS s ON s.client_id = ?client AND s.policy_id = p.id AND s.version = p.version
		AND s.user_id = u.id AND s.signed_at > ?now::timestamptz - make_interval(days => p.renewal_period_days)
	ORDER BY u.name_key, u.email_key, p.title COLLATE "C", p.id`}
