package db

// What the files that are not converted to package pg yet still use.

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

func (d *DB) conn(ctx context.Context) bun.IDB { return d.Conn(ctx) }

func (d *DB) bad(doing string, err error) error { return d.TranslateError(doing, err) }

func (d *DB) bunDB() *bun.DB { return d.Bun() }

// Beside opens another pool.
func (d *DB) Beside(conns int) *DB {
	pool, err := d.DB.Beside(conns)
	if err != nil {
		panic(err)
	}
	return &DB{DB: pool, strict: d.strict}
}

// Alone runs fn under an advisory lock.
func (d *DB) Alone(ctx context.Context, name string, fn func(context.Context) error) error {
	return d.WithAdvisoryLock(ctx, name, fn)
}

type binds []any

func (b *binds) add(value any) bun.Safe {
	if v, ok := value.(driver.Valuer); ok {
		if plain, err := v.Value(); err == nil {
			value = plain
		}
	}
	*b = append(*b, value)
	return bun.Safe("$" + strconv.Itoa(len(*b)))
}

func (b *binds) addAll(values []any) []any {
	placeholders := make([]any, len(values))
	for i, value := range values {
		placeholders[i] = b.add(value)
	}
	return placeholders
}

const (
	planOnce = pgx.QueryExecModeCacheStatement
	planEach = pgx.QueryExecModeCacheDescribe
)

func legacyQuery(query string, values binds, plan pgx.QueryExecMode) pg.Query {
	q := pg.Raw(query, values)
	if plan == planOnce {
		return pg.Prepared(q)
	}
	return q
}

func readOne[Row any](ctx context.Context, d *DB, query string, values binds) (row Row, err error) {
	row, err = pg.One[Row](ctx, d, "read", legacyQuery(query, values, planOnce))
	if errors.Is(err, pg.ErrNoRow) {
		err = sql.ErrNoRows
	}
	return row, err
}

func read[Row any](ctx context.Context, d *DB, query string, values binds, plan pgx.QueryExecMode, expected int) ([]Row, error) {
	return pg.All[Row](ctx, d, "read", legacyQuery(query, values, plan))
}

func texts[K domain.Kind](ids []domain.ID[K]) []string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = id.UUID()
	}
	return list
}

func uuids[K domain.Kind](ids []domain.ID[K]) any { return pgdialect.Array(texts(ids)) }

func (d *DB) one(ctx context.Context, q *bun.SelectQuery, noun string, dest ...any) error {
	return d.found(q.Scan(ctx, dest...), noun)
}

func (d *DB) found(err error, noun string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return domain.ErrNotFound(noun)
	}
	return d.bad("read a "+noun, err)
}

func legacyKeyLists(keys []domain.UserKey) (clients []domain.ClientID, users []domain.UserID) {
	clients, users = make([]domain.ClientID, len(keys)), make([]domain.UserID, len(keys))
	for i, k := range keys {
		clients[i], users[i] = k.Client, k.User
	}
	return clients, users
}

var _ = time.Now

// Client reads a client within the caller's reach.
func (d *DB) Client(ctx context.Context, id domain.ClientID) (domain.Client, error) {
	t, err := d.Tenant(ctx, id)
	if err != nil {
		return domain.Client{}, err
	}
	return t.Client, nil
}
