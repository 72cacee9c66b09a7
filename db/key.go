package db

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/netip"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"partnerapi/domain"
)

type keyRow struct {
	bun.BaseModel `bun:"table:api_keys,alias:k"`

	ID         domain.KeyID `bun:"id,pk"`
	PartnerID  domain.PartnerID
	Name       string
	Prefix     string
	Digest     []byte
	AllClients bool
	Scopes     []string `bun:"scopes,array"`
	Networks   []string `bun:"networks,array"`
	Demo       bool
	ExpiresAt  *time.Time
	RevokedAt  *time.Time
	LastUsedAt *time.Time
	CreatedAt  time.Time
}

// CallerByDigest returns whose key has the digest, as long as it is neither
// revoked nor expired; Unauthorized otherwise.
func (d *DB) CallerByDigest(ctx context.Context, digest []byte) (*domain.Caller, error) {
	var row keyRow
	q := d.conn(ctx).NewSelect().Model(&row).Where("k.digest = ?", digest).
		Where("k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?)", d.Now())
	err := d.one(ctx, q, "key")
	if err != nil {
		if domain.IsCode(err, domain.NotFound) {
			return nil, &domain.Error{Code: domain.Unauthorized, Message: "the API key is unknown, expired or revoked"}
		}
		return nil, err
	}
	caller := &domain.Caller{Key: row.ID, Partner: row.PartnerID, Prefix: row.Prefix, AllClients: row.AllClients, Demo: row.Demo}
	if row.ExpiresAt != nil {
		caller.ExpiresAt = *row.ExpiresAt
	}
	for _, scope := range row.Scopes {
		caller.Scopes = append(caller.Scopes, domain.Scope(scope))
	}
	if caller.Networks, err = prefixes(row.Networks); err != nil {
		return nil, err
	}
	return caller, nil
}

// prefixes reads networks as PostgreSQL writes them.
func prefixes(networks []string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, text := range networks {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("read a key's networks: %w", err)
		}
		list = append(list, network)
	}
	return list, nil
}

// TouchKeys records when keys were last used.
func (d *DB) TouchKeys(ctx context.Context, used map[domain.KeyID]time.Time) error {
	ids, times := make([]domain.KeyID, 0, len(used)), make([]time.Time, 0, len(used))
	for id, at := range used {
		ids, times = append(ids, id), append(times, at)
	}
	_, err := d.conn(ctx).NewRaw(`
		UPDATE api_keys AS k SET last_used_at = greatest(k.last_used_at, u.at)
		FROM unnest(?::uuid[], ?::timestamptz[]) AS u (id, at) WHERE k.id = u.id`,
		uuids(ids), pgdialect.Array(times)).Exec(ctx)
	return d.bad("record the use of keys", err)
}

// KeyDigest is what a key is stored and found by (decisions 1.7).
func KeyDigest(key string) []byte {
	digest := sha256.Sum256([]byte(key))
	return digest[:]
}

// Key is an API key as it is listed: without its secret.
type Key struct {
	ID         domain.KeyID
	Partner    string
	Name       string
	Prefix     string
	AllClients bool
	Clients    int // how many clients are listed, where not all
	Scopes     []string
	Networks   []string // that it may be used from, as CIDRs; none for everywhere
	CreatedAt  time.Time
	ExpiresAt  *time.Time
	RevokedAt  *time.Time
	LastUsedAt *time.Time
}

// NewKey is what is asked for of a key that is to be created.
type NewKey struct {
	Partner domain.PartnerID
	Name    string
	Scopes  []domain.Scope
	// Clients restricts the key to these clients; nil gives it access to all.
	Clients []domain.ClientID
	// Networks restricts where the key may be used from; none is everywhere.
	// Their host bits are zero.
	Networks  []netip.Prefix
	ExpiresAt *time.Time
}

// keyPrefix is how many characters of a key are stored in clear.
const keyPrefix = 11

// CreateKey makes a key and returns it; nobody can read it later. InvalidRequest
// when one of the clients is not the partner's.
func (d *DB) CreateKey(ctx context.Context, in NewKey) (string, error) {
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return "", err
	}
	key := "pk_" + base64.RawURLEncoding.EncodeToString(secret)
	row := keyRow{
		ID: NewID[domain.KeyKind](), PartnerID: in.Partner, Name: in.Name, Prefix: key[:keyPrefix], Digest: KeyDigest(key),
		AllClients: in.Clients == nil, Networks: make([]string, len(in.Networks)), ExpiresAt: in.ExpiresAt, CreatedAt: d.Now(),
	}
	for _, s := range in.Scopes {
		row.Scopes = append(row.Scopes, string(s))
	}
	for i, network := range in.Networks {
		row.Networks[i] = network.String()
	}
	return key, d.Tx(ctx, func(ctx context.Context) error {
		if _, err := d.conn(ctx).NewInsert().Model(&row).Exec(ctx); err != nil {
			return d.bad("insert a key", err)
		}
		listed, err := d.conn(ctx).NewRaw(`
			INSERT INTO api_key_clients (key_id, client_id)
			SELECT ?, id FROM clients WHERE partner_id = ? AND id = ANY(?::uuid[]) AND archived_at IS NULL`,
			row.ID, in.Partner, uuids(in.Clients)).Exec(ctx)
		if err != nil {
			return d.bad("list a key's clients", err)
		}
		if n, _ := listed.RowsAffected(); int(n) != len(in.Clients) {
			return domain.ErrInvalid("clients", "must each be one of the partner's clients, and given once")
		}
		return nil
	})
}

// Keys lists all keys, the oldest first.
func (d *DB) Keys(ctx context.Context) ([]Key, error) {
	var rows []struct {
		keyRow  `bun:",extend"`
		Partner string
		Clients int
	}
	err := d.conn(ctx).NewRaw(`
		SELECT k.*, p.name AS partner, (SELECT count(*) FROM api_key_clients AS l WHERE l.key_id = k.id) AS clients
		FROM api_keys AS k JOIN partners AS p ON p.id = k.partner_id ORDER BY k.created_at, k.id`).Scan(ctx, &rows)
	keys := make([]Key, len(rows))
	for i, r := range rows {
		keys[i] = Key{
			ID: r.ID, Partner: r.Partner, Name: r.Name, Prefix: r.Prefix, AllClients: r.AllClients, Clients: r.Clients, Scopes: r.Scopes, Networks: r.Networks,
			CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt, RevokedAt: r.RevokedAt, LastUsedAt: r.LastUsedAt,
		}
	}
	return keys, d.bad("list keys", err)
}

// RevokeKey ends the key with the prefix; NotFound where there is none that is
// not revoked yet.
func (d *DB) RevokeKey(ctx context.Context, prefix string) error {
	done, err := d.conn(ctx).NewUpdate().Table("api_keys").Set("revoked_at = ?", d.Now()).
		Where("prefix = ? AND revoked_at IS NULL", prefix).Exec(ctx)
	if err != nil {
		return d.bad("revoke a key", err)
	}
	if n, _ := done.RowsAffected(); n == 0 {
		return domain.ErrNotFound("key")
	}
	return nil
}
