package db

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// API keys.

// KeyRow is a row of api_keys.
type KeyRow struct {
	bun.BaseModel `bun:"table:api_keys,alias:k"`

	ID         domain.KeyID `bun:"id,pk"`
	PartnerID  domain.PartnerID
	Name       string
	Prefix     string
	Digest     []byte
	AllClients bool
	Scopes     []string       `bun:"scopes,array"`
	Networks   []netip.Prefix `bun:"networks,array"`
	Demo       bool
	ExpiresAt  *time.Time
	RevokedAt  *time.Time
	LastUsedAt *time.Time
	CreatedAt  time.Time
}

// KeyTexts is an SQL item for FROM: the prefix and the digest of each text of each key. until is the end of a replaced
// text, and NULL for the newest one of a key. ended is true for a text that was ended before.
const KeyTexts = `(
	SELECT id AS key_id, prefix, digest, NULL::timestamptz AS until, false AS ended FROM api_keys
	UNION ALL SELECT key_id, prefix, digest, until, ended_at IS NOT NULL FROM replaced_keys)`

// KeyOfPrefix returns the SQL expression of the id of the key that has, or had, a text with a prefix.
func KeyOfPrefix(prefix string) pg.Query {
	return pg.SQL("(SELECT t.key_id FROM "+KeyTexts+" AS t WHERE t.prefix = ?)", prefix)
}

// CallerByDigest returns the caller of the key with a digest. It returns Unauthorized if the key is unknown, revoked or
// expired. It does not read the key's listed clients; WithinReach does.
func (d *DB) CallerByDigest(ctx context.Context, digest []byte) (*domain.Caller, error) {
	caller, err := pg.Find[domain.Caller](ctx, d, "key", pg.Prepared(pg.SQL(`
		SELECT k.id AS key, k.partner_id AS partner, k.prefix, t.prefix AS used_prefix,
			coalesce((SELECT r.prefix FROM replaced_keys AS r WHERE r.key_id = k.id ORDER BY r.place LIMIT 1), k.prefix) AS first_prefix,
			k.all_clients, k.scopes, k.networks, k.demo, coalesce(least(k.expires_at, t.until), ?never) AS expires_at
		FROM `+KeyTexts+` AS t JOIN api_keys AS k ON k.id = t.key_id
		WHERE t.digest = ?digest AND NOT t.ended AND (t.until IS NULL OR t.until > ?now)
			AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?now)`,
		pg.Named{"digest": digest, "now": d.Now(), "never": time.Time{}})))
	if domain.IsCode(err, domain.NotFound) {
		err = &domain.Error{Code: domain.Unauthorized, Message: "the API key is unknown, expired or revoked"}
	}
	if err != nil {
		return nil, err
	}
	return &caller, nil
}

// CallingKey holds the fields of the caller's key that its owner may see and that domain.Caller lacks.
type CallingKey struct {
	Name      string
	Partner   string // the partner's name
	CreatedAt time.Time
	ExpiresAt *time.Time
	// ClientIDs are the clients to which the key is limited, without archived ones, in the order of creation. It is
	// empty if the key has access to all clients.
	ClientIDs []domain.ClientID `bun:"client_ids,array"`
}

// CallingKey reads the caller's key. It returns NotFound if the key was just deleted.
func (d *DB) CallingKey(ctx context.Context) (CallingKey, error) {
	caller := domain.CallerFrom(ctx)
	return pg.Find[CallingKey](ctx, d, caller.Key.Noun(), pg.SQL(`
		SELECT k.name, p.name AS partner, k.created_at, k.expires_at, ARRAY(
			SELECT c.id FROM clients AS c WHERE NOT ?all::boolean AND ?within ORDER BY c.created_at, c.id) AS client_ids
		FROM api_keys AS k JOIN partners AS p ON p.id = k.partner_id WHERE k.id = ?key`,
		pg.Named{"all": caller.AllClients, "within": WithinReach(ctx), "key": caller.Key}))
}

// TouchKeys records the last use of keys. A recorded later use stays.
func (d *DB) TouchKeys(ctx context.Context, used map[domain.KeyID]time.Time) error {
	ids, times := make([]domain.KeyID, 0, len(used)), make([]time.Time, 0, len(used))
	for id, at := range used {
		ids, times = append(ids, id), append(times, at)
	}
	return pg.Run(ctx, d, "record the use of keys", pg.SQL(`
		UPDATE api_keys AS k SET last_used_at = greatest(k.last_used_at, u.at)
		FROM unnest(?::uuid[], ?::timestamptz[]) AS u (id, at) WHERE k.id = u.id`, pg.IDs(ids), times))
}

// KeyDigest returns the digest that is stored for a key (decisions 1.7).
func KeyDigest(key string) []byte {
	digest := sha256.Sum256([]byte(key))
	return digest[:]
}

// Key is an API key in a list, without its secret.
type Key struct {
	ID         domain.KeyID
	PartnerID  domain.PartnerID
	Partner    string // the partner's name
	Name       string
	Prefix     string
	AllClients bool
	Clients    int // the number of listed clients, unless AllClients
	Scopes     []string
	Networks   []string // CIDRs from which it may be used; empty means any
	CreatedAt  time.Time
	ExpiresAt  *time.Time
	RevokedAt  *time.Time
	LastUsedAt *time.Time
	// OldPrefix and OldUntil are the prefix and the end of the text that the newest one replaced, while it is valid.
	OldPrefix *string
	OldUntil  *time.Time
	// Replaced are the prefixes of all replaced texts.
	Replaced []string
}

// Has reports whether a prefix is that of one of the key's texts, valid or not.
func (k *Key) Has(prefix string) bool {
	return k.Prefix == prefix || slices.Contains(k.Replaced, prefix)
}

// NewKey is the input of CreateKey.
type NewKey struct {
	Partner domain.PartnerID
	Name    string
	Scopes  []domain.Scope
	// Clients are the clients to which the key is limited. Nil gives it access to all.
	Clients []domain.ClientID
	// Networks are the networks from which the key may be used, with host bits zero. Empty means any.
	Networks  []netip.Prefix
	ExpiresAt *time.Time
}

// CreateKey creates a key and returns its text, which is not stored. If in.Clients is nil, the key has access to all
// clients. It returns InvalidRequest if one of in.Clients is not a client of the partner, is archived, or is given
// twice, and Conflict if the partner is archived.
func (d *DB) CreateKey(ctx context.Context, in NewKey) (string, error) {
	cell, err := d.Cell(ctx)
	if err != nil {
		return "", err
	}
	key, err := domain.NewAPIKey(cell)
	if err != nil {
		return "", err
	}
	row := KeyRow{
		ID: NewID[domain.KeyKind](), PartnerID: in.Partner, Name: in.Name, Prefix: domain.APIKeyPrefix(key),
		Digest: KeyDigest(key), AllClients: in.Clients == nil, ExpiresAt: in.ExpiresAt, CreatedAt: d.Now(),
		Networks: append([]netip.Prefix{}, in.Networks...), // not NULL
	}
	for _, s := range in.Scopes {
		row.Scopes = append(row.Scopes, string(s))
	}
	return key, d.Tx(ctx, func(ctx context.Context) error {
		err := pg.RunOr(ctx, d, domain.ErrConflict("partner", "the partner is archived"), "look at the key's partner", pg.SQL(
			"SELECT FROM partners WHERE id = ? AND archived_at IS NULL FOR SHARE", in.Partner))
		if err != nil {
			return err
		}
		if err := pg.Run(ctx, d, "insert a key", pg.Insert(row)); err != nil {
			return err
		}
		listed, err := pg.Exec(ctx, d, "list a key's clients", pg.SQL(`
			INSERT INTO api_key_clients (key_id, client_id)
			SELECT ?key, id FROM clients WHERE partner_id = ?partner AND id = ANY(?clients::uuid[]) AND archived_at IS NULL`,
			pg.Named{"key": row.ID, "partner": in.Partner, "clients": pg.IDs(in.Clients)}))
		if err == nil && listed != len(in.Clients) {
			err = domain.ErrInvalid("clients", "must be clients of the partner, each given once")
		}
		return err
	})
}

// Keys lists all keys, the oldest first.
func (d *DB) Keys(ctx context.Context) ([]Key, error) {
	return pg.All[Key](ctx, d, "list keys", pg.SQL(`
		SELECT k.id, k.partner_id, p.name AS partner, k.name, k.prefix, k.all_clients, k.scopes, k.networks::text[] AS networks,
			(SELECT count(*) FROM api_key_clients AS l WHERE l.key_id = k.id) AS clients,
			k.created_at, k.expires_at, k.revoked_at, k.last_used_at, o.prefix AS old_prefix, o.until AS old_until,
			ARRAY(SELECT r.prefix FROM replaced_keys AS r WHERE r.key_id = k.id ORDER BY r.place) AS replaced
		FROM api_keys AS k JOIN partners AS p ON p.id = k.partner_id
		LEFT JOIN replaced_keys AS o ON o.key_id = k.id AND o.ended_at IS NULL AND o.until > ? AND k.revoked_at IS NULL
		ORDER BY k.created_at, k.id`, d.Now()))
}
