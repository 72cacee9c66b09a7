package db

import (
	"context"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The end of keys, and of their texts.

// FoundKey is the key that has, or had, a text with a prefix.
type FoundKey struct {
	ID      domain.KeyID
	Partner domain.PartnerID
	// Prefix is that of the newest text.
	Prefix    string
	Demo      bool
	ExpiresAt *time.Time
	RevokedAt *time.Time
}

// LockKey returns the key that has, or had, a text with a prefix, and locks it. It returns NotFound if there is none.
func (d *DB) LockKey(ctx context.Context, prefix string) (FoundKey, error) {
	return pg.Find[FoundKey](ctx, d, "key", pg.SQL(`
		SELECT k.id, k.partner_id AS partner, k.prefix, k.demo, k.expires_at, k.revoked_at
		FROM api_keys AS k WHERE k.id = ? FOR NO KEY UPDATE`, KeyOfPrefix(prefix)))
}

// RevokeKey revokes the key with a text with the prefix, and so all its texts, and returns the key. It returns NotFound
// if there is none, or if it is already revoked.
func (d *DB) RevokeKey(ctx context.Context, prefix string) (k FoundKey, err error) {
	err = d.Tx(ctx, func(ctx context.Context) (err error) {
		if k, err = d.LockKey(ctx, prefix); err != nil {
			return err
		}
		return pg.RunOr(ctx, d, domain.ErrNotFound("key"), "revoke a key",
			pg.SQL("UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", d.Now(), k.ID))
	})
	return k, err
}

// Rotation is how a key is rotated.
type Rotation struct {
	// OldFor is how long the present text stays valid.
	OldFor time.Duration
	// ExpiresAt is the new expiry of the key. Nil leaves it as it is.
	ExpiresAt *time.Time
}

// RotatedKey is the result of RotateKey.
type RotatedKey struct {
	FoundKey
	// Text is the new text, which is not stored.
	Text string
	// OldPrefix is the prefix of the replaced text, which is valid until OldUntil.
	OldPrefix string
	OldUntil  time.Time
	// Ended is the prefix of a text that was valid and that the rotation ended; "" for none.
	Ended string
}

// RotateKey gives the key with a text with the prefix a new text of this cell. The present text stays valid for
// r.OldFor, but not beyond the end of the key; an older one ends, as a key has at most two valid texts. RotateKey
// returns NotFound if there is no such key, and Conflict if it is revoked, of a demonstration, or has expired and gets no
// new expiry. The text of a key that has expired does not become valid again.
func (d *DB) RotateKey(ctx context.Context, prefix string, r Rotation) (rotated RotatedKey, err error) {
	cell, err := d.Cell(ctx)
	if err != nil {
		return rotated, err
	}
	if rotated.Text, err = domain.NewAPIKey(cell); err != nil {
		return rotated, err
	}
	err = d.Tx(ctx, func(ctx context.Context) (err error) {
		now := d.Now()
		if rotated.FoundKey, err = d.LockKey(ctx, prefix); err != nil {
			return err
		}
		k := &rotated.FoundKey
		expired := k.ExpiresAt != nil && !k.ExpiresAt.After(now)
		switch {
		case k.RevokedAt != nil:
			return domain.ErrConflict("key", "the key is revoked")
		case k.Demo:
			return domain.ErrConflict("key", "the key is a demonstration key")
		case expired && r.ExpiresAt == nil:
			return domain.ErrConflict("key", "the key has expired; give it a new expiry")
		}
		if rotated.Ended, err = d.endReplaced(ctx, k.ID); err != nil {
			return err
		}
		if rotated.OldPrefix, rotated.OldUntil = k.Prefix, now.Add(r.OldFor); expired {
			rotated.OldUntil = *k.ExpiresAt
		}
		if r.ExpiresAt != nil {
			k.ExpiresAt = r.ExpiresAt
		}
		k.Prefix = domain.APIKeyPrefix(rotated.Text)
		return pg.Run(ctx, d, "rotate a key", pg.SQL(`
			WITH replaced AS (
				INSERT INTO replaced_keys (key_id, place, prefix, digest, until, ended_at)
				SELECT k.id, 1 + (SELECT count(*) FROM replaced_keys AS r WHERE r.key_id = k.id), k.prefix, k.digest, ?until::timestamptz,
					CASE WHEN ?until <= ?now THEN ?now::timestamptz END
				FROM api_keys AS k WHERE k.id = ?id
			)
			UPDATE api_keys SET prefix = ?prefix, digest = ?digest, expires_at = ?expiresAt WHERE id = ?id`, pg.Named{
			"id": k.ID, "until": rotated.OldUntil, "now": now, "prefix": k.Prefix, "digest": KeyDigest(rotated.Text), "expiresAt": k.ExpiresAt,
		}))
	})
	return rotated, err
}

// EndOldText ends the replaced text of the key with a text with the prefix now, and returns the key and the prefix of
// the text. It returns NotFound if there is no such key, and "" if no replaced text is valid.
func (d *DB) EndOldText(ctx context.Context, prefix string) (k FoundKey, ended string, err error) {
	err = d.Tx(ctx, func(ctx context.Context) (err error) {
		if k, err = d.LockKey(ctx, prefix); err != nil {
			return err
		}
		ended, err = d.endReplaced(ctx, k.ID)
		return err
	})
	return k, ended, err
}

// endReplaced ends the replaced text of a locked key that is still valid, and returns its prefix; "" if there is none.
func (d *DB) endReplaced(ctx context.Context, key domain.KeyID) (prefix string, err error) {
	ended, err := pg.All[string](ctx, d, "end the replaced text of a key", pg.SQL(`
		UPDATE replaced_keys SET ended_at = ?1 WHERE key_id = ?0 AND ended_at IS NULL AND until > ?1 RETURNING prefix`, key, d.Now()))
	if len(ended) > 0 {
		prefix = ended[0]
	}
	return prefix, err
}
